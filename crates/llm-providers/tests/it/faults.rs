//! What surrounds a call: limits of time over all of it, proxies, TLS, addresses at which nobody is, and
//! keys that must not show. What a server can do wrong is in `fault_matrix`.

use std::time::{Duration, Instant};

use core_protocol::Message;
use llm_providers::{Environment, LlmClient, LlmConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{call, client, config, question};
use crate::scripted_server::{Reply, ScriptedServer};

const VLLM: &str = "{provider: vllm}";

fn limited(url: &str, yaml: &str, limits: &str) -> LlmClient {
    let mut config: LlmConfig = config(url, yaml);
    let limits: llm_providers::RetryConfig = serde_yaml::from_str(limits).unwrap();
    config.retries = llm_providers::RetryConfig { base_wait: 0.001, ..limits };
    LlmClient::from_config(&config, &Environment::default()).unwrap()
}

#[tokio::test]
async fn a_long_healthy_stream_is_not_cut() {
    let reply = Reply::sse_text("word ".repeat(40)).pieces(120, Duration::from_millis(30));
    let server = ScriptedServer::start(vec![reply]).await;
    let client = limited(&server.base_url(), VLLM, "{idle_timeout: 1, first_event_timeout: 1}");
    let outcome = call(&client, &question()).await.0.unwrap();
    assert_eq!(outcome.retries, 0);
}

#[tokio::test]
async fn all_tries_together_have_a_limit() {
    let server = ScriptedServer::start_with(|_| Reply::text("x").stall_after(0)).await;
    let client = limited(&server.base_url(), VLLM, "{first_event_timeout: 0.4, total_timeout: 2}");
    let started = Instant::now();
    let error = call(&client, &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "timeout");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!((2..=5).contains(&server.requests().len()), "{}", server.requests().len());
}

#[tokio::test]
async fn keys_never_show() {
    let key = "sk-proj-SECRETSECRETSECRET";
    let echo = json!({"error": {"code": "header-secret", "message": format!("Incorrect API key provided: {key} (sk-proj-****CRET), query-secret, url-password")}});
    let server = ScriptedServer::start_with(move |_| Reply::status(401).body(echo.to_string())).await;
    let url = server.base_url().replace("http://", "http://user:url-password@") + "?token=query-secret";
    let yaml =
        format!("{{provider: vllm, api_key: {key}, quirks: {{headers: {{x-gateway-key: header-secret}}}}}}");
    let client = client(&url, &yaml);
    let error = call(&client, &question()).await.0.unwrap_err();
    let shown = format!(
        "{error} {error:?} {:?} {:?} {client:?} {:?}",
        error.hint(),
        client.describe(),
        client.config()
    );
    assert!(shown.contains("***"), "{shown}");
    for secret in ["SECRET", "CRET)", "url-password", "query-secret", "header-secret"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert_eq!(server.requests()[0].path, "/v1/chat/completions?token=query-secret");
    let message = error.to_string();
    assert!(message.contains("vllm") && message.contains("some-model"), "{message}");
    assert!(message.contains(&format!("127.0.0.1:{}/v1/chat/completions", server.port())), "{message}");
}

#[tokio::test]
async fn nothing_listening_here_is_given_up_soon() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (outcome, seen) = call(&client(&url, VLLM), &question()).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    assert_eq!(seen.retries, ["unreachable", "unreachable"]);
    assert!(error.hint().unwrap().contains("start the server"), "{error}");
    assert!(!error.is_permanent() && error.is_retryable());
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_without_a_proxy() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"];
    let environment: Environment =
        proxies.iter().map(|name| ((*name).to_owned(), "http://127.0.0.1:1".to_owned())).collect();
    let client = LlmClient::from_config(&config(&server.base_url(), VLLM), &environment).unwrap();
    assert_eq!(call(&client, &question()).await.0.unwrap().retries, 0);
}

#[tokio::test]
async fn another_host_is_reached_through_the_proxy() {
    let proxy = ScriptedServer::start(vec![Reply::text("through the proxy")]).await;
    let environment = Environment::from([("HTTP_PROXY", proxy.root_url().as_str())]);
    let client = LlmClient::from_config(&config("http://model.invalid/v1", VLLM), &environment).unwrap();
    let outcome = call(&client, &question()).await.0.unwrap();
    assert_eq!(outcome.completion.message, Message::assistant("through the proxy"));
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/chat/completions");
    let environment =
        Environment::from([("HTTP_PROXY", proxy.root_url().as_str()), ("NO_PROXY", "model.invalid")]);
    let client = LlmClient::from_config(&config("http://model.invalid/v1", VLLM), &environment).unwrap();
    let error = call(&client, &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn a_server_without_tls_is_told_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0u8; 1024];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let (outcome, seen) = call(&client(&url, VLLM), &question()).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), seen.retries.len()), ("unreachable", 0), "{error}");
    assert!(error.is_permanent());
    server.abort();
}
