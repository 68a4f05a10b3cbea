//! Sogou's results through Tencent Cloud's `SearchPro`.

use serde_json::{Value, json};
use url::Url;

use super::super::services::Tencent;
use super::tc3::{self, Call};
use super::{Hit, Query, Wire};
use crate::egress::ServiceRequest;

const SERVICE: &str = "wsa";
const ACTION: &str = "SearchPro";
const VERSION: &str = "2025-05-08";
/// The service gives 10, 20… of them.
const STEP: u64 = 10;
const MOST: u64 = 50;

pub(super) struct Sogou {
    tencent: Tencent,
    host: String,
}

impl Sogou {
    pub(super) fn new(tencent: Tencent) -> Self {
        let host = Url::parse(&tencent.base_url).ok().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        Self { tencent, host: host.unwrap_or_default() }
    }
}

impl Wire for Sogou {
    fn name(&self) -> &'static str {
        "Sogou"
    }

    fn request(&self, query: &Query) -> ServiceRequest {
        let count = query.results().div_ceil(STEP).saturating_mul(STEP).min(MOST);
        let body = json!({ "Query": query.q, "Cnt": count }).to_string();
        let timestamp = jiff::Timestamp::now().as_second();
        let call = Call { service: SERVICE, host: &self.host, timestamp, body: body.as_bytes() };
        ServiceRequest {
            url: format!("{}/", self.tencent.base_url),
            headers: vec![
                (
                    "Authorization".into(),
                    tc3::authorization(&call, self.tencent.id.expose(), self.tencent.key.expose()),
                ),
                ("Content-Type".into(), tc3::CONTENT_TYPE.into()),
                ("X-TC-Action".into(), ACTION.into()),
                ("X-TC-Version".into(), VERSION.into()),
                ("X-TC-Timestamp".into(), timestamp.to_string()),
            ],
            body: Some(body.into_bytes()),
            ..ServiceRequest::default()
        }
    }

    /// Errors come with status 200; pages are JSON in JSON.
    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String> {
        let response = answer.get("Response").ok_or("its answer has no `Response`")?;
        if let Some(error) = response.get("Error") {
            let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or("no words");
            return Err(format!("{}: {}", text("Code"), text("Message")));
        }
        let pages = response.get("Pages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let page = |page: &Value| match page {
            Value::String(text) => serde_json::from_str(text).ok(),
            other => Some(other.clone()),
        };
        let hit = |page: Value| Hit::read(&page, "title", "url", "passage", "date");
        Ok(pages.iter().filter_map(page).filter_map(hit).collect())
    }

    fn secrets(&self) -> Vec<&str> {
        vec![self.tencent.id.expose(), self.tencent.key.expose()]
    }
}
