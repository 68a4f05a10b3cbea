//! What is written, what is read back, and what is said where a replay parts from its recording.

use std::path::Path;
use std::sync::Arc;

use core_protocol::{Completion, ContentBlock, FinishReason, Message, ToolDefinition, Usage};
use serde_json::{Map, Value, json};

use super::difference::describe;
use super::reader::parse;
use super::{CassetteError, CassetteWriter, Header, ModelProfile, Player, Scrub};
use crate::{CallEvent, Capabilities, ChatRequest, Endpoint, LlmConfig, LlmError, RetryConfig, Tokenizer};

fn plain() -> Scrub {
    Arc::new(|line| line)
}

fn hiding(secret: &'static str) -> Scrub {
    Arc::new(move |line| line.replace(secret, "***"))
}

fn header() -> Header {
    let mut facts = Map::new();
    facts.insert("date".to_owned(), json!("2026-11-22"));
    Header {
        program: "test 1".to_owned(),
        recorded: "2026-11-22T01:02:03Z".to_owned(),
        model: ModelProfile {
            provider: "openai".to_owned(),
            model: "gpt".to_owned(),
            capabilities: Capabilities { images: true, ..Capabilities::default() },
            tokenizer: Tokenizer::QuarterOfBytes,
            config: LlmConfig {
                retries: RetryConfig { base_wait: 500.0, ..RetryConfig::default() },
                ..LlmConfig::default()
            },
            max_context_length: 12_345,
            facts: Map::new(),
        },
        facts,
    }
}

fn request(texts: &[&str]) -> ChatRequest {
    let messages = texts.iter().enumerate().map(|(index, text)| {
        Arc::new(if index % 2 == 0 { Message::user(*text) } else { Message::assistant(*text) })
    });
    ChatRequest::new("Be exact.", messages.collect())
}

fn reply(text: &str) -> Completion {
    let thinking = ContentBlock::Thinking { text: "hm".into(), signature: Some("s".into()) };
    let mut message = Message::assistant(text);
    message.content.insert(0, thinking);
    let usage = Some(Usage { input: 10, output: 2, ..Usage::default() });
    Completion {
        message,
        finish_reason: FinishReason::Other("eos".into()),
        usage,
        model: Some("gpt-x".into()),
    }
}

fn busy() -> LlmError {
    let endpoint =
        Arc::new(Endpoint { provider: "openai".into(), model: "gpt".into(), ..Endpoint::default() });
    LlmError::RateLimited {
        endpoint,
        retry_after: Some(std::time::Duration::from_secs(60)),
        detail: "slowly".into(),
    }
}

/// Records exchanges with a model and gives the file's text.
fn recorded(path: &Path, scrub: Scrub, exchanges: &[(ChatRequest, Result<Completion, LlmError>)]) -> String {
    let writer = CassetteWriter::create(path, &header(), scrub).unwrap();
    for (request, result) in exchanges {
        writer.model(request, result).unwrap();
    }
    writer.close().unwrap();
    std::fs::read_to_string(path).unwrap()
}

async fn ask(player: &Arc<Player>, request: &ChatRequest) -> Result<Completion, LlmError> {
    player.client().complete(request, &mut |_| {}).await.map(|outcome| outcome.completion)
}

#[tokio::test]
async fn what_was_recorded_is_answered_in_any_order_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let (one, two) = (request(&["one"]), request(&["one", "reply", "two"]));
    let text = recorded(
        &path,
        plain(),
        &[
            (one.clone(), Ok(reply("first"))),
            (one.clone(), Ok(reply("second"))),
            (two.clone(), Ok(reply("third"))),
        ],
    );
    assert_eq!(text.matches(r#""kind":"part""#).count(), 4, "each part once: {text}");
    let player = Arc::new(Player::open(&path, plain()).unwrap());
    assert_eq!((player.header(), player.exchanges()), (&header(), 3));
    assert_eq!(ask(&player, &two).await.unwrap(), reply("third"));
    assert_eq!(ask(&player, &one).await.unwrap(), reply("first"));
    let unused = player.unused();
    assert_eq!(unused.len(), 1);
    assert!(
        unused[0].starts_with("request to the model (") && unused[0].ends_with("a.jsonl:5)"),
        "{unused:?}"
    );
    assert_eq!(ask(&player, &one).await.unwrap(), reply("second"));
    assert!(player.unused().is_empty());
    let error = ask(&player, &one).await.unwrap_err();
    assert_eq!(error.kind(), "replay_mismatch");
    assert!(error.is_permanent() && !error.is_retryable() && error.hint().is_some());
    assert!(error.to_string().contains("has been used up"), "{error}");
}

#[tokio::test]
async fn failed_tries_are_played_again_without_their_pauses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let one = request(&["one"]);
    recorded(
        &path,
        plain(),
        &[
            (one.clone(), Err(busy())),
            (
                one.clone(),
                Err(LlmError::Unsupported { endpoint: Arc::default(), feature: "native tool calling" }),
            ),
        ],
    );
    let player = Arc::new(Player::open(&path, plain()).unwrap());
    let client = player.client();
    assert_eq!((client.max_context_length(), client.provider_name()), (12_345, "openai"));
    assert!(client.capabilities().images && client.limiter().is_none());
    let mut waits = Vec::new();
    let result = client
        .complete(&one, &mut |event| {
            if let CallEvent::Retry { wait, .. } = event {
                waits.push(wait.as_secs());
            }
        })
        .await;
    assert!(
        matches!(result, Err(LlmError::Unsupported { feature: "native tool calling", .. })),
        "{result:?}"
    );
    assert_eq!(waits, [60]);
}

