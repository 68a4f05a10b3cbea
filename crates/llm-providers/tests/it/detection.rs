//! How a model is found without being named.

use std::time::{Duration, Instant};

use llm_providers::{Environment, LlmConfig, detect, probe_local_servers};
use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};

fn models(entries: Value) -> impl Fn(&crate::scripted_server::Request) -> Reply + Send + Sync + 'static {
    move |request| match request.path.as_str() {
        "/v1/models" => Reply::json(&json!({"object": "list", "data": entries})),
        "/props" => Reply::json(&json!({"default_generation_settings": {"n_ctx": 16384}})),
        _ => Reply::status(404),
    }
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn keys_are_found_in_order() {
    let check = |variables: &'static [(&'static str, &'static str)],
                 model: &'static str,
                 expected: (&'static str, &'static str)| async move {
        let base = LlmConfig { model_name: model.to_owned(), temperature: Some(0.1), ..LlmConfig::default() };
        let mut environment = environment(variables);
        environment.set("FATHOM_LOCAL_SERVERS", "off");
        let found = detect(&environment, &base).await;
        assert_eq!(
            (found.config.provider.as_str(), found.config.model_name.as_str()),
            expected,
            "{variables:?}"
        );
        assert_eq!(found.config.temperature, Some(0.1));
        assert!(!format!("{found:?}").contains("sk-"), "{found:?}");
        found
    };
    check(&[("OPENAI_API_KEY", "sk-1")], "", ("openai", "gpt-5-mini")).await;
    check(&[("OPENAI_API_KEY", "sk-1"), ("OPENAI_MODEL", "gpt-4o")], "", ("openai", "gpt-4o")).await;
    check(&[("OPENAI_API_KEY", "sk-1"), ("ANTHROPIC_API_KEY", "sk-2")], "", ("openai", "gpt-5-mini")).await;
    check(
        &[("OPENAI_API_KEY", "sk-1"), ("ANTHROPIC_API_KEY", "sk-2")],
        "claude-sonnet-4-5",
        ("anthropic", "claude-sonnet-4-5"),
    )
    .await;
    check(
        &[("OPENROUTER_API_KEY", "sk-1"), ("OPENAI_API_KEY", " ")],
        "",
        ("openrouter", "anthropic/claude-sonnet-4.5"),
    )
    .await;
    let found = check(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "m", ("openai", "m")).await;
    assert_eq!(found.config.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
    let found = check(&[], "", ("reader", "reader")).await;
    assert!(found.looked_at.iter().any(|probe| probe.what.contains("OPENAI_API_KEY") && !probe.usable));
    assert!(found.looked_at.iter().any(|probe| probe.outcome.contains("FATHOM_LOCAL_SERVERS=off")));
}

#[tokio::test]
async fn servers_on_this_machine_are_found_and_told_apart() {
    let ollama = ScriptedServer::start_with(models(json!([]))).await;
    let other = ScriptedServer::start_with(models(json!([
        {"id": "text-embedding-3", "owned_by": "vllm"},
        {"id": "Qwen3-8B", "owned_by": "vllm", "max_model_len": 40960},
        {"id": "second", "owned_by": "vllm"},
    ])))
    .await;
    let places = format!("ollama={},llamacpp={}", ollama.port(), other.port());
    let environment = environment(&[("FATHOM_LOCAL_SERVERS", &places)]);
    let servers = probe_local_servers(&environment).await;
    assert_eq!(servers.len(), 2);
    assert_eq!((servers[0].provider.as_str(), servers[0].models.len()), ("ollama", 0));
    // It listens where llama.cpp was looked for, and says that it is another.
    assert_eq!(
        (servers[1].provider.as_str(), servers[1].models.as_slice()),
        ("vllm", &["Qwen3-8B".to_owned(), "second".to_owned()][..])
    );

    let found = detect(&environment, &LlmConfig::default()).await;
    assert_eq!((found.config.provider.as_str(), found.config.model_name.as_str()), ("vllm", "Qwen3-8B"));
    assert_eq!(found.config.base_url, Some(other.base_url()));
    assert!(found.reason.contains("vllm"), "{}", found.reason);
    assert!(other.requests().iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn the_window_is_taken_from_where_the_server_tells_it() {
    let server = ScriptedServer::start_with(models(json!([{"id": "gguf", "owned_by": "llamacpp"}]))).await;
    let environment = environment(&[("FATHOM_LOCAL_SERVERS", &format!("llamacpp={}", server.port()))]);
    let found = detect(&environment, &LlmConfig::default()).await;
    assert_eq!((found.config.provider.as_str(), found.config.max_context_length), ("llamacpp", Some(16_384)));
    let base = LlmConfig { max_context_length: Some(2048), ..LlmConfig::default() };
    assert_eq!(detect(&environment, &base).await.config.max_context_length, Some(2048));
}

#[tokio::test]
async fn mute_and_foreign_servers_hold_nothing_up() {
    let mute = ScriptedServer::start_with(|_| Reply::text("x").delay(Duration::from_secs(30))).await;
    let page = ScriptedServer::start_with(|_| Reply::status(200).body("<html>")).await;
    let strange = ScriptedServer::start_with(|_| Reply::json(&json!({"data": [1, {"id": 3}, null]}))).await;
    let places =
        format!("vllm={},sglang={},lmstudio={},nonsense,vllm=x", mute.port(), page.port(), strange.port());
    let environment = environment(&[("FATHOM_LOCAL_SERVERS", &places)]);
    let started = Instant::now();
    let found = detect(&environment, &LlmConfig::default()).await;
    assert_eq!(found.config.provider, "reader");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(found.looked_at.len() >= 3);
}

#[tokio::test]
async fn an_address_that_is_set_is_used() {
    let server = ScriptedServer::start_with(models(json!([{"id": "the-model"}]))).await;
    let base = LlmConfig { base_url: Some(server.base_url()), ..LlmConfig::default() };
    let found = detect(&environment(&[("OPENAI_API_KEY", "sk-1")]), &base).await;
    assert_eq!(
        (found.config.provider.as_str(), found.config.model_name.as_str()),
        ("openai_compatible", "the-model")
    );
}
