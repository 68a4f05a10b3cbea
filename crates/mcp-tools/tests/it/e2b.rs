//! `tool-python` over E2B's interface, against a server of this machine that speaks it.

use mcp_tools::egress::{Egress, EgressOptions};
use mcp_tools::servers::python::e2b::{self, E2bOptions};
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path, query_param};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::python::client::Client;

fn framed(flags: u8, message: &Value) -> Vec<u8> {
    let json = message.to_string().into_bytes();
    let mut out = vec![flags];
    out.extend_from_slice(&u32::try_from(json.len()).expect("a length").to_be_bytes());
    out.extend(json);
    out
}

async fn service() -> MockServer {
    let server = MockServer::start().await;
    let made = json!({ "sandboxID": "box1", "clientID": "6532622b", "envdVersion": "0.2.0", "envdAccessToken": "token" });
    Mock::given(method("POST"))
        .and(path("/sandboxes"))
        .and(header("x-api-key", "key"))
        .and(body_partial_json(json!({ "templateID": "code-interpreter-v1", "secure": true })))
        .respond_with(ResponseTemplate::new(201).set_body_json(made))
        .mount(&server)
        .await;
    let lines = "{\"type\":\"stdout\",\"text\":\"hello\\n\"}\n{\"type\":\"result\",\"text\":\"4\",\"is_main_result\":true}\n{\"type\":\"end_of_execution\"}\n";
    Mock::given(method("POST"))
        .and(path("/execute"))
        .and(header("e2b-sandbox-id", "box1"))
        .and(header("e2b-sandbox-port", "49999"))
        .and(header("x-access-token", "token"))
        .respond_with(ResponseTemplate::new(200).set_body_string(lines))
        .mount(&server)
        .await;
    let mut stream = framed(0, &json!({ "event": { "start": { "pid": 5 } } }));
    stream.extend(framed(0, &json!({ "event": { "data": { "stdout": "bGlzdGVkCg==" } } })));
    stream.extend(framed(0, &json!({ "event": { "end": { "exitCode": 2, "exited": true, "status": "exit status 2", "error": "exit status 2" } } })));
    stream.extend(framed(2, &json!({})));
    Mock::given(method("POST"))
        .and(path("/process.Process/Start"))
        .and(header("e2b-sandbox-port", "49983"))
        .and(header("content-type", "application/connect+json"))
        .and(header("authorization", "Basic dXNlcjo="))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(stream))
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/files"))
        .and(query_param("path", "data/in.txt"))
        .and(query_param("username", "user"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!([])))
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .and(path("/files"))
        .and(query_param("path", "out/plot.png"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(&b"picture"[..]))
        .mount(&server)
        .await;
    Mock::given(method("DELETE"))
        .and(path("/sandboxes/box1"))
        .and(header("x-api-key", "key"))
        .respond_with(ResponseTemplate::new(204))
        .mount(&server)
        .await;
    server
}

fn options(server: &MockServer, folder: &tempfile::TempDir) -> E2bOptions {
    let egress = Egress::new(EgressOptions::default()).expect("a way out");
    E2bOptions {
        api_url: server.uri(),
        sandbox_url: Some(server.uri()),
        allowed_roots: vec![folder.path().to_owned()],
        downloads: Some(folder.path().join("files")),
        ..E2bOptions::new("key", egress)
    }
}