#[tokio::test]
async fn a_request_that_differs_is_told_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let long = format!("{}the year was 1851 in all sources{}", "x".repeat(300), "y".repeat(300));
    recorded(
        &path,
        plain(),
        &[(request(&["one"]), Ok(reply("first"))), (request(&["one", "reply", &long]), Ok(reply("second")))],
    );
    let check = |request: ChatRequest, parts: &'static [&'static str]| {
        let path = path.clone();
        async move {
            let player = Arc::new(Player::open(&path, plain()).unwrap());
            let error = ask(&player, &request).await.unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{error}\n  does not say {part}");
            }
            assert!(error.len() < 1000, "{error}");
        }
    };
    check(
        request(&["one", "reply", &long.replace("1851", "1815")]),
        &[
            "a.jsonl",
            "request to the model 1.",
            "request to the model 2 on line 7",
            "message 3 (user) at content[0].text, line 1, character 316",
            "the year was 1851 in all",
            "the year was 1815 in all",
        ],
    )
    .await;
    check(request(&["two"]), &["message 1 (user)", "\"one\"", "\"two\""]).await;
    check(request(&["one", "reply"]), &["has 3 messages, and 2 are asked"]).await;
    check(
        request(&["one", "reply", &long, "more"]),
        &["has 3 messages, and 4 are asked", "message 4 (assistant)"],
    )
    .await;
    let mut other = request(&["one"]);
    other.system = "Be brief.".into();
    check(other, &["the system prompt, line 1, character 4", "Be exact.", "Be brief."]).await;
    let mut other = request(&["one"]);
    other.continue_final_message = true;
    check(other, &["continue_final_message: recorded false, asked true"]).await;
    let mut other = request(&["one"]);
    let tool = ToolDefinition {
        server: "s".into(),
        name: "t".into(),
        description: "d".into(),
        input_schema: json!({}),
    };
    other.tools = Arc::from([tool]);
    check(other, &["the tools", "recorded: null"]).await;
    // How many tokens may follow is no part of the question.
    let player = Arc::new(Player::open(&path, plain()).unwrap());
    let mut other = request(&["one"]);
    other.max_tokens = Some(7);
    assert_eq!(ask(&player, &other).await.unwrap(), reply("first"));
}

#[tokio::test]
async fn secrets_stay_out_and_do_not_get_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let with_secret = request(&["my key is sk-secret-123, and yours?"]);
    let text =
        recorded(&path, hiding("sk-secret-123"), &[(with_secret.clone(), Ok(reply("sk-secret-123 too")))]);
    assert!(!text.contains("sk-secret") && text.contains("my key is ***"), "{text}");
    let player = Arc::new(Player::open(&path, hiding("sk-secret-123")).unwrap());
    assert_eq!(ask(&player, &with_secret).await.unwrap(), reply("*** too"));
}

