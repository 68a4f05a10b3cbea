//! Gives refusals that name no request to the request that was refused.
//!
//! Decides what an HTTP answer without a usable id means. Many servers answer a request of a session
//! that they have forgotten with an error whose id is missing; nobody could match that to a call,
//! which would wait for its limit.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;

/// A client that answers every refused request.
#[derive(Debug, Clone)]
pub(crate) struct Client(pub(super) reqwest::Client);

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limit = super::MAX_MESSAGE;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, limit).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let has_session = session.is_some();
        let posted =
            self.0.post_message_with_max_sse_event_size(uri, message, session, token, headers, limit).await?;
        match (request, posted) {
            (Some(request), StreamableHttpPostResponse::Json(answer, session)) => {
                let answer = attributed(request, answer, has_session)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            (_, posted) => Ok(posted),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failure> {
        self.0.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, limit).await
    }
}

/// The answer with the id of its request, or the news that the server has forgotten the session.
fn attributed(
    request: RequestId,
    answer: ServerJsonRpcMessage,
    has_session: bool,
) -> Result<ServerJsonRpcMessage, Failure> {
    match answer {
        JsonRpcMessage::Error(mut error) if error.id.is_none() => {
            // Refused before it was looked at: opening a new session and asking again is safe.
            if has_session && error.error.message.to_ascii_lowercase().contains("session") {
                return Err(StreamableHttpError::SessionExpired);
            }
            error.id = Some(request);
            Ok(JsonRpcMessage::Error(error))
        }
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorCode, ErrorData};

    #[test]
    fn every_refusal_belongs_to_a_request() {
        let refusal = |id, message: &'static str| {
            JsonRpcMessage::error(ErrorData::new(ErrorCode(-32000), message, None), id)
        };
        let (asked, other) = (RequestId::Number(7), RequestId::Number(8));
        for (answer, has_session, expected) in [
            (refusal(None, "No valid session ID"), true, None),
            (refusal(None, "No valid session ID"), false, Some(asked.clone())),
            (refusal(None, "overloaded"), true, Some(asked.clone())),
            (refusal(Some(other.clone()), "session"), true, Some(other)),
        ] {
            match (attributed(asked.clone(), answer, has_session), expected) {
                (Ok(JsonRpcMessage::Error(error)), Some(id)) => assert_eq!(error.id, Some(id)),
                (Err(StreamableHttpError::SessionExpired), None) => {}
                (other, expected) => panic!("{other:?} instead of {expected:?}"),
            }
        }
    }
}
