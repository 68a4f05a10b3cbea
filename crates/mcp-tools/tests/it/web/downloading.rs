//! `download_file_from_internet_to_sandbox`.

use mcp_tools::egress::{Egress, EgressOptions};
use serde_json::json;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::options;
use crate::python::client::client_with;

#[tokio::test]
async fn files_are_fetched_into_the_sandbox_by_the_policy() {
    let server = MockServer::start().await;
    let table = ResponseTemplate::new(200)
        .insert_header("Content-Disposition", "attachment; filename=\"table.csv\"")
        .set_body_string("a,b\n1,2\n");
    Mock::given(path("/get")).respond_with(table).mount(&server).await;
    let large = ResponseTemplate::new(200).set_body_bytes(vec![0; 2000]);
    Mock::given(path("/large.bin")).respond_with(large).mount(&server).await;
    let inwards = ResponseTemplate::new(302).insert_header("Location", "http://10.0.0.1/secret");
    Mock::given(path("/inwards")).respond_with(inwards).mount(&server).await;
    let egress = Egress::new(EgressOptions { size_limit: 1 << 20, ..options() }).expect("a policy");
    let client = client_with(|options| {
        options.egress = Some(egress);
        options.file_limit = 1000;
    })
    .await;
    let tool = "download_file_from_internet_to_sandbox";
    let address = |at: &str| format!("{}{at}", server.uri());
    let reply = client.call(tool, json!({"sandbox_id": "default", "url": address("/get")})).await;
    assert!(!reply.is_error && reply.text.contains("which is `table.csv` for code"), "{}", reply.text);
    let named = json!({"sandbox_id": "default", "url": address("/get"), "sandbox_file_path": "data/t.csv"});
    assert!(!client.call(tool, named).await.is_error);
    let read =
        client.run("print(open('table.csv').read() == open('data/t.csv').read() == 'a,b\\n1,2\\n')").await;
    assert_eq!(read.text, "True");
    for (arguments, expected) in [
        (json!({"url": address("/large.bin")}), "larger than 1000 bytes"),
        (json!({"url": address("/inwards")}), "redirects to something that is refused"),
        (json!({"url": address("/missing")}), "answered with status 404"),
        (json!({"url": "http://10.0.0.1/"}), "is a private address"),
        (json!({"url": "https://huggingface.co/datasets/x/resolve/main/a.json"}), "it is blocked"),
        (
            json!({"url": address("/get"), "sandbox_file_path": "../x"}),
            "is not the path of a file in the sandbox",
        ),
        (json!({"url": address("/get"), "sandbox_id": "nobody"}), "There is no sandbox `nobody`"),
    ] {
        let reply = client.call(tool, arguments).await;
        assert!(reply.is_error && reply.text.contains(expected), "{expected}: {}", reply.text);
    }
    // The sandbox itself got no network by it.
    let tried = client.run(&format!("import urllib.request as u; u.urlopen('{}')", address("/get"))).await;
    assert!(tried.text.contains("Error"), "{}", tried.text);
}
