//! The server `tool-reading` as a model meets it: real files.

use mcp_tools::servers::reading::{self, ReadingOptions};
use serde_json::json;

use crate::python::client::Client;

async fn client(options: ReadingOptions) -> Client {
    Client::connect(reading::server(options), tempfile::tempdir().expect("a directory")).await
}

#[tokio::test]
async fn the_tool_has_the_name_and_argument_that_prompts_use() {
    let tools = client(ReadingOptions::default()).await.tools().await;
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    assert_eq!(tool.name, "convert_to_markdown");
    assert_eq!(tool.input_schema["required"], json!(["uri"]));
    assert!(!tool.input_schema.contains_key("$schema"));
    assert_eq!(reading::named_server("tool-reader", ReadingOptions::default()).name(), "tool-reader");
}

#[tokio::test]
async fn documents_are_read_from_where_they_may_be() {
    let directory = tempfile::tempdir().expect("a directory");
    let base = directory.path().canonicalize().expect("a path");
    for (name, content) in [
        ("in/a b.csv", &b"x,y\n1,2\n"[..]),
        ("in/page.html", b"<title>T</title><h1>Head</h1><script>no()</script><p>body"),
        ("in/scan.pdf", b"%PDF-1.7"),
        ("in/picture.png", b"\x89PNG\r\n\x1a\n"),
        ("in/empty.txt", b""),
        ("out.txt", b"outside"),
        ("given.txt", b"given"),
    ] {
        let path = base.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }
    std::os::unix::fs::symlink(base.join("out.txt"), base.join("in/link.txt")).expect("a link");
    let roots = vec![base.join("in"), base.join("given.txt")];
    let client =
        client(ReadingOptions { allowed_roots: roots, file_limit: 100, ..ReadingOptions::default() }).await;
    std::fs::write(base.join("in/large.txt"), "x".repeat(101)).expect("a file");
    let cases = [
        ("a b.csv", false, "| x | y |"),
        ("BASE/in/a b.csv", false, "| x | y |"),
        ("file://BASE/in/a%20b.csv", false, "| x | y |"),
        ("page.html", false, "# Head\n\nbody"),
        ("BASE/given.txt", false, "given"),
        ("empty.txt", false, "(The document is empty.)"),
        ("scan.pdf", true, "could not be read as a PDF"),
        ("picture.png", true, "is an image, which cannot be read. Read are: PDF"),
        ("large.txt", true, "larger than 100 bytes"),
        ("link.txt", true, "is not among the files"),
        ("BASE/out.txt", true, "is not among the files"),
        ("../out.txt", true, "is not among the files"),
        ("/etc/passwd", true, "is not among the files"),
        ("missing.txt", true, "does not exist"),
        ("BASE/in", true, "is not a file"),
        ("https://example.org/x.pdf", true, "reads local files only"),
    ];
    for (uri, is_error, expected) in cases {
        let uri = uri.replace("BASE", &base.display().to_string());
        let reply = client.call("convert_to_markdown", json!({ "uri": uri })).await;
        assert!(reply.is_error == is_error && reply.text.contains(expected), "{uri}: {reply:?}");
    }
}

#[tokio::test]
async fn a_long_document_comes_in_parts() {
    let directory = tempfile::tempdir().expect("a directory");
    let text: String = (0..1000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(directory.path().join("long.txt"), &text).expect("a file");
    let options = ReadingOptions {
        allowed_roots: vec![directory.path().to_owned()],
        page: 4000,
        ..ReadingOptions::default()
    };
    let client = client(options).await;
    let mut read = String::new();
    let mut offset = Some(0u64);
    while let Some(from) = offset {
        let reply = client.call("convert_to_markdown", json!({ "uri": "long.txt", "offset": from })).await;
        let (note, part) = reply.text.split_once("\n\n").expect("a note");
        assert!(note.contains(&format!("has {} characters", text.len())), "{note}");
        read.push_str(part);
        offset = note
            .split_once("offset ")
            .map(|(_, rest)| rest.split(' ').next().expect("a number").parse().expect("a number"));
    }
    assert_eq!(read, text);
}
