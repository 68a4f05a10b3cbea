//! A SearXNG of one's own.

use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::{Hit, Query, Wire};
use crate::egress::ServiceRequest;

/// With its address.
pub(super) struct SearXng(pub(super) String);

impl Wire for SearXng {
    fn name(&self) -> &'static str {
        "SearXNG"
    }

    fn request(&self, query: &Query) -> ServiceRequest {
        let mut parameters = Serializer::new(String::new());
        parameters.append_pair("q", &query.q).append_pair("format", "json");
        if let Some(language) = &query.hl {
            parameters.append_pair("language", language);
        }
        if let Some(span) = query.span(["day", "week", "month", "year"]) {
            parameters.append_pair("time_range", span);
        }
        if query.page.is_some() {
            parameters.append_pair("pageno", &query.page().to_string());
        }
        let base = self.0.strip_suffix("/search").unwrap_or(&self.0);
        ServiceRequest { url: format!("{base}/search?{}", parameters.finish()), ..ServiceRequest::default() }
    }

    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String> {
        Ok(Hit::read_all(answer.get("results"), "title", "url", "content", "publishedDate"))
    }

    fn secrets(&self) -> Vec<&str> {
        Vec::new()
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        (status == 403).then_some("Its settings.yml must list `json` under `search.formats`.")
    }
}