#[tokio::test]
async fn every_tool_is_carried_out_by_the_service() {
    let server = service().await;
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("in.txt"), "given").expect("a file");
    let made = options(&server, &folder);
    assert!(!format!("{made:?}").contains("\"key\""));
    let client = Client::connect(e2b::server(made), tempfile::tempdir().expect("a directory")).await;
    assert_eq!(client.tools().await.len(), 6);
    let check = async |tool: &'static str, arguments: Value, expected: &str, is_error: bool| {
        let reply = client.call(tool, arguments).await;
        assert!(reply.text.contains(expected) && reply.is_error == is_error, "{tool}: {reply:?}");
    };
    check("create_sandbox", json!({ "timeout": 90 }), "sandbox_id: box1", false).await;
    check("run_python_code", json!({ "code_block": "2+2", "sandbox_id": "box1" }), "hello\n4", false).await;
    check("run_command", json!({ "command": "ls", "sandbox_id": "box1" }), "listed\n[exit code 2]", false)
        .await;
    check(
        "upload_file_from_local_to_sandbox",
        json!({ "sandbox_id": "box1", "local_file_path": "in.txt", "sandbox_file_path": "data/in.txt" }),
        "Copied to `data/in.txt` in the sandbox (5 bytes)",
        false,
    )
    .await;
    let taken = json!({ "sandbox_id": "box1", "sandbox_file_path": "out/plot.png" });
    check("download_file_from_sandbox_to_local", taken.clone(), "plot.png (7 bytes)", false).await;
    assert_eq!(std::fs::read(folder.path().join("files/plot.png")).expect("a file"), b"picture");
    check("download_file_from_sandbox_to_local", taken, "is not overwritten", true).await;
    check(
        "upload_file_from_local_to_sandbox",
        json!({ "sandbox_id": "box1", "local_file_path": "/etc/passwd" }),
        "is not among the files",
        true,
    )
    .await;
    check(
        "download_file_from_internet_to_sandbox",
        json!({ "sandbox_id": "box1", "url": format!("{}/execute", server.uri()) }),
        "refused",
        true,
    )
    .await;
    check(
        "run_python_code",
        json!({ "code_block": "1", "sandbox_id": "box9" }),
        "There is no sandbox `box9`",
        false,
    )
    .await;
    check(
        "upload_file_from_local_to_sandbox",
        json!({ "sandbox_id": "box9", "local_file_path": "in.txt" }),
        "did nothing",
        true,
    )
    .await;
    client.stop().await;

    let requests = server.received_requests().await.expect("requests");
    let of = |name: &str, place: &str| -> Vec<&Request> {
        requests
            .iter()
            .filter(|request| request.method.as_str() == name && request.url.path() == place)
            .collect()
    };
    let created: Value = serde_json::from_slice(&of("POST", "/sandboxes")[0].body).expect("JSON");
    assert_eq!(created["timeout"], 90);
    let code: Value = serde_json::from_slice(&of("POST", "/execute")[0].body).expect("JSON");
    assert_eq!(code["code"], "2+2");
    let started = &of("POST", "/process.Process/Start")[0].body;
    let message: Value = serde_json::from_slice(&started[5..]).expect("JSON");
    assert_eq!(message["process"]["args"], json!(["-l", "-c", "ls"]));
    assert_eq!(
        usize::try_from(u32::from_be_bytes([started[1], started[2], started[3], started[4]]))
            .expect("a length"),
        started.len() - 5
    );
    let uploaded = String::from_utf8_lossy(&of("POST", "/files")[0].body).into_owned();
    assert!(uploaded.contains("name=\"file\"") && uploaded.contains("\r\n\r\ngiven\r\n--"), "{uploaded}");
    // The sandbox for the unknown id, and the one that was kept until the server ended.
    assert_eq!(of("DELETE", "/sandboxes/box1").len(), 2);
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let server = MockServer::start().await;
    let refusal =
        ResponseTemplate::new(401).set_body_json(json!({ "code": 401, "message": "Invalid API key" }));
    Mock::given(path("/sandboxes")).respond_with(refusal).mount(&server).await;
    let folder = tempfile::tempdir().expect("a directory");
    let client =
        Client::connect(e2b::server(options(&server, &folder)), tempfile::tempdir().expect("a directory"))
            .await;
    let reply = client.call("run_python_code", json!({ "code_block": "1" })).await;
    assert!(
        reply.is_error && reply.text.contains("status 401 (Invalid API key). Check E2B_API_KEY."),
        "{reply:?}"
    );
}
