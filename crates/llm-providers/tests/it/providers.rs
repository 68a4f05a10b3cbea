//! Names, data files and what wins over what.

use std::sync::Arc;

use core_protocol::Usage;
use llm_providers::{Environment, LlmClient, LlmConfig, LlmError, Registry};

use crate::common::{complete, question};
use crate::scripted_server::{Reply, ScriptedServer};

fn llm(yaml: &str) -> LlmConfig {
    serde_yaml::from_str(yaml).unwrap()
}

fn build(yaml: &str, environment: &[(&str, &str)]) -> Result<LlmClient, LlmError> {
    let environment: Environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    LlmClient::from_config(&llm(yaml), &environment)
}

#[test]
fn unknown_names_are_told_with_the_nearest() {
    let check =
        |name: &str, nearest: Option<&str>| match build(&format!("{{provider: {name}, model_name: m}}"), &[])
        {
            Err(LlmError::UnknownProvider { nearest: found, known, .. }) => {
                assert_eq!(found.as_deref(), nearest, "{name}");
                assert!(known.iter().any(|known| known == "openai_compatible"));
            }
            other => panic!("{name}: {other:?}"),
        };
    check("opnai", Some("openai"));
    check("Anthropic", Some("anthropic"));
    check("vlm", Some("vllm"));
    check("something-else-entirely", None);
    let error = build("{provider: olama}", &[]).unwrap_err();
    assert!(error.to_string().contains("llm.provider") && error.to_string().contains("ollama"));
    assert_eq!(error.hint().as_deref(), Some("did you mean `ollama`?"));
}

#[test]
fn what_is_missing_is_said_before_anything_is_sent() {
    let check = |yaml: &str, kind: &str, words: &[&str]| {
        let error = build(yaml, &[]).unwrap_err();
        let shown = format!("{error} {}", error.hint().unwrap_or_default());
        assert_eq!(error.kind(), kind, "{yaml}: {shown}");
        assert!(error.is_permanent());
        for word in words {
            assert!(shown.contains(word), "{yaml}: {shown}");
        }
    };
    check("{provider: openai}", "missing_key", &["OPENAI_API_KEY", "llm.api_key"]);
    check("{provider: anthropic}", "missing_key", &["ANTHROPIC_API_KEY"]);
    check("{provider: qwen, model_name: m}", "configuration", &["llm.base_url"]);
    check("{provider: vllm}", "configuration", &["llm.model_name"]);
    check(
        "{provider: vllm, model_name: m, base_url: 'localhost:8000/v1'}",
        "configuration",
        &["llm.base_url", "http://"],
    );
    check("{provider: vllm, model_name: m, max_tokens: 0}", "configuration", &["llm.max_tokens"]);
    check(
        "{provider: vllm, model_name: m, tool_protocol: native, quirks: {native_tools: false}}",
        "configuration",
        &["llm.tool_protocol"],
    );
    check("{provider: auto}", "configuration", &["auto"]);
}

