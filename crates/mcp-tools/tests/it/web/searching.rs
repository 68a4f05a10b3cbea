//! `google_search` and `sogou_search` over every service, asked for real on this machine.

use mcp_tools::servers::web::WebOptions;
use serde_json::{Value, json};
use wiremock::matchers::{any, body_partial_json, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::support::{client, header, library, requests, services};

const KEY: &str = "k-very-secret";

/// One service: the variables that set it up (`URL` is the server's address), what it answers to the arguments, and
/// how the request must look.
struct Case {
    variables: &'static [(&'static str, &'static str)],
    arguments: Value,
    answer: Value,
    request: fn(&Request),
    engine: &'static str,
}

fn query(request: &Request) -> Vec<(String, String)> {
    request.url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn has(request: &Request, pairs: &[(&str, &str)]) {
    let query = query(request);
    for (name, value) in pairs {
        assert!(query.contains(&((*name).to_owned(), (*value).to_owned())), "{name}={value}: {query:?}");
    }
    assert_eq!(query.len(), pairs.len(), "{query:?}");
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            variables: &[("SERPER_API_KEY", KEY), ("SERPER_BASE_URL", "URL")],
            arguments: json!({"q": "ada \"lovelace\"", "num": "5", "tbs": "qdr:w", "page": 2.0, "location": "Berlin", "autocorrect": false, "gl": ""}),
            answer: json!({"searchParameters": {"q": "x"}, "organic": [
                {"title": "Ada", "link": "https://a.example/1", "snippet": "First.", "position": 1, "date": "3 days ago", "sitelinks": []},
                {"title": "Blocked", "link": "https://huggingface.co/datasets/x", "snippet": "s", "position": 2},
                {"title": "No link"},
                {"title": "Second", "link": "https://a.example/2", "snippet": "Second.", "position": 3},
            ], "credits": 1}),
            request: |request| {
                assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/search"));
                assert_eq!(header(request, "x-api-key"), Some(KEY));
                let body: Value = serde_json::from_slice(&request.body).expect("JSON");
                assert_eq!(
                    body,
                    json!({"q": "ada \"lovelace\"", "gl": "us", "hl": "en", "location": "Berlin", "tbs": "qdr:w",
                           "num": 5, "page": 2, "autocorrect": false})
                );
            },
            engine: "Serper",
        },
        Case {
            variables: &[("SEARXNG_BASE_URL", "URL/"), ("BRAVE_API_KEY", "unused-key")],
            arguments: json!({"q": "ada & lovelace", "hl": "de", "tbs": "qdr:m", "page": 3}),
            answer: json!({"results": [
                {"title": "Ada", "url": "https://a.example/1", "content": "First.", "publishedDate": "2024-01-02"},
                {"title": "Second", "url": "https://a.example/2", "content": "Second.", "publishedDate": null},
            ]}),
            request: |request| {
                assert_eq!((request.method.as_str(), request.url.path()), ("GET", "/search"));
                has(
                    request,
                    &[
                        ("q", "ada & lovelace"),
                        ("format", "json"),
                        ("language", "de"),
                        ("time_range", "month"),
                        ("pageno", "3"),
                    ],
                );
            },
            engine: "SearXNG",
        },
        Case {
            variables: &[("BRAVE_API_KEY", KEY), ("BRAVE_BASE_URL", "URL"), ("TAVILY_API_KEY", "unused-key")],
            arguments: json!({"q": "ada", "num": 50, "tbs": "qdr:y", "page": 2}),
            answer: json!({"web": {"results": [
                {"title": "<strong>Ada</strong>", "url": "https://a.example/1", "description": "<strong>First</strong>.", "age": "1 day ago"},
                {"title": "Second", "url": "https://a.example/2", "description": "Second &amp; last."},
            ]}}),
            request: |request| {
                assert_eq!((request.method.as_str(), request.url.path()), ("GET", "/res/v1/web/search"));
                assert_eq!(header(request, "x-subscription-token"), Some(KEY));
                has(
                    request,
                    &[
                        ("q", "ada"),
                        ("count", "20"),
                        ("country", "US"),
                        ("search_lang", "en"),
                        ("freshness", "py"),
                        ("offset", "1"),
                    ],
                );
            },
            engine: "Brave",
        },
        Case {
            variables: &[("TAVILY_API_KEY", KEY), ("TAVILY_BASE_URL", "URL")],
            arguments: json!({"q": "ada", "tbs": "qdr:d"}),
            answer: json!({"query": "ada", "results": [
                {"title": "Ada", "url": "https://a.example/1", "content": "First.", "score": 0.9, "published_date": "2024-01-02"},
                {"title": "Second", "url": "https://a.example/2", "content": "Second.", "score": 0.8},
            ]}),
            request: |request| {
                assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/search"));
                assert_eq!(header(request, "authorization"), Some("Bearer k-very-secret"));
                let body: Value = serde_json::from_slice(&request.body).expect("JSON");
                assert_eq!(body, json!({"query": "ada", "max_results": 10, "time_range": "day"}));
            },
            engine: "Tavily",
        },
    ]
}

