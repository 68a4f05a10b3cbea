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
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
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

/// Provider, its list of models, what it tells of its settings, the model that is taken, its window.
type RealList = (&'static str, Value, Option<Value>, &'static str, Option<u64>);

/// What the five servers really answer to a list of their models, shortened where nothing is read from.
fn real_lists() -> [RealList; 5] {
    [
        (
            "ollama",
            json!({"object": "list", "data": [
                {"id": "nomic-embed-text:latest", "object": "model", "created": 1758021210, "owned_by": "library"},
                {"id": "qwen3:8b", "object": "model", "created": 1758021205, "owned_by": "library"},
            ]}),
            None,
            "qwen3:8b",
            None,
        ),
        (
            "llamacpp",
            json!({
                "models": [{"name": "Qwen3-8B-Q4_K_M.gguf", "model": "Qwen3-8B-Q4_K_M.gguf", "type": "model",
                    "capabilities": ["completion"], "details": {"format": "gguf", "family": ""}}],
                "object": "list",
                "data": [{"id": "Qwen3-8B-Q4_K_M.gguf", "object": "model", "created": 1758021205, "owned_by": "llamacpp",
                    "meta": {"vocab_type": 2, "n_vocab": 151936, "n_ctx_train": 40960, "n_embd": 4096}}],
            }),
            Some(
                json!({"default_generation_settings": {"id": 0, "n_ctx": 8192, "speculative": false}, "total_slots": 1}),
            ),
            "Qwen3-8B-Q4_K_M.gguf",
            Some(8192),
        ),
        (
            "vllm",
            json!({"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "created": 1758021205,
                "owned_by": "vllm", "root": "Qwen/Qwen3-8B", "parent": null, "max_model_len": 40960,
                "permission": [{"id": "modelperm-1", "object": "model_permission", "allow_view": true}]}]}),
            None,
            "Qwen/Qwen3-8B",
            Some(40960),
        ),
        (
            "sglang",
            json!({"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "created": 1758021205,
                "owned_by": "sglang", "root": "Qwen/Qwen3-8B", "parent": null, "max_model_len": 32768}]}),
            None,
            "Qwen/Qwen3-8B",
            Some(32768),
        ),
        (
            "lmstudio",
            json!({"data": [
                {"id": "text-embedding-nomic-embed-text-v1.5", "object": "model", "owned_by": "organization_owner"},
                {"id": "qwen3-8b", "object": "model", "owned_by": "organization_owner"},
            ], "object": "list"}),
            None,
            "qwen3-8b",
            None,
        ),
    ]
}

#[tokio::test]
async fn each_local_server_is_known_by_what_it_says() {
    let mut places = Vec::new();
    let mut running = Vec::new();
    for (name, list, props, ..) in real_lists() {
        let server = ScriptedServer::start_with(move |request| match (request.path.as_str(), &props) {
            ("/v1/models", _) => Reply::json(&list),
            ("/props", Some(props)) => Reply::json(props),
            _ => Reply::status(404),
        })
        .await;
        places.push(format!("{name}={}", server.port()));
        running.push(server);
    }
    let all = environment(&[("FATHOM_LOCAL_SERVERS", &places.join(","))]);
    let found = probe_local_servers(&all).await;
    for ((server, (name, _, _, model, window)), running) in found.iter().zip(real_lists()).zip(&running) {
        assert_eq!((server.provider.as_str(), server.base_url.clone()), (name, running.base_url()));
        assert_eq!(
            (server.models.as_slice(), server.context_length),
            (&[model.to_owned()][..], window),
            "{name}"
        );
    }
    assert_eq!(found.len(), 5);
    // Whatever runs where another is looked for, it is taken for what it says it is; those that say nothing of
    // themselves (LM Studio's owner is anybody's) by the port.
    for (running, (name, _, _, model, window)) in running.iter().zip(real_lists()) {
        let elsewhere = environment(&[("FATHOM_LOCAL_SERVERS", &format!("sglang={}", running.port()))]);
        let detected = detect(&elsewhere, &LlmConfig::default()).await.config;
        assert_eq!((detected.provider.as_str(), detected.model_name.as_str()), (name, model));
        if name != "llamacpp" {
            assert_eq!(detected.max_context_length, window);
        }
    }
}

#[tokio::test]
async fn five_mute_servers_are_waited_for_at_once() {
    let mut places = Vec::new();
    let mut running = Vec::new();
    for name in ["ollama", "llamacpp", "vllm", "sglang", "lmstudio"] {
        let server = ScriptedServer::start_with(|_| Reply::text("x").delay(Duration::from_secs(30))).await;
        places.push(format!("{name}={}", server.port()));
        running.push(server);
    }
    let all = environment(&[("FATHOM_LOCAL_SERVERS", &places.join(","))]);
    assert!(probe_local_servers(&all).await.is_empty());
    let asked: Vec<_> = running.iter().map(|server| server.requests().first().unwrap().at).collect();
    let (first, last) = (asked.iter().min().unwrap(), asked.iter().max().unwrap());
    // One after another the last one would be asked after four limits of 250 ms.
    assert!(*last - *first < Duration::from_secs(1), "{:?}", *last - *first);
}
