//! What is found out before the first request.

use llm_providers::{Environment, LlmConfig, LlmError, inspect, preflight};
use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};

fn config(provider: &str, base_url: &str, model: &str) -> LlmConfig {
    LlmConfig {
        provider: provider.to_owned(),
        base_url: Some(base_url.to_owned()),
        model_name: model.to_owned(),
        ..LlmConfig::default()
    }
}

async fn look(provider: &str, base_url: &str, model: &str) -> Result<(), LlmError> {
    preflight(&config(provider, base_url, model), &Environment::default()).await
}

async fn listing(models: Value) -> ScriptedServer {
    ScriptedServer::start_with(move |request| match request.path.as_str() {
        "/v1/models" => Reply::json(&json!({"object": "list", "data": models})),
        _ => Reply::status(404),
    })
    .await
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    // Bound and not listening: nobody else gets the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://127.0.0.1:{}/v1", socket.local_addr().unwrap().port());
    let error = look("openai_compatible", &url, "m").await.unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    let hint = error.hint().unwrap();
    assert!(error.to_string().contains(&url) && hint.contains("llm.base_url"), "{error} {hint}");
}

#[tokio::test]
async fn a_model_that_the_server_does_not_have_is_told_with_those_that_it_has() {
    let server = listing(json!([{"id": "qwen3:8b"}, {"id": "llama3.2:latest"}])).await;
    let url = server.base_url();
    for model in ["qwen3:8b", "llama3.2", "llama3.2:latest"] {
        assert_eq!(look("ollama", &url, model).await, Ok(()), "{model}");
    }
    let error = look("ollama", &url, "qwen3:8").await.unwrap_err();
    assert!(error.kind() == "model_not_found" && error.is_permanent());
    for part in ["`qwen3:8`", "did you mean `qwen3:8b`?", "llama3.2:latest"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let other = look("ollama", &url, "something-else").await.unwrap_err().to_string();
    assert!(other.contains("it has qwen3:8b, llama3.2:latest") && !other.contains("did you mean"), "{other}");
    // Servers that take any name, and those that are not known, are asked nothing.
    let asked = server.requests().len();
    for provider in ["llamacpp", "openai_compatible", "lmstudio", "sglang"] {
        assert_eq!(look(provider, &url, "whatever").await, Ok(()));
    }
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test]
async fn what_is_not_certain_is_no_error() {
    let check = async |reply: Reply| {
        let server = ScriptedServer::start_with(move |_| reply.clone()).await;
        assert_eq!(look("vllm", &server.base_url(), "m").await, Ok(()));
    };
    check(Reply::status(500)).await;
    check(Reply::status(404)).await;
    check(Reply::status(200).body("<html>")).await;
    check(Reply::json(&json!({"data": []}))).await;
    check(Reply::json(&json!({"data": "nothing"}))).await;
    check(Reply::text("x").stall_after(0)).await;
    // Other machines are not asked, and the reader has no server.
    assert_eq!(look("vllm", "http://models.invalid/v1", "m").await, Ok(()));
    assert_eq!(look("reader", "http://127.0.0.1:1/v1", "").await, Ok(()));
}

#[tokio::test]
async fn a_key_that_the_server_does_not_take_is_told() {
    let server = ScriptedServer::start_with(|request| match request.header("authorization") {
        Some("Bearer right-key-1234") => Reply::json(&json!({"data": [{"id": "m"}]})),
        _ => Reply::status(401).body(r#"{"error": "Unauthorized"}"#),
    })
    .await;
    let with_key =
        |key: &str| LlmConfig { api_key: Some(key.into()), ..config("vllm", &server.base_url(), "m") };
    assert_eq!(preflight(&with_key("right-key-1234"), &Environment::default()).await, Ok(()));
    let error = preflight(&with_key("wrong-key-1234"), &Environment::default()).await.unwrap_err();
    assert_eq!(error.kind(), "authentication");
    assert!(!format!("{error} {error:?}").contains("wrong-key-1234"));
}

#[tokio::test]
async fn wrong_settings_are_errors_before_anything_is_sent() {
    let check = async |config: LlmConfig, part: &str| {
        let error = preflight(&config, &Environment::default()).await.unwrap_err();
        let told = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(error.is_permanent() && told.contains(part), "{told}");
    };
    check(config("vllm", "no address", "m"), "llm.base_url").await;
    check(LlmConfig { provider: "openai".into(), ..LlmConfig::default() }, "OPENAI_API_KEY").await;
    check(LlmConfig { provider: "vlm".into(), ..LlmConfig::default() }, "vllm").await;
    check(config("openai_compatible", "http://127.0.0.1:1/v1", ""), "llm.model_name").await;
}

#[tokio::test]
async fn any_server_can_be_asked_what_it_has() {
    let server = listing(json!([{"id": "claude-x"}])).await;
    let mut anthropic = config("anthropic", &server.base_url(), "claude-y");
    anthropic.api_key = Some("key-12345678".into());
    let found = inspect(&anthropic, &Environment::default()).await.unwrap().unwrap();
    assert_eq!((found.has_model, found.models), (false, vec!["claude-x".to_owned()]));
    let request = &server.requests()[0];
    assert_eq!(request.header("x-api-key"), Some("key-12345678"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    let chat = format!("{}/chat/completions", server.base_url());
    let found = inspect(&config("openai_compatible", &chat, "claude-x"), &Environment::default()).await;
    assert!(found.unwrap().unwrap().has_model);
    let reader = LlmConfig { provider: "reader".into(), ..LlmConfig::default() };
    assert_eq!(inspect(&reader, &Environment::default()).await, Ok(None));
}
