//! Brave's search API.

use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::super::services::Service;
use super::{Hit, Query, Wire};
use crate::egress::ServiceRequest;

/// The service gives no more at a time.
const MOST: u64 = 20;

pub(super) struct Brave(pub(super) Service);

impl Wire for Brave {
    fn name(&self) -> &'static str {
        "Brave"
    }

    fn request(&self, query: &Query) -> ServiceRequest {
        let mut parameters = Serializer::new(String::new());
        parameters.append_pair("q", &query.q).append_pair("count", &query.results().min(MOST).to_string());
        if let Some(country) = &query.gl {
            parameters.append_pair("country", &country.to_uppercase());
        }
        if let Some(language) = &query.hl {
            parameters.append_pair("search_lang", language);
        }
        if let Some(span) = query.span(["pd", "pw", "pm", "py"]) {
            parameters.append_pair("freshness", span);
        }
        if query.page() > 1 {
            parameters.append_pair("offset", &(query.page() - 1).min(9).to_string());
        }
        if query.autocorrect == Some(false) {
            parameters.append_pair("spellcheck", "0");
        }
        ServiceRequest {
            url: format!("{}/res/v1/web/search?{}", self.0.base_url, parameters.finish()),
            headers: vec![
                ("X-Subscription-Token".into(), self.0.key.expose().into()),
                ("Accept".into(), "application/json".into()),
            ],
            ..ServiceRequest::default()
        }
    }

    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String> {
        Ok(Hit::read_all(answer.pointer("/web/results"), "title", "url", "description", "age"))
    }

    fn secrets(&self) -> Vec<&str> {
        vec![self.0.key.expose()]
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        matches!(status, 401 | 403 | 422).then_some("Check BRAVE_API_KEY.")
    }
}
