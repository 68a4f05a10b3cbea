//! The models that tools ask, with real HTTP servers in their place.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use llm_providers::{Limiters, Registry};
use mcp_tools::{InProcessServer, ManagerOptions, ServerSpec, ToolManager, Transport};
use pipeline::config::{ConfigSources, Resolved, resolve};
use pipeline::{Places, RunClock, Wiring};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted_server::{Reply, ScriptedServer};

/// The configuration that these settings and variables come to.
fn configuration(sets: &[&str], variables: &[(&str, &str)]) -> Resolved {
    let sources = ConfigSources {
        sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        environment: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ConfigSources::default()
    };
    resolve(&sources).unwrap()
}

/// A built-in server as `fathom mcp serve` makes it.
fn server(name: &str, resolved: &Resolved, limiters: &Limiters, folder: &Path) -> Arc<dyn InProcessServer> {
    let places =
        Places { here: folder.into(), data: folder.into(), cache: folder.into(), runs: folder.into() };
    let wiring = Wiring {
        config: &resolved.config,
        limiters,
        clock: RunClock::default(),
        environment: &resolved.environment,
        conf: &resolved.conf,
        places: &places,
        configured: &[],
        configured_in: "mcp.json",
        docs: &[],
        run_dir: folder,
        files: &[],
    };
    wiring.built_in(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a tool answers, and whether it failed.
async fn call(server: Arc<dyn InProcessServer>, tool: &str, arguments: Value) -> (String, bool) {
    let name = server.name().to_owned();
    let spec = ServerSpec::new(name.clone(), Transport::InProcess(server));
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let outcome = manager.call(&name, tool, arguments, &CancellationToken::new()).await;
    manager.shutdown().await;
    (outcome.result.joined_text(), outcome.failure.is_some())
}

/// A short video, made by ffmpeg; none where it is not installed.
#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn film(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("film.mp4");
    let source = ["-v", "error", "-f", "lavfi", "-i", "testsrc=d=2:s=64x48:r=10", "-c:v", "mpeg4"];
    match Command::new("ffmpeg").args(source).arg(&path).status() {
        Ok(status) if status.success() => Some(path),
        other => {
            eprintln!("skipped: ffmpeg is not installed ({other:?})");
            None
        }
    }
}

/// The parts of the message that a request asks about.
fn parts(server: &ScriptedServer) -> Vec<Vec<String>> {
    let kinds = |body: &Value| {
        let content = body["messages"][1]["content"].as_array().cloned().unwrap_or_default();
        content.iter().map(|part| part["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    server.requests().iter().map(|request| kinds(&request.body)).collect()
}

#[tokio::test]
async fn a_video_goes_to_an_endpoint_of_ones_own_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let Some(film) = film(folder.path()) else { return };
    let asked = json!({ "media_path_or_url": film, "question": "What moves?" });
    let endpoint = ScriptedServer::start_with(|_| Reply::text("A counter.")).await;
    let url = endpoint.base_url();
    let variables = [("VISION_BASE_URL", url.as_str()), ("VISION_MODEL_NAME", "seeing")];
    let resolved = configuration(&[], &variables);
    let vision = server("tool-vqa", &resolved, &Limiters::new(), folder.path());
    assert_eq!(
        call(vision, "visual_question_answering", asked.clone()).await,
        ("A counter.".to_owned(), false)
    );
    assert_eq!(parts(&endpoint), [["video_url", "text"]]);
    let body = &endpoint.requests()[0].body;
    let sent = body["messages"][1]["content"][0]["video_url"]["url"].as_str().unwrap().to_owned();
    assert!(sent.starts_with("data:video/mp4;base64,AAAA"), "{}", &sent[..40]);
    // By pictures where that is asked for.
    let resolved = configuration(&["tools.models.video=stills"], &variables);
    let vision = server("tool-vqa", &resolved, &Limiters::new(), folder.path());
    call(vision, "visual_question_answering", asked).await;
    assert_eq!(parts(&endpoint)[1], ["image_url", "image_url", "image_url", "image_url", "text"]);
}

/// An endpoint that takes pictures only refuses it once, and is shown pictures from then on.
#[tokio::test]
async fn what_an_endpoint_refuses_it_is_shown_in_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let Some(film) = film(folder.path()) else { return };
    let endpoint = ScriptedServer::start_with(|request| {
        if request.body.to_string().contains("video_url") {
            Reply::status(400)
                .body(r#"{"error":{"message":"At most 0 video(s) may be provided in one prompt."}}"#)
        } else {
            Reply::text("A counter.")
        }
    })
    .await;
    let url = endpoint.base_url();
    let variables = [("VISION_BASE_URL", url.as_str()), ("VISION_MODEL_NAME", "seeing")];
    let resolved = configuration(&[], &variables);
    let vision = server("tool-vqa", &resolved, &Limiters::new(), folder.path());
    let asked = json!({ "media_path_or_url": film, "question": "What moves?" });
    for _ in 0..2 {
        let answer = call(Arc::clone(&vision), "visual_question_answering", asked.clone()).await;
        assert_eq!(answer, ("A counter.".to_owned(), false));
    }
    let pictures = ["image_url", "image_url", "image_url", "image_url", "text"].map(str::to_owned).to_vec();
    let video = ["video_url", "text"].map(str::to_owned).to_vec();
    assert_eq!(parts(&endpoint), [video, pictures.clone(), pictures]);
    let said = endpoint.requests()[1].body["messages"][1]["content"][4]["text"].to_string();
    assert!(
        said.contains("These 4 pictures were taken from a video of 2.0 s, in this order, at seconds 0.2"),
        "{said}"
    );
}

/// The run's model, a judge and the tools of a run ask one server with one key: one allowance for all of them.
#[tokio::test]
async fn tools_wait_their_turn_among_all_who_ask_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint =
        ScriptedServer::start_with(|_| Reply::text("An answer.").delay(Duration::from_millis(500))).await;
    let url = endpoint.base_url();
    let resolved = configuration(
        &[
            "llm.provider=vllm",
            "llm.model_name=m",
            "llm.api_key=one-key-0123",
            &format!("llm.base_url={url}"),
            "llm.concurrency.start=1",
            "llm.concurrency.ceiling=1",
        ],
        &[
            ("REASONING_BASE_URL", url.as_str()),
            ("REASONING_MODEL_NAME", "m"),
            ("REASONING_API_KEY", "one-key-0123"),
        ],
    );
    let limiters = Limiters::new();
    let run =
        Registry::builtin().client_sharing(&resolved.config.llm, &resolved.environment, &limiters).unwrap();
    let tool = server("tool-reasoning", &resolved, &limiters, folder.path());
    let waiting = run.limiter().unwrap().clone();
    let first = tokio::spawn(call(tool, "reasoning", json!({ "question": "Why?" })));
    // The tool has its turn; the run's own request waits.
    while waiting.status().in_flight == 0 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked =
        llm_providers::ChatRequest::new("s", vec![Arc::new(core_protocol::Message::user("And why not?"))]);
    let outcome = run.complete(&asked, &mut |_| ()).await.unwrap();
    assert!(outcome.waited > Duration::ZERO, "{:?}", outcome.waited);
    assert_eq!(first.await.unwrap(), ("An answer.".to_owned(), false));
    assert_eq!(limiters.all().len(), 1);
}

/// Offered to a client without a run, with nothing set up: every tool is there, and says what to do.
#[tokio::test]
async fn with_nothing_set_up_every_server_lists_its_tools_and_says_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n rest").unwrap();
    let resolved = configuration(&[], &[]);
    let limiters = Limiters::new();
    for name in pipeline::AVAILABLE {
        let spec = ServerSpec::new(
            (*name).to_owned(),
            Transport::InProcess(server(name, &resolved, &limiters, folder.path())),
        );
        let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
        assert!(!manager.definitions().is_empty(), "{name}");
        manager.shutdown().await;
    }
    for (name, tool, arguments, part) in [
        (
            "tool-vqa",
            "visual_question_answering",
            json!({"media_path_or_url": "a.png", "question": "?"}),
            "VISION_BASE_URL",
        ),
        (
            "tool-vqa-os",
            "visual_question_answering",
            json!({"image_path_or_url": "a.png", "question": "?"}),
            "VISION_BASE_URL",
        ),
        ("tool-transcribe", "audio_transcription", json!({"audio_path_or_url": "a.mp3"}), "WHISPER_BASE_URL"),
        (
            "tool-transcribe",
            "audio_question_answering",
            json!({"audio_path_or_url": "a.mp3", "question": "?"}),
            "OPENAI_API_KEY",
        ),
        (
            "tool-transcribe-os",
            "audio_transcription",
            json!({"audio_path_or_url": "a.mp3"}),
            "set `WHISPER_BASE_URL`",
        ),
        ("tool-reasoning", "reasoning", json!({"question": "?"}), "REASONING_BASE_URL"),
        ("tool-reasoning-os", "reasoning", json!({"question": "?"}), "REASONING_MODEL_NAME"),
        ("tool-sogou-search", "sogou_search", json!({"Query": "x"}), "TENCENTCLOUD"),
    ] {
        let (text, failed) = call(server(name, &resolved, &limiters, folder.path()), tool, arguments).await;
        assert!(failed && text.contains(part), "{name} {tool}: {text}");
    }
}

/// The model that reads pages is the one that a run would have.
#[tokio::test]
async fn pages_are_read_by_the_configured_model() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = ScriptedServer::start_with(|_| Reply::text("It was built in 1691.")).await;
    let page = "The tide mill of Saltgate was built in 1691. ".repeat(40);
    let web = ScriptedServer::start_with(move |_| {
        Reply::raw(format!("<html><body><article><h1>Mill</h1><p>{page}</p></article></body></html>"))
            .header("content-type", "text/html")
    })
    .await;
    let arguments = json!({ "url": web.root_url(), "info_to_extract": "When was it built?" });
    let url = endpoint.base_url();
    let open = "tools.egress.allow_private=[127.0.0.1]";
    let main = format!("llm.base_url={url}");
    for (sets, variables, expected) in [
        (vec![open], vec![], "SUMMARY_LLM_BASE_URL"),
        (
            vec![open, "llm.provider=openai_compatible", "llm.model_name=m", &main],
            vec![],
            "It was built in 1691.",
        ),
        (
            vec![open],
            vec![("SUMMARY_LLM_BASE_URL", url.as_str()), ("SUMMARY_LLM_MODEL_NAME", "small")],
            "It was built in 1691.",
        ),
        // One that cannot be asked is as good as none.
        (vec![open, "llm.provider=openai"], vec![], "SUMMARY_LLM_BASE_URL"),
    ] {
        let resolved = configuration(&sets, &variables);
        let scraper = server("jina_scrape_llm_summary", &resolved, &Limiters::new(), folder.path());
        let (text, failed) = call(scraper, "scrape_and_extract_info", arguments.clone()).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(!failed && answer["success"] == true, "{sets:?}: {text}");
        let info = answer["extracted_info"].as_str().unwrap();
        assert!(info.contains(expected), "{sets:?}: {info}");
    }
}
