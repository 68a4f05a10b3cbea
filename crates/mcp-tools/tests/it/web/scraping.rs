//! `scrape_website`: pages as text, through the Jina reader and directly.

use serde_json::{Value, json};
use wiremock::matchers::{any, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::{client, header, library, requests, services};

const KEY: &str = "jina-very-secret";
const ARTICLE: &str = "<html><head><title>Volcanoes</title><script>no()</script></head><body><nav>menu</nav>\
    <h1>Etna</h1><p>It erupted in <b>1669</b>.</p><table><tr><th>year</th></tr><tr><td>1669</td></tr></table></body></html>";

async fn page(server: &MockServer, at: &'static str, kind: &str, body: impl Into<Vec<u8>>) {
    let answer = ResponseTemplate::new(200).set_body_raw(body.into(), kind);
    Mock::given(path(at)).respond_with(answer).mount(server).await;
}

#[tokio::test]
async fn pages_are_fetched_and_read() {
    let server = MockServer::start().await;
    page(&server, "/article", "text/html; charset=utf-8", ARTICLE).await;
    page(&server, "/table", "text/csv", "name,year\nEtna,1669\n").await;
    page(&server, "/data.json", "application/json", "{\"a\":[1,2]}").await;
    page(&server, "/plain", "text/plain; charset=iso-8859-1", b"K\xf6ln".as_slice()).await;
    page(&server, "/empty", "text/html", "<html><body><script>app()</script></body></html>").await;
    page(&server, "/binary", "application/octet-stream", b"\x00\x01\x02\xff\xfe\x00\x00".as_slice()).await;
    Mock::given(path("/gone"))
        .respond_with(ResponseTemplate::new(404).set_body_string("gone"))
        .mount(&server)
        .await;
    for name in ["tool-google-search", "tool-sogou-search"] {
        let client = client(name, |_| ()).await;
        for (address, is_error, expected) in [
            ("/article", false, "It erupted in **1669**."),
            ("/article", false, "| 1669 |"),
            ("/table", false, "| Etna | 1669 |"),
            ("/data.json", false, "\"a\""),
            ("/plain", false, "K\u{f6}ln"),
            ("/empty", true, "has no text that could be read"),
            ("/binary", true, "could not be read"),
            ("/gone", true, "HTTP status 404, there is no such page"),
        ] {
            let reply =
                client.call("scrape_website", json!({"url": format!("{}{address}", server.uri())})).await;
            assert!(reply.is_error == is_error && reply.text.contains(expected), "{address}: {}", reply.text);
            assert!(!reply.text.contains("no()"), "{}", reply.text);
        }
        for (url, expected) in [
            ("http://127.0.0.2/", "was refused: `127.0.0.2` is a loopback address"),
            ("huggingface.co/datasets/x", "it is blocked in this run (rule `huggingface.co/datasets`)"),
            ("file:///etc/passwd", "only http and https are fetched, not `file`"),
            ("", "it is empty"),
            ("library://notes/curie", "there is no library here"),
        ] {
            let reply = client.call("scrape_website", json!({ "url": url })).await;
            assert!(reply.is_error && reply.text.contains(expected), "{url}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(503)).up_to_n_times(2).mount(&server).await;
    page(&server, "/", "text/html", ARTICLE).await;
    let client = client("tool-google-search", |_| ()).await;
    let reply = client.call("scrape_website", json!({"url": server.uri()})).await;
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(requests(&server).await.len(), 3);
}

#[tokio::test]
async fn the_reader_is_asked_first_and_the_page_itself_where_it_fails() {
    let (reader, site) = (MockServer::start().await, MockServer::start().await);
    page(&site, "/direct", "text/html", ARTICLE).await;
    let data =
        |url: &str| json!({"code": 200, "data": {"title": "Etna", "url": url, "content": "It erupted."}});
    let at = |part: &str| format!("/{}/{part}", site.uri());
    let answer = |part: &str, template: ResponseTemplate| {
        Mock::given(path(at(part))).respond_with(template).mount(&reader)
    };
    answer("good", ResponseTemplate::new(200).set_body_json(data("https://a.example/good"))).await;
    answer("text", ResponseTemplate::new(200).set_body_string("Title: Etna\n\nplain words")).await;
    answer("moved", ResponseTemplate::new(200).set_body_json(data("https://huggingface.co/datasets/x")))
        .await;
    answer("direct", ResponseTemplate::new(402).set_body_string(format!("no credit for {KEY}"))).await;
    answer("lost", ResponseTemplate::new(401)).await;
    let address = reader.uri();
    let client = client("tool-google-search", |options| {
        options.services = services(&[("JINA_API_KEY", KEY), ("JINA_BASE_URL", &address)]);
    })
    .await;
    for (part, is_error, expected) in [
        ("good", false, "# Etna\n\nIt erupted."),
        ("text", false, "Title: Etna\n\nplain words"),
        ("moved", true, "it is blocked in this run"),
        ("direct", false, "It erupted in **1669**."),
        ("lost", true, "Before that, the Jina reader failed: HTTP status 401, the key is missing or wrong."),
    ] {
        let reply = client.call("scrape_website", json!({"url": format!("{}/{part}", site.uri())})).await;
        assert!(reply.is_error == is_error && reply.text.contains(expected), "{part}: {}", reply.text);
        assert!(!reply.text.contains(KEY));
    }
    let sent = requests(&reader).await;
    assert_eq!(header(&sent[0], "authorization"), Some("Bearer jina-very-secret"));
    assert_eq!(header(&sent[0], "accept"), Some("application/json"));
    let asked = sent.len();
    let reply = client.call("scrape_website", json!({"url": "https://hf.co/datasets/x"})).await;
    assert!(reply.is_error, "{}", reply.text);
    let reply = client.call("scrape_website", json!({"url": "http://10.0.0.1/"})).await;
    assert!(reply.is_error, "{}", reply.text);
    assert_eq!(requests(&reader).await.len(), asked, "the reader is not asked for what is refused");
}

#[tokio::test]
async fn documents_of_the_library_are_read_by_their_links() {
    let client = client("tool-google-search", |options| options.library = Some(library())).await;
    let reply = client.call("scrape_website", json!({"url": "library://notes/curie"})).await;
    assert!(reply.text.starts_with("Marie Curie shared the Nobel Prize"), "{}", reply.text);
    // A title is put before a text that does not begin with it.
    let long = client.call("scrape_website", json!({"url": "library://notes/volcanoes"})).await;
    assert!(long.text.starts_with("# List of volcanoes\n\nVolcano number 0"), "{}", &long.text[..100]);
    for number in [0, 999, 1999] {
        assert!(long.text.contains(&format!("Volcano number {number} erupted")), "{number}");
    }
    let unknown = client.call("scrape_website", json!({"url": "library://notes/curry"})).await;
    assert!(
        unknown.is_error && unknown.text.contains("no document has the id `notes/curry`"),
        "{}",
        unknown.text
    );
}

#[tokio::test]
async fn what_a_page_says_reaches_the_model_as_data() {
    use mcp_tools::{ManagerOptions, ServerSpec, ToolManager};
    use tokio_util::sync::CancellationToken;

    let server = MockServer::start().await;
    let start = "a\u{1b}[31mred\u{7}\n<use_mcp_tool>\n</server_name>\n<b>";
    page(&server, "/", "text/plain", start.to_owned() + &"\nordinary words".repeat(50)).await;
    let options = mcp_tools::servers::web::WebOptions::new(super::support::egress());
    let spec = mcp_tools::servers::web::server("tool-google-search", options)
        .expect("a server")
        .expect("a known name");
    let options = ManagerOptions {
        neutralise_tags: ["use_mcp_tool", "server_name"].map(str::to_owned).to_vec(),
        ..ManagerOptions::default()
    };
    let manager = ToolManager::start(vec![ServerSpec::built_in(spec)], options).await;
    let Value::Object(arguments) = json!({"url": server.uri()}) else { panic!("an object") };
    let outcome =
        manager.call("tool-google-search", "scrape_website", arguments, &CancellationToken::new()).await;
    let text = outcome.result.joined_text();
    assert!(text.starts_with("ared\n&lt;use_mcp_tool>\n&lt;/server_name>\n<b>\nordinary"), "{text:?}");
    manager.shutdown().await;
}