#[test]
fn explicit_configuration_wins_over_environment_and_data() {
    let environment = [
        ("OPENAI_API_KEY", "sk-from-the-environment"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
        ("OPENAI_MODEL", "gpt-4o"),
    ];
    let client = build("{provider: openai}", &environment).unwrap();
    assert_eq!((client.model(), client.max_context_length()), ("gpt-4o", 128_000));
    assert_eq!(client.describe()["base_url"], "http://127.0.0.1:9/v1");
    let yaml = "{provider: openai, model_name: gpt-5-mini, base_url: 'https://own/v1', max_context_length: 32768, price: {input: 1, output: 2}}";
    let client = build(yaml, &environment).unwrap();
    assert_eq!((client.model(), client.max_context_length()), ("gpt-5-mini", 32_768));
    assert_eq!(client.describe()["base_url"], "https://own/v1");
    assert_eq!(client.cost(&Usage { input: 1_000_000, ..Usage::default() }), Some(1.0));
}

#[test]
fn windows_and_prices_come_from_the_data() {
    let check = |yaml: &str, context: u64, cost: Option<f64>| {
        let client = build(yaml, &[]).unwrap();
        assert_eq!(client.max_context_length(), context, "{yaml}");
        let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        assert_eq!(client.cost(&usage).map(|cost| (cost * 100.0).round() / 100.0), cost, "{yaml}");
    };
    check("{provider: openai, api_key: k, model_name: gpt-5-mini-2025-08-07}", 400_000, Some(2.25));
    check("{provider: openai, api_key: k, model_name: gpt-5.9-unheard-of}", 400_000, None);
    check("{provider: anthropic, api_key: k, model_name: claude-sonnet-4-5-20250929}", 200_000, Some(18.0));
    check(
        "{provider: qwen, base_url: 'http://h/v1', model_name: miromind-ai/MiroThinker-v1.0-72B}",
        262_144,
        None,
    );
    check("{provider: qwen, base_url: 'http://h/v1', model_name: something}", 65_536, None);
    check("{provider: deepseek, api_key: k}", 131_072, Some(0.7));
    // Whoever is paid by nobody says so; a price that is set stands all the same.
    check("{provider: reader}", 65_536, Some(0.0));
    check("{provider: reader, price: {input: 1, output: 2}}", 65_536, Some(3.0));
}

#[test]
fn every_built_in_provider_makes_a_client() {
    for name in Registry::builtin().names() {
        let yaml =
            format!("{{provider: {name}, model_name: m, api_key: k, base_url: 'http://127.0.0.1:9/v1'}}");
        let client = build(&yaml, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(client.provider_name(), name);
        assert!(client.max_context_length() >= 4096, "{name}");
    }
}

#[test]
fn the_reader_needs_nothing() {
    let client = build("{provider: reader}", &[]).unwrap();
    assert_eq!((client.provider_name(), client.model()), ("reader", "reader"));
}

#[tokio::test]
async fn a_data_file_of_ones_own_makes_a_provider() {
    let server = ScriptedServer::start(vec![Reply::text("mine")]).await;
    let mut registry = Registry::builtin();
    let yaml = format!(
        "title: Mine\nengine: openai\nbase_url: {}\nkey_variables: [MY_KEY]\ndefault_model: my-model\n\
         quirks: {{auth: api-key, headers: {{x-team: blue}}, max_tokens_field: limit, extra_body: {{mode: fast}}}}\n",
        server.base_url()
    );
    registry.add_data("mine", &yaml, "mine.yaml").unwrap();
    let environment = Environment::from([("MY_KEY", "key-of-my-own")]);
    let client = registry.client(&llm("{provider: mine, temperature: 0.5}"), &environment).unwrap();
    complete(&client, &question()).await;
    let sent = server.requests().remove(0);
    assert_eq!(sent.header("api-key"), Some("key-of-my-own"));
    assert_eq!(sent.header("x-team"), Some("blue"));
    assert_eq!(
        (&sent.body["limit"], &sent.body["mode"]),
        (&serde_json::json!(4096), &serde_json::json!("fast"))
    );
    assert!(registry.add_data("bad", "title: x", "bad.yaml").is_err());
}

#[test]
fn a_provider_of_ones_own_is_found_by_its_name() {
    let mut registry = Registry::builtin();
    registry.register("own", |config, _| {
        Err(LlmError::Configuration { message: format!("asked for {}", config.model_name), hint: None })
    });
    assert!(registry.names().contains(&"own".to_owned()));
    let error = registry.client(&llm("{provider: own, model_name: x}"), &Environment::default()).unwrap_err();
    assert_eq!(error.to_string(), "asked for x");
    registry.register("reader", |_, _| Ok(Arc::new(llm_providers::reader::ReaderProvider::new())));
    assert!(registry.client(&llm("{provider: reader}"), &Environment::default()).is_ok());
}

#[tokio::test]
async fn a_refused_setting_is_named_with_where_it_came_from() {
    let words = |message: &str| serde_json::json!({"error": {"message": message}}).to_string();
    let refusals = [
        (401, "no", "the key is from OPENAI_API_KEY in the environment"),
        (404, "The model does not exist", "the name is from OPENAI_MODEL in the environment"),
        (404, "Not Found", "the address is from OPENAI_BASE_URL in the environment"),
        (400, "Unsupported value: 'temperature'", "llm.temperature"),
    ];
    for (status, message, expected) in refusals {
        let refused = Reply::status(status).body(words(message));
        let server = ScriptedServer::start(vec![refused.clone(), refused]).await;
        let url = server.base_url();
        let environment = Environment::from([
            ("OPENAI_API_KEY", "sk-from-the-environment"),
            ("OPENAI_BASE_URL", url.as_str()),
            ("OPENAI_MODEL", "my-own"),
        ]);
        let client =
            LlmClient::from_config(&llm("{provider: openai, temperature: 0.2}"), &environment).unwrap();
        let error = client.complete(&question(), &mut |_| {}).await.unwrap_err();
        let hint = error.hint().unwrap();
        assert!(hint.contains(expected), "{error}: {hint}");
        assert!(error.is_permanent() && !hint.contains("sk-from"), "{hint}");
        assert_eq!(server.requests().len(), 1, "{error}");
        // What the configuration says itself is named as that.
        let own = LlmConfig {
            base_url: Some(url.clone()),
            ..llm("{provider: openai, model_name: m, api_key: sk-own-key}")
        };
        let error =
            LlmClient::from_config(&own, &environment).unwrap().complete(&question(), &mut |_| {}).await;
        let hint = error.unwrap_err().hint().unwrap();
        assert!(!hint.contains("in the environment"), "{hint}");
    }
}
