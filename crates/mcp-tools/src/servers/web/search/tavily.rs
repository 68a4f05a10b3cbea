//! Tavily's search API.

use serde_json::{Value, json};

use super::super::services::Service;
use super::{Hit, Query, Wire};
use crate::egress::ServiceRequest;

/// The service gives no more.
const MOST: u64 = 20;

pub(super) struct Tavily(pub(super) Service);

impl Wire for Tavily {
    fn name(&self) -> &'static str {
        "Tavily"
    }

    fn request(&self, query: &Query) -> ServiceRequest {
        let mut body = json!({ "query": query.q, "max_results": query.results().min(MOST) });
        if let Some(span) = query.span(["day", "week", "month", "year"]) {
            body["time_range"] = span.into();
        }
        ServiceRequest {
            url: format!("{}/search", self.0.base_url),
            headers: vec![
                ("Authorization".into(), format!("Bearer {}", self.0.key.expose())),
                ("Content-Type".into(), "application/json".into()),
            ],
            body: Some(body.to_string().into_bytes()),
            ..ServiceRequest::default()
        }
    }

    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String> {
        Ok(Hit::read_all(answer.get("results"), "title", "url", "content", "published_date"))
    }

    fn secrets(&self) -> Vec<&str> {
        vec![self.0.key.expose()]
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        matches!(status, 401 | 403).then_some("Check TAVILY_API_KEY.")
    }
}
