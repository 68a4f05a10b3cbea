//! Bodies as servers write them, and what they must be taken for.

use std::sync::Arc;
use std::time::Duration;

use super::{WireError, from_response, from_stream};
use crate::{Endpoint, LlmError};

fn endpoint() -> Arc<Endpoint> {
    Arc::new(Endpoint {
        provider: "test".into(),
        model: "some-model".into(),
        url: Some("http://host/v1".into()),
        ..Endpoint::default()
    })
}

#[test]
fn knows_a_refusal_by_status_and_words() {
    let check = |status: u16, body: &str, kind: &str| {
        let error = from_response(&endpoint(), status, None, body);
        assert_eq!(error.kind(), kind, "{status} {body}");
    };
    check(
        401,
        r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
        "authentication",
    );
    check(403, "", "authentication");
    check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, "quota_exhausted");
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        "quota_exhausted",
    );
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        "quota_exhausted",
    );
    check(429, "", "rate_limited");
    check(
        429,
        r#"{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded"}}"#,
        "overloaded",
    );
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        "overloaded",
    );
    check(503, "busy", "overloaded");
    check(500, "", "server_error");
    check(502, "<html><head><title>502 Bad Gateway</title></head></html>", "server_error");
    check(408, "", "server_error");
    check(409, "", "server_error");
    check(
        404,
        r#"{"error":{"message":"The model `some-model` does not exist","code":"model_not_found"}}"#,
        "model_not_found",
    );
    check(404, r#"{"error":"model \"some-model\" not found, try pulling it first"}"#, "model_not_found");
    check(404, r#"{"detail":"Not Found"}"#, "not_an_api");
    check(405, r#"{"detail":"Method Not Allowed"}"#, "not_an_api");
    check(308, "", "not_an_api");
    check(400, r#"{"error":{"message":"some-model is not a valid model ID","code":400}}"#, "model_not_found");
    check(
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#,
        "model_not_found",
    );
    check(
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
        "authentication",
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error"}}"#,
        "invalid_request",
    );
    check(422, r#"{"detail":[{"msg":"extra fields not permitted"}]}"#, "invalid_request");
    check(413, "", "context_exceeded");
}

#[test]
fn knows_a_full_window_in_every_wording() {
    let check = |status: u16, message: &str, prompt: Option<u64>, limit: Option<u64>| {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        match from_response(&endpoint(), status, None, &body) {
            LlmError::ContextExceeded { prompt_tokens: p, limit: l, .. } => {
                assert_eq!((p, l), (prompt, limit), "{message}");
            }
            other => panic!("{message}: {other}"),
        }
    };
    // OpenAI, DeepSeek, OpenRouter
    check(
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. Please reduce the length of the messages.",
        Some(130_001),
        Some(128_000),
    );
    // vLLM, three releases
    check(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        Some(4000),
        Some(4096),
    );
    check(
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 12000 input tokens (32000 > 32768 - 12000).",
        Some(12_000),
        Some(32_768),
    );
    check(
        400,
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
        Some(40_000),
        Some(32_768),
    );
    // SGLang
    check(
        400,
        "The input (12345 tokens) is longer than the model's context length (8192 tokens).",
        Some(12_345),
        Some(8192),
    );
    check(
        400,
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 35000 tokens from the input messages and 5000 tokens for the completion.",
        Some(35_000),
        Some(32_768),
    );
    // llama.cpp in words
    check(400, "the request exceeds the available context size, try increasing it", None, None);
    check(
        400,
        "the request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        Some(9000),
        Some(4096),
    );
    // Anthropic
    check(400, "prompt is too long: 210000 tokens > 200000 maximum", Some(210_000), Some(200_000));
    check(
        400,
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
        Some(190_000),
        Some(200_000),
    );
    // Gemini, Mistral, xAI, Moonshot, DashScope, Bedrock
    check(
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        Some(1_200_000),
        Some(1_048_576),
    );
    check(
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        Some(40_000),
        None,
    );
    check(
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        Some(537_812),
        Some(131_072),
    );
    check(400, "Your request exceeded model token limit: 8192", None, Some(8192));
    check(400, "Range of input length should be [1, 30720]", None, Some(30_720));
    check(400, "Input is too long for requested model.", None, None);
    // older servers fail with 500
    check(500, "Input is too long for requested model.", None, None);
}

#[test]
fn reads_token_counts_that_are_fields() {
    let body = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#;
    match from_response(&endpoint(), 400, None, body) {
        LlmError::ContextExceeded { prompt_tokens, limit, .. } => {
            assert_eq!((prompt_tokens, limit), (Some(9000), Some(4096)));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_rate_limit_that_speaks_of_tokens_is_no_full_window() {
    let body = r#"{"error":{"message":"Request too large: please reduce the length of the messages","code":"rate_limit_exceeded"}}"#;
    assert_eq!(from_response(&endpoint(), 429, None, body).kind(), "rate_limited");
}

#[test]
fn knows_errors_inside_a_stream() {
    let check = |json: &str, kind: &str| {
        let value = serde_json::from_str(json).unwrap();
        let error = from_stream(&endpoint(), WireError::from_json(&value).unwrap());
        assert_eq!(error.kind(), kind, "{json}");
    };
    check(
        r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream gone"}}}"#,
        "server_error",
    );
    check(r#"{"error":{"message":"Rate limited","code":429}}"#, "rate_limited");
    check(r#"{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}"#, "rate_limited");
    check(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "overloaded");
    check(r#"{"error":{"message":"bad","type":"BadRequestError","code":400}}"#, "invalid_request");
    check(r#"{"error":"something odd"}"#, "server_error");
    check(
        r#"{"object":"error","message":"This model's maximum context length is 10 tokens","code":400}"#,
        "context_exceeded",
    );
    assert!(WireError::from_json(&serde_json::json!({"choices": [], "error": null})).is_none());
}

#[test]
fn takes_pauses_from_the_body_where_headers_are_silent() {
    let check = |body: &str, seconds: f64| {
        let error = from_response(&endpoint(), 429, None, body);
        assert_eq!(error.retry_after(), Some(Duration::from_secs_f64(seconds)), "{body}");
    };
    check(r#"{"error":{"message":"Rate limit reached. Please try again in 17.5s. Visit"}}"#, 17.5);
    check(r#"{"error":{"message":"Please try again in 250ms."}}"#, 0.25);
    check(r#"{"error":{"message":"Please try again in 1m2s."}}"#, 62.0);
    check(r#"[{"error":{"code":429,"message":"x","details":[{"@type":"a"},{"retryDelay":"36s"}]}}]"#, 36.0);
    check(r#"{"error":{"message":"Please retry after 6 seconds."}}"#, 6.0);
    let both = from_response(&endpoint(), 429, Some(Duration::from_secs(3)), "try again in 9s");
    assert_eq!(both.retry_after(), Some(Duration::from_secs(3)));
}

#[test]
fn shows_pages_and_floods_briefly() {
    let page =
        from_response(&endpoint(), 404, None, "<!DOCTYPE html><html><head><title> Gone </title></head>…");
    assert!(page.to_string().contains("a web page: Gone"), "{page}");
    let flood = from_response(&endpoint(), 500, None, &"x\n".repeat(1_000_000));
    assert!(flood.to_string().len() < 2500);
    assert!(!flood.to_string().contains('\n'));
}