fn set_up(variables: &[(&str, &str)], server: &MockServer) -> impl FnOnce(&mut WebOptions) {
    let filled: Vec<(String, String)> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.replace("URL", &server.uri())))
        .collect();
    move |options| {
        let pairs: Vec<(&str, &str)> =
            filled.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        options.services = services(&pairs);
    }
}

#[tokio::test]
async fn every_service_is_asked_in_its_own_way_and_answers_in_one() {
    for server_name in ["search_and_scrape_webpage", "tool-google-search"] {
        for case in cases() {
            let server = MockServer::start().await;
            Mock::given(any())
                .respond_with(ResponseTemplate::new(200).set_body_json(&case.answer))
                .mount(&server)
                .await;
            let client = client(server_name, set_up(case.variables, &server)).await;
            let reply = client.call("google_search", case.arguments.clone()).await;
            assert!(!reply.is_error, "{}", reply.text);
            let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
            let organic = answer["organic"].as_array().expect("results");
            let links: Vec<&str> = organic.iter().filter_map(|hit| hit["link"].as_str()).collect();
            assert_eq!(links, ["https://a.example/1", "https://a.example/2"], "{}", case.engine);
            assert_eq!((&organic[0]["title"], &organic[0]["snippet"]), (&json!("Ada"), &json!("First.")));
            assert!(organic[0]["date"].is_string() && organic[1].get("date").is_none(), "{organic:?}");
            assert_eq!((&organic[0]["position"], &organic[1]["position"]), (&json!(1), &json!(2)));
            assert_eq!(answer["searchParameters"]["engine"], case.engine);
            assert_eq!(answer["searchParameters"]["q"], case.arguments["q"]);
            let sent = requests(&server).await;
            assert_eq!(sent.len(), 1, "{}", case.engine);
            (case.request)(&sent[0]);
        }
    }
}

