//! Google's results through Serper.

use serde_json::{Map, Value};

use super::super::services::Service;
use super::{Hit, Query, Wire};
use crate::egress::ServiceRequest;

pub(super) struct Serper(pub(super) Service);

impl Wire for Serper {
    fn name(&self) -> &'static str {
        "Serper"
    }

    fn request(&self, query: &Query) -> ServiceRequest {
        let mut body = Map::new();
        body.insert("q".into(), query.q.clone().into());
        for (key, value) in
            [("gl", &query.gl), ("hl", &query.hl), ("location", &query.location), ("tbs", &query.tbs)]
        {
            if let Some(value) = value {
                body.insert(key.into(), value.clone().into());
            }
        }
        body.insert("num".into(), query.results().into());
        if let Some(page) = query.page {
            body.insert("page".into(), page.into());
        }
        if let Some(autocorrect) = query.autocorrect {
            body.insert("autocorrect".into(), autocorrect.into());
        }
        ServiceRequest {
            url: format!("{}/search", self.0.base_url),
            headers: vec![
                ("X-API-KEY".into(), self.0.key.expose().into()),
                ("Content-Type".into(), "application/json".into()),
            ],
            body: Some(Value::Object(body).to_string().into_bytes()),
            ..ServiceRequest::default()
        }
    }

    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String> {
        Ok(Hit::read_all(answer.get("organic"), "title", "link", "snippet", "date"))
    }

    fn secrets(&self) -> Vec<&str> {
        vec![self.0.key.expose()]
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        matches!(status, 401 | 403).then_some("Check SERPER_API_KEY.")
    }
}