#[test]
fn exchanges_of_other_kinds_are_matched_by_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let writer = CassetteWriter::create(&path, &header(), plain()).unwrap();
    writer.exchange("tool", "web/search", json!({"q": "a", "n": 1}), json!("found a")).unwrap();
    writer.exchange("tool", "web/search", json!({"q": "b"}), json!("found b")).unwrap();
    drop(writer);
    let player = Player::open(&path, plain()).unwrap();
    assert_eq!(player.answer("tool", "web/search", &json!({"q": "b"})).unwrap(), json!("found b"));
    let error = player.answer("tool", "web/search", &json!({"q": "c"})).unwrap_err().to_string();
    for part in ["tool call 2 (web/search)", "line 2", "at q", "\"a\"", "\"c\""] {
        assert!(error.contains(part), "{error}");
    }
    // The order of keys is no difference.
    assert_eq!(player.answer("tool", "web/search", &json!({"n": 1, "q": "a"})).unwrap(), json!("found a"));
    let error = player.answer("tool", "web/search", &json!({"q": "a", "n": 1})).unwrap_err().to_string();
    assert!(error.contains("has been used up"), "{error}");
    let error = player.answer("judge", "", &json!(1)).unwrap_err().to_string();
    assert!(error.contains("no judge call was recorded"), "{error}");
}

#[test]
fn a_torn_cassette_is_read_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let exchanges: Vec<_> = (0..3).map(|n| (request(&[&format!("köpfe {n}")]), Ok(reply("é")))).collect();
    let text = recorded(&path, plain(), &exchanges);
    let bytes = text.as_bytes();
    let first_line = text.find('\n').unwrap();
    for end in 0..bytes.len() {
        let torn = String::from_utf8_lossy(&bytes[..end]);
        let read = parse(&torn, "x");
        // A header without its line end is whole all the same.
        assert_eq!(read.is_ok(), end >= first_line, "{end}");
        if let Ok(read) = read {
            let whole = torn.matches("\"kind\":\"exchange\"").count();
            assert!(read.exchanges.len() <= whole && read.exchanges.len() + 1 >= whole);
        }
    }
}

#[test]
fn what_is_no_cassette_is_named_with_its_line() {
    let head = serde_json::to_string(&json!({"kind": "cassette", "version": 1})).unwrap();
    let good = {
        let dir = tempfile::tempdir().unwrap();
        recorded(&dir.path().join("a"), plain(), &[])
    };
    let check = |text: &str, parts: &[&str]| {
        let error = parse(text, "file.jsonl").unwrap_err();
        assert!(matches!(error, CassetteError::Format { .. }));
        let message = error.to_string();
        for part in parts {
            assert!(message.contains(part), "{message} does not say {part}");
        }
        assert!(!error.hint().is_empty() && error.kind() == "cassette");
    };
    check("", &["file.jsonl:1"]);
    check("hello\n", &["file.jsonl:1"]);
    check("{\"kind\":\"cassette\",\"version\":9}\n", &["version 9"]);
    check(&head, &["program"]);
    check(&format!("{good}nonsense\n{{}}\n"), &["file.jsonl:2"]);
    check(&format!("{good}{{\"kind\":\"part\",\"id\":5,\"value\":1}}\n"), &["file.jsonl:2", "part 5"]);
    let dangling = json!({"kind": "exchange", "of": "model", "request": {"system": 3, "messages": []}, "response": null});
    check(&format!("{good}{dangling}\n"), &["part 3 is missing"]);
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    std::fs::write(&path, "kept").unwrap();
    let error = CassetteWriter::create(&path, &header(), plain()).unwrap_err();
    assert!(error.to_string().contains("a.jsonl") && error.to_string().contains("there already"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    let error = Player::open(&dir.path().join("absent"), plain()).unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
}

#[test]
fn differences_are_short_and_exact() {
    let check = |recorded: Value, asked: Value, parts: &[&str]| {
        let told = describe(&recorded, &asked);
        for part in parts {
            assert!(told.contains(part), "{told} does not say {part}");
        }
    };
    check(json!("same é1"), json!("same é2"), &["line 1, character 7", "\"same é1\"", "\"same é2\""]);
    check(json!("a\nb"), json!("a\nc"), &["line 2, character 1"]);
    check(json!("ab"), json!("a"), &["character 2", "\"ab\"", "\"a\""]);
    check(
        json!({"a": [1, {"b": 2}]}),
        json!({"a": [1, {"b": 3}]}),
        &["at a[1].b", "recorded: 2", "asked:    3"],
    );
    check(json!({"a": 1}), json!({"a": 1, "b": null}), &["at b", "recorded: nothing", "asked:    null"]);
    check(json!([1, 2]), json!([1]), &["at [1]", "recorded: 2", "asked:    nothing"]);
    check(json!("x".repeat(500)), json!(3), &["…", "asked:    3"]);
    check(json!(1), json!(1), &["nothing that can be told"]);
}
