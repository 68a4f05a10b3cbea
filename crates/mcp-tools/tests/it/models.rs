//! Tools that ask a model: what is sent, and what becomes of the answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mcp_tools::egress::{Egress, EgressOptions};
use mcp_tools::servers::models::{
    MediaOptions, Transcriber, TranscriberOptions, TranscriptionOptions, reasoning_server,
    transcription_server, vision_server,
};
use mcp_tools::servers::planner;
use mcp_tools::{ModelAnswer, ModelError, ModelQuestion, ToolModel};
use serde_json::json;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::python::client::Client;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n rest";
const MP3: &[u8] = b"ID3 sound";

/// Keeps what it is asked, and says what it is told to.
struct Scripted {
    asked: Mutex<Vec<ModelQuestion>>,
    answer: Result<ModelAnswer, ModelError>,
}

#[async_trait]
impl ToolModel for Scripted {
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        self.asked.lock().expect("a lock").push(question);
        self.answer.clone()
    }

    fn name(&self) -> &str {
        "scripted"
    }
}

fn scripted(answer: Result<&str, ModelError>) -> Arc<Scripted> {
    let answer = answer.map(|text| ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() });
    Arc::new(Scripted { asked: Mutex::default(), answer })
}

fn egress() -> Egress {
    Egress::new(EgressOptions { allow_private: vec!["127.0.0.1".to_owned()], ..EgressOptions::default() })
        .expect("a way out")
}