#[tokio::test]
async fn sogou_is_asked_through_tencent_cloud() {
    let server = MockServer::start().await;
    let page = |number: u32| {
        json!({"title": format!("<em>T{number}</em>"), "url": format!("https://a.example/{number}"), "passage": "P", "date": "2024-01-02", "site": "s"})
            .to_string()
    };
    let answer =
        json!({"Response": {"Query": "q", "Pages": [page(1), "no JSON", page(2)], "RequestId": "r"}});
    Mock::given(method("POST"))
        .and(path("/"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let variables = [
        ("TENCENTCLOUD_SECRET_ID", "id-secret"),
        ("TENCENTCLOUD_SECRET_KEY", KEY),
        ("TENCENTCLOUD_BASE_URL", "URL"),
    ];
    for (name, arguments) in [
        ("search_and_scrape_webpage", json!({"q": "天气", "num": 15})),
        ("tool-sogou-search", json!({"Query": "天气", "Cnt": "15"})),
    ] {
        let client = client(name, set_up(&variables, &server)).await;
        let reply = client.call("sogou_search", arguments).await;
        let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
        assert_eq!(
            answer["organic"][1],
            json!({"title": "T2", "link": "https://a.example/2", "snippet": "P", "position": 2, "date": "2024-01-02"})
        );
        let sent = requests(&server).await.pop().expect("a request");
        assert_eq!(
            serde_json::from_slice::<Value>(&sent.body).expect("JSON"),
            json!({"Query": "天气", "Cnt": 20})
        );
        let fixed = [
            ("x-tc-action", "SearchPro"),
            ("x-tc-version", "2025-05-08"),
            ("content-type", "application/json; charset=utf-8"),
        ];
        for (name, value) in fixed {
            assert_eq!(header(&sent, name), Some(value));
        }
        let signature = header(&sent, "authorization").expect("a signature");
        assert!(signature.starts_with("TC3-HMAC-SHA256 Credential=id-secret/"), "{signature}");
        assert!(!signature.contains(KEY));
        assert!(header(&sent, "x-tc-timestamp").expect("a time").parse::<u64>().is_ok());
    }
    let failure =
        json!({"Response": {"Error": {"Code": "AuthFailure.SecretIdNotFound", "Message": "no id-secret"}}});
    server.reset().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(failure)).mount(&server).await;
    let client = client("tool-sogou-search", set_up(&variables, &server)).await;
    let reply = client.call("sogou_search", json!({"Query": "x"})).await;
    assert!(reply.is_error);
    assert_eq!(reply.text, "The search with Sogou failed: AuthFailure.SecretIdNotFound: no ***.");
}

#[tokio::test]
async fn quoted_words_that_are_nowhere_are_searched_once_without_quotes() {
    let server = MockServer::start().await;
    let nothing = ResponseTemplate::new(200).set_body_json(json!({"organic": []}));
    let something = json!({"organic": [{"title": "T", "link": "https://a.example/", "snippet": "S"}]});
    Mock::given(body_partial_json(json!({"q": "exact words"})))
        .respond_with(ResponseTemplate::new(200).set_body_json(something))
        .mount(&server)
        .await;
    Mock::given(any()).respond_with(nothing).mount(&server).await;
    let client =
        client("tool-google-search", set_up(&[("SERPER_API_KEY", KEY), ("SERPER_BASE_URL", "URL")], &server))
            .await;
    let reply = client.call("google_search", json!({"q": "\"exact words\""})).await;
    let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(
        (answer["organic"].as_array().expect("a list").len(), &answer["searchParameters"]["q"]),
        (1, &json!("exact words"))
    );
    assert_eq!(requests(&server).await.len(), 2);
    let reply = client.call("google_search", json!({"q": "nothing \u{201c}at all\u{201d}"})).await;
    let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(answer["organic"], json!([]));
    let plain = client.call("google_search", json!({"q": "nothing"})).await;
    assert!(!plain.is_error);
    assert_eq!(requests(&server).await.len(), 5, "two for each with quotes, one for that without");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_the_rest_is_not() {
    let good = json!({"organic": [{"title": "T", "link": "https://a.example/", "snippet": "S"}]});
    for (status, tries) in [
        (408, 2),
        (409, 2),
        (425, 2),
        (429, 2),
        (500, 2),
        (503, 2),
        (529, 2),
        (400, 1),
        (401, 1),
        (403, 1),
        (404, 1),
    ] {
        let server = MockServer::start().await;
        let bad = ResponseTemplate::new(status).set_body_string(format!("no luck with {KEY}\u{1b}[31m"));
        Mock::given(any()).respond_with(bad).up_to_n_times(1).mount(&server).await;
        Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(&good)).mount(&server).await;
        let client = client(
            "tool-google-search",
            set_up(&[("SERPER_API_KEY", KEY), ("SERPER_BASE_URL", "URL")], &server),
        )
        .await;
        let reply = client.call("google_search", json!({"q": "x"})).await;
        assert_eq!(requests(&server).await.len(), tries, "{status}");
        assert_eq!(reply.is_error, tries == 1, "{status}: {}", reply.text);
        if reply.is_error {
            assert!(reply.text.contains(&format!("HTTP status {status}")), "{}", reply.text);
            assert!(reply.text.contains("no luck with ***") && !reply.text.contains(KEY), "{}", reply.text);
        }
    }
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(503)).mount(&server).await;
    let client =
        client("tool-google-search", set_up(&[("SERPER_API_KEY", KEY), ("SERPER_BASE_URL", "URL")], &server))
            .await;
    let reply = client.call("google_search", json!({"q": "x"})).await;
    assert!(reply.is_error && reply.text.contains("the server has a fault of its own"), "{}", reply.text);
    assert_eq!(requests(&server).await.len(), 4);
}

#[tokio::test]
async fn a_service_that_is_not_there_or_talks_nonsense_is_an_error_text() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number");
    let variables = [("SEARXNG_BASE_URL", format!("http://{free}"))];
    let gone = client("tool-google-search", |options| {
        options.services = services(&[(variables[0].0, variables[0].1.as_str())]);
    })
    .await;
    let reply = gone.call("google_search", json!({"q": "x"})).await;
    assert!(reply.is_error && reply.text.starts_with("The search with SearXNG failed: "), "{}", reply.text);
    assert!(reply.text.contains("no connection"), "{}", reply.text);
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string("<html>"))
        .mount(&server)
        .await;
    let odd = client("tool-google-search", set_up(&[("SEARXNG_BASE_URL", "URL")], &server)).await;
    let reply = odd.call("google_search", json!({"q": "x"})).await;
    assert_eq!(reply.text, "The search with SearXNG failed: its answer is no JSON.");
    let reply = odd.call("google_search", json!({"q": "  "})).await;
    assert!(reply.is_error && reply.text.starts_with("The query is empty"), "{}", reply.text);
    let none = client("tool-google-search", |_| ()).await;
    let reply = none.call("google_search", json!({"q": "x"})).await;
    assert!(reply.is_error && reply.text.contains("SERPER_API_KEY"), "{}", reply.text);
    let none = client("tool-sogou-search", |_| ()).await;
    let reply = none.call("sogou_search", json!({"Query": "x"})).await;
    assert!(reply.is_error && reply.text.contains("TENCENTCLOUD_SECRET_ID"), "{}", reply.text);
}

