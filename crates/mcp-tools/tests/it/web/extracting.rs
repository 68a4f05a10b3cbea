//! `scrape_and_extract_info`: a page read by a model.

use mcp_tools::ModelError;
use serde_json::{Value, json};
use wiremock::matchers::{any, header_exists, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::{Scripted, client, header, requests, services};
use crate::python::client::{Client, Reply};

async fn text_page(server: &MockServer, body: String) {
    let answer = ResponseTemplate::new(200).set_body_raw(body, "text/plain");
    Mock::given(path("/page.txt")).respond_with(answer).mount(server).await;
}

async fn extract(client: &Client, url: &str) -> (Reply, Value) {
    let reply = client.call("scrape_and_extract_info", json!({"url": url, "info_to_extract": "When?"})).await;
    let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
    let mut keys: Vec<&str> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = ["error", "extracted_info", "model_used", "scrape_stats", "success", "tokens_used", "url"];
    assert_eq!(keys, expected);
    assert_eq!(answer["url"], url);
    (reply, answer)
}

#[tokio::test]
async fn a_model_reads_the_page_for_the_question() {
    let server = MockServer::start().await;
    text_page(&server, "Etna erupted in 1669.\nVesuvius in 79.".to_owned()).await;
    let model = Scripted::new(|_| Ok("In 1669.".to_owned()));
    let client = client("jina_scrape_llm_summary", |options| options.model = Some(model.clone())).await;
    let url = format!("{}/page.txt", server.uri());
    let (reply, answer) = extract(&client, &url).await;
    assert!(!reply.is_error);
    assert_eq!(
        answer,
        json!({
            "success": true, "url": url, "extracted_info": "In 1669.", "error": "",
            "scrape_stats": {"line_count": 2, "char_count": 37, "last_char_line": 2, "all_content_displayed": true},
            "model_used": "small-1", "tokens_used": 42
        })
    );
    let asked = model.questions();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].text.contains("<page>\nEtna erupted in 1669.\nVesuvius in 79.\n</page>"),
        "{}",
        asked[0].text
    );
    assert!(asked[0].text.ends_with("When?"));
}

#[tokio::test]
async fn a_page_that_is_too_long_is_cut_until_it_fits() {
    let server = MockServer::start().await;
    text_page(&server, "x".repeat(100_000)).await;
    let model = Scripted::new(|question| match question.text.len() {
        30_000.. => Err(ModelError::TooLong("30,000 is the limit".to_owned())),
        _ => Ok("found".to_owned()),
    });
    let client = client("jina_scrape_llm_summary", |options| options.model = Some(model.clone())).await;
    let (_, answer) = extract(&client, &format!("{}/page.txt", server.uri())).await;
    assert_eq!(answer["success"], true);
    let lengths: Vec<usize> = model.questions().iter().map(|question| question.text.len()).collect();
    assert!(lengths.windows(2).all(|pair| pair[1] < pair[0]) && lengths.len() == 4, "{lengths:?}");
    assert_eq!(answer["extracted_info"], "[Only the first 21600 characters of the page were read.]\nfound");
    assert_eq!(answer["scrape_stats"]["all_content_displayed"], false);
    assert_eq!(answer["scrape_stats"]["char_count"], 100_000);
}

#[tokio::test]
async fn what_goes_wrong_is_in_the_answer() {
    let server = MockServer::start().await;
    text_page(&server, "words".to_owned()).await;
    Mock::given(any()).respond_with(ResponseTemplate::new(403)).mount(&server).await;
    let page = format!("{}/page.txt", server.uri());
    let other = format!("{}/other", server.uri());
    let never = || Scripted::new(|_| Err(ModelError::TooLong("1 token is the limit".to_owned())));
    let broken = || Scripted::new(|_| Err(ModelError::Failed("the server is away".to_owned())));
    let mute = || Scripted::new(|_| Ok("  ".to_owned()));
    let tries: [(std::sync::Arc<dyn mcp_tools::ToolModel>, &str, &str); 5] = [
        (never(), &page, "no part of it fits into the model: 1 token is the limit."),
        (broken(), &page, "the model could not read it: the server is away."),
        (mute(), &page, "the model `small` said nothing about it."),
        (mute(), &other, "HTTP status 403, access is denied"),
        (mute(), "http://192.168.0.1/", "is a private address"),
    ];
    for (model, url, expected) in tries {
        let client = client("jina_scrape_llm_summary", |options| options.model = Some(model)).await;
        let (reply, answer) = extract(&client, url).await;
        assert!(reply.is_error && answer["success"] == false && answer["extracted_info"] == "");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(expected)), "{answer}");
    }
    let client = client("jina_scrape_llm_summary", |options| options.model = Some(mute())).await;
    let reply = client.call("scrape_and_extract_info", json!({"url": page, "info_to_extract": " "})).await;
    assert!(reply.is_error && reply.text.contains("`info_to_extract` is empty"), "{}", reply.text);
}

#[tokio::test]
async fn without_a_model_the_page_is_the_answer() {
    let server = MockServer::start().await;
    text_page(&server, "0123456789".repeat(3_000)).await;
    let client = client("jina_scrape_llm_summary", |_| ()).await;
    let (reply, answer) = extract(&client, &format!("{}/page.txt", server.uri())).await;
    assert!(!reply.is_error);
    let text = answer["extracted_info"].as_str().expect("a text");
    let note = text.lines().next().unwrap_or_default();
    assert!(
        note.starts_with("[No model is set up that could read the page for this (`SUMMARY_LLM_BASE_URL`")
    );
    assert!(note.ends_with("; here is its beginning.]"), "{note}");
    assert_eq!(text.split_once("\n\n").expect("a note").1.len(), 20_000);
    assert_eq!((&answer["model_used"], &answer["scrape_stats"]["char_count"]), (&json!(""), &json!(30_000)));
}

#[tokio::test]
async fn headers_of_the_caller_reach_the_page_and_not_the_reader() {
    let (reader, site) = (MockServer::start().await, MockServer::start().await);
    let good = ResponseTemplate::new(200).set_body_raw("members only", "text/plain");
    Mock::given(header_exists("cookie")).respond_with(good).mount(&site).await;
    Mock::given(any()).respond_with(ResponseTemplate::new(403)).mount(&reader).await;
    let address = reader.uri();
    let client = client("jina_scrape_llm_summary", |options| {
        options.services = services(&[("JINA_API_KEY", "jina-secret"), ("JINA_BASE_URL", &address)]);
    })
    .await;
    let headers =
        json!({"Cookie": "a=b", "X-Wait-For-Selector": "main", "Authorization": "Bearer mine", "n": 7});
    let arguments = json!({"url": site.uri(), "info_to_extract": "all", "custom_headers": headers});
    let reply = client.call("scrape_and_extract_info", arguments).await;
    assert!(!reply.is_error && reply.text.contains("members only"), "{}", reply.text);
    let (to_reader, to_site) = (requests(&reader).await, requests(&site).await);
    assert_eq!(header(&to_reader[0], "authorization"), Some("Bearer jina-secret"));
    assert_eq!(
        (header(&to_reader[0], "cookie"), header(&to_reader[0], "x-wait-for-selector")),
        (None, Some("main"))
    );
    assert_eq!((header(&to_site[0], "cookie"), header(&to_site[0], "n")), (Some("a=b"), Some("7")));
}