fn media(folder: &tempfile::TempDir) -> MediaOptions {
    MediaOptions::new(vec![folder.path().to_owned()], egress())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [
        ("mill.png", PNG),
        ("tide.mp3", MP3),
        ("page.png", b"<!DOCTYPE html><p>"),
        ("film.bin", b"\0\0\0\x18ftypisom"),
    ] {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

#[tokio::test]
async fn pictures_go_to_the_model_with_the_question() {
    let folder = folder();
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/mill"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(PNG))
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .and(path("/gone"))
        .respond_with(ResponseTemplate::new(404))
        .mount(&server)
        .await;
    let model = scripted(Ok("A mill."));
    let open = Client::connect(
        vision_server("tool-vqa-os", model.clone(), media(&folder)),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    let all = Client::connect(
        vision_server("tool-vqa", model.clone(), media(&folder)),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    assert_eq!(open.tools().await[0].input_schema["required"], json!(["image_path_or_url", "question"]));
    assert_eq!(all.tools().await[0].input_schema["required"], json!(["media_path_or_url", "question"]));
    let local = json!({ "image_path_or_url": "mill.png", "question": "What is it?" });
    let reply = open.call("visual_question_answering", local).await;
    assert_eq!((reply.text.as_str(), reply.is_error), ("A mill.", false));
    let remote = json!({ "media_path_or_url": format!("{}/mill", server.uri()), "question": "And this?" });
    assert!(!all.call("visual_question_answering", remote).await.is_error);
    {
        let asked = model.asked.lock().expect("a lock");
        let seen: Vec<_> = asked
            .iter()
            .map(|question| {
                (
                    question.text.as_str(),
                    question.media[0].mime_type.as_str(),
                    question.media[0].data.as_slice(),
                )
            })
            .collect();
        assert_eq!(seen, [("What is it?", "image/png", PNG), ("And this?", "image/png", PNG)]);
        assert!(asked[0].system.as_deref().is_some_and(|system| system.contains("do not guess")));
    }
    for (source, question, part) in [
        ("page.png", "?", "looks like a web page"),
        ("tide.mp3", "?", "is audio/mpeg; this tool is for images"),
        ("film.bin", "?", "is video/mp4; this tool is for images"),
        ("missing.png", "?", "does not exist"),
        ("/etc/passwd", "?", "is not among the files"),
        ("ftp://host/x.png", "?", "no kind of address"),
        ("mill.png", " ", "`question` is empty"),
        ("", "?", "No file was named"),
        (&format!("{}/gone", server.uri()), "?", "status 404"),
    ] {
        let reply = open
            .call("visual_question_answering", json!({ "image_path_or_url": source, "question": question }))
            .await;
        assert!(reply.is_error && reply.text.contains(part), "{source}: {reply:?}");
    }
    assert_eq!(model.asked.lock().expect("a lock").len(), 2, "nothing that was refused was asked");
}

#[tokio::test]
async fn private_addresses_are_not_fetched() {
    let folder = folder();
    let closed = MediaOptions::new(Vec::new(), Egress::new(EgressOptions::default()).expect("a way out"));
    let model = scripted(Ok("no"));
    let client = Client::connect(vision_server("tool-vqa", model.clone(), closed), folder).await;
    let arguments = json!({ "media_path_or_url": "http://127.0.0.1:9/x.png", "question": "?" });
    let reply = client.call("visual_question_answering", arguments).await;
    assert!(reply.is_error && reply.text.contains("refused"), "{reply:?}");
    assert!(model.asked.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn recordings_are_written_down() {
    let folder = folder();
    let server = MockServer::start().await;
    let busy = ResponseTemplate::new(503);
    Mock::given(path("/v1/audio/transcriptions")).respond_with(busy).up_to_n_times(1).mount(&server).await;
    let words = ResponseTemplate::new(200).set_body_json(json!({ "text": "The tide is out." }));
    Mock::given(path("/v1/audio/transcriptions")).respond_with(words).mount(&server).await;
    let transcriber = Transcriber::new(
        TranscriberOptions {
            api_key: Some("secret-key".into()),
            pause: Duration::from_millis(1),
            ..TranscriberOptions::new(format!("{}/v1/", server.uri()), "whisper-x")
        },
        egress(),
    );
    assert!(!format!("{transcriber:?}").contains("secret-key"));
    let options = TranscriptionOptions { transcriber, model: None, media: media(&folder) };
    let client = Client::connect(
        transcription_server("tool-transcribe-os", options.clone()),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    let tools: Vec<_> = client.tools().await.into_iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(tools, ["audio_transcription"]);
    let reply = client.call("audio_transcription", json!({ "audio_path_or_url": "tide.mp3" })).await;
    assert_eq!((reply.text.as_str(), reply.is_error), ("The tide is out.", false));
    let requests = server.received_requests().await.expect("requests");
    let [_, request] = requests.as_slice() else { panic!("two tries") };
    assert_eq!(request.method.as_str(), "POST");
    assert_eq!(request.headers["authorization"], "Bearer secret-key");
    let kind = request.headers["content-type"].to_str().expect("a header");
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("a form");
    let body = String::from_utf8_lossy(&request.body);
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    assert!(parts.len() == 5 && parts[4] == "--\r\n", "{body}");
    assert!(parts[1].contains("name=\"model\"\r\n\r\nwhisper-x\r\n"), "{body}");
    assert!(parts[2].contains("name=\"response_format\"\r\n\r\njson\r\n"), "{body}");
    assert!(
        parts[3].contains("filename=\"recording.mp3\"\r\ncontent-type: audio/mpeg\r\n\r\nID3 sound\r\n"),
        "{body}"
    );
    let reply = client.call("audio_transcription", json!({ "audio_path_or_url": "mill.png" })).await;
    assert!(reply.is_error && reply.text.contains("this tool is for recordings"), "{reply:?}");

    // Where nothing hears, a question gets the words.
    let asking = Client::connect(
        transcription_server("tool-transcribe", options.clone()),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    let question = json!({ "audio_path_or_url": "tide.mp3", "question": "What of the tide?" });
    let reply = asking.call("audio_question_answering", question.clone()).await;
    assert!(
        reply.text.contains("No model that hears") && reply.text.ends_with("The tide is out."),
        "{reply:?}"
    );
    let model = scripted(Ok("It is out."));
    let hearing = TranscriptionOptions { model: Some(model.clone()), ..options };
    let asking = Client::connect(
        transcription_server("tool-transcribe", hearing),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    assert_eq!(asking.call("audio_question_answering", question).await.text, "It is out.");
    let asked = model.asked.lock().expect("a lock");
    assert_eq!(
        (asked[0].text.as_str(), asked[0].media[0].mime_type.as_str()),
        ("What of the tide?", "audio/mpeg")
    );
}

#[tokio::test]
async fn a_refusal_is_told_at_once() {
    let folder = folder();
    let server = MockServer::start().await;
    let refusal = ResponseTemplate::new(401).set_body_json(json!({ "error": { "message": "wrong key" } }));
    Mock::given(method("POST")).respond_with(refusal).expect(1).mount(&server).await;
    let transcriber = Transcriber::new(TranscriberOptions::new(server.uri(), "whisper-x"), egress());
    let options = TranscriptionOptions { transcriber, model: None, media: media(&folder) };
    let client = Client::connect(
        transcription_server("tool-transcribe-os", options),
        tempfile::tempdir().expect("a directory"),
    )
    .await;
    let reply = client.call("audio_transcription", json!({ "audio_path_or_url": "tide.mp3" })).await;
    assert!(reply.is_error && reply.text.contains("status 401: wrong key"), "{reply:?}");
}

#[tokio::test]
async fn hard_questions_go_to_the_model() {
    let check = async |answer: Result<&str, ModelError>, expected: &str, is_error: bool| {
        let model = scripted(answer);
        let server = reasoning_server("tool-reasoning-os", model.clone());
        let client = Client::connect(server, tempfile::tempdir().expect("a directory")).await;
        let reply = client.call("reasoning", json!({ "question": "Who is older?" })).await;
        assert!(reply.text.contains(expected) && reply.is_error == is_error, "{reply:?}");
        assert_eq!(model.asked.lock().expect("a lock")[0].text, "Who is older?");
    };
    check(Ok("She is."), "She is.", false).await;
    check(Ok(" "), "gave no answer", true).await;
    check(Err(ModelError::TooLong("9000 tokens".into())), "Ask something shorter", true).await;
    check(Err(ModelError::Failed("no route".into())), "scripted gave no answer: no route", true).await;
}

#[tokio::test]
async fn a_plan_is_kept_between_calls() {
    let client = Client::connect(planner::server(), tempfile::tempdir().expect("a directory")).await;
    let names: Vec<_> = client.tools().await.into_iter().map(|tool| tool.name.to_string()).collect();
    for name in ["add_todo", "list_todos", "complete_todo", "delete_todo"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(client.call("list_todos", json!({})).await.text.contains("The list is empty"));
    let added = client.call("add_todo", json!({ "titles": ["find the mill", "date it", "write"] })).await;
    assert_eq!(
        added.text,
        "Added: 1, 2, 3.\n\n0 of 3 done:\n1. [ ] find the mill\n2. [ ] date it\n3. [ ] write"
    );
    assert!(
        client.call("complete_todo", json!({ "todo_ids": ["1", 2] })).await.text.starts_with("Done: 1, 2.")
    );
    assert!(client.call("delete_todo", json!({ "todo_ids": ["3"] })).await.text.starts_with("Deleted: 3."));
    let unknown = client.call("complete_todo", json!({ "todo_ids": ["1", "7"] })).await;
    assert!(
        unknown.is_error && unknown.text.contains("no item has the id `7`; there are 1, 2"),
        "{unknown:?}"
    );
    // Arguments as models write them, and what is wrong with those that cannot be meant.
    let more = json!({ "titles": "[\"weigh the stone\"]" });
    assert!(client.call("add_todo", more).await.text.starts_with("Added: 4."));
    assert!(client.call("delete_todo", json!({ "todo_ids": [4] })).await.text.starts_with("Deleted: 4."));
    let single = client.call("add_todo", json!({ "titles": "a" })).await;
    assert!(
        single.is_error
            && single.text
                == "The arguments of `add_todo` do not fit: `titles` is to be a list, not the string \"a\".",
        "{single:?}"
    );
    assert_eq!(
        client.call("list_todos", json!({})).await.text,
        "2 of 2 done:\n1. [x] find the mill\n2. [x] date it"
    );
}