#[tokio::test]
async fn without_any_service_the_library_is_searched() {
    let client = client("search_and_scrape_webpage", |options| options.library = Some(library())).await;
    let reply = client.call("google_search", json!({"q": "Nobel prize physics 1903"})).await;
    let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(answer["organic"][0]["link"], "library://notes/curie", "{answer}");
    assert_eq!(answer["organic"][0]["source"], "https://encyclopedia.example/curie");
    assert_eq!(answer["searchParameters"]["engine"], "local library");
    let page = client.call("google_search", json!({"q": "volcano Nobel prize", "num": 1, "page": 2})).await;
    let answer: Value = serde_json::from_str(&page.text).expect("JSON");
    assert_eq!(answer["organic"].as_array().expect("a list").len(), 1);
}

/// A tool's name, its arguments in alphabetical order, and those that are needed.
type Expected = (&'static str, &'static [&'static str], &'static [&'static str]);

#[tokio::test]
async fn tools_have_the_names_and_arguments_that_models_know() {
    const GOOGLE: &[&str] = &["autocorrect", "gl", "hl", "location", "num", "page", "q", "tbs"];
    let expected: [(&str, &[Expected]); 4] = [
        (
            "search_and_scrape_webpage",
            &[("google_search", GOOGLE, &["q"]), ("sogou_search", &["num", "q"], &["q"])],
        ),
        ("tool-google-search", &[("google_search", GOOGLE, &["q"]), ("scrape_website", &["url"], &["url"])]),
        (
            "tool-sogou-search",
            &[("scrape_website", &["url"], &["url"]), ("sogou_search", &["Cnt", "Query"], &["Query"])],
        ),
        (
            "jina_scrape_llm_summary",
            &[(
                "scrape_and_extract_info",
                &["custom_headers", "info_to_extract", "url"],
                &["url", "info_to_extract"],
            )],
        ),
    ];
    for (server, tools) in expected {
        let client = client(server, |_| ()).await;
        let mut found = client.tools().await;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(found.len(), tools.len(), "{server}");
        for (tool, (name, arguments, required)) in found.iter().zip(tools) {
            assert_eq!(tool.name, *name);
            let mut keys: Vec<&str> = tool.input_schema["properties"]
                .as_object()
                .expect("arguments")
                .keys()
                .map(String::as_str)
                .collect();
            keys.sort_unstable();
            assert_eq!(keys, *arguments, "{name}");
            assert_eq!(tool.input_schema["required"], json!(required), "{name}");
        }
    }
}

/// Arguments that cannot be meant are told with their field; those that can are taken.
#[tokio::test]
async fn wrong_arguments_are_told_with_their_field() {
    let server = MockServer::start().await;
    let answer = json!({"organic": [{"title": "T", "link": "https://a.example/1", "snippet": "s"}]});
    Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(answer)).mount(&server).await;
    let url = server.uri();
    let variables = [("SERPER_API_KEY", KEY), ("SERPER_BASE_URL", url.as_str())];
    let client = client("search_and_scrape_webpage", |options| options.services = services(&variables)).await;
    for (arguments, part) in [
        (json!({"q": "x", "page": -1}), "`page` is to be a number of 0 or more, not -1."),
        (json!({"q": ["x"]}), "`q` is to be a string, not a list."),
        (
            json!({"q": "x", "autocorrect": "yes"}),
            "`autocorrect` is to be true or false, not the string \"yes\".",
        ),
        (json!({}), "`q` is missing"),
    ] {
        let reply = client.call("google_search", arguments.clone()).await;
        assert!(reply.is_error && reply.text.contains(part), "{arguments}: {}", reply.text);
    }
    assert!(requests(&server).await.is_empty());
    let generous = json!({"q": "x", "autocorrect": "false", "num": "3", "page": "2"});
    assert!(!client.call("google_search", generous).await.is_error);
    let body: Value = serde_json::from_slice(&requests(&server).await[0].body).expect("JSON");
    assert_eq!((&body["autocorrect"], &body["num"], &body["page"]), (&json!(false), &json!(3), &json!(2)));
}
