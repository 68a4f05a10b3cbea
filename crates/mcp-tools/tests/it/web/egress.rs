//! The policy in force: what resolves to private addresses, redirects, limits.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_tools::egress::{Egress, EgressError, EgressOptions, FetchRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wiremock::matchers::{header_exists, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::{Names, egress, header, options, requests};

async fn kind_of(egress: &Egress, url: &str) -> Option<&'static str> {
    egress.fetch(FetchRequest::new(url)).await.err().map(|error| error.kind())
}

#[tokio::test]
async fn names_that_resolve_to_private_addresses_are_refused() {
    let names = Names::new(&[
        ("loopback.test", &["127.0.0.1"]),
        ("private.test", &["10.0.0.5"]),
        ("mixed.test", &["93.184.216.34", "192.168.0.1"]),
        ("metadata.test", &["169.254.169.254"]),
        ("six.test", &["::1"]),
        ("local6.test", &["fe80::1"]),
        ("unique.test", &["fd12:3456::1"]),
        ("mapped.test", &["::ffff:93.184.216.34"]),
        ("nat64.test", &["64:ff9b::7f00:1"]),
        ("sixtofour.test", &["2002:7f00:1::"]),
        ("carrier.test", &["100.64.0.1"]),
        ("nothing.test", &["0.0.0.0"]),
    ]);
    let egress = Egress::with_resolver(EgressOptions::default(), names).expect("a policy");
    for name in [
        "loopback.test",
        "private.test",
        "mixed.test",
        "metadata.test",
        "six.test",
        "local6.test",
        "unique.test",
        "mapped.test",
        "nat64.test",
        "sixtofour.test",
        "carrier.test",
        "nothing.test",
        "LOOPBACK.test",
    ] {
        assert_eq!(kind_of(&egress, &format!("http://{name}/")).await, Some("private"), "{name}");
    }
    let error = egress.fetch(FetchRequest::new("http://private.test/x")).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`http://private.test/x` was refused: `private.test` is a private address (10.0.0.5), and only the public \
         internet is reached"
    );
    assert_eq!(kind_of(&egress, "http://unknown.test/").await, Some("unknown_host"));
}

#[tokio::test]
async fn the_connection_goes_to_what_was_checked() {
    let server = MockServer::start().await;
    Mock::given(path("/x"))
        .respond_with(ResponseTemplate::new(200).set_body_string("here"))
        .mount(&server)
        .await;
    let names = Names::new(&[("rebound.test", &["127.0.0.1"])]);
    let egress = Egress::with_resolver(options(), names.clone()).expect("a policy");
    let url = format!("http://rebound.test:{}/x", server.address().port());
    let fetched = egress.fetch(FetchRequest::new(&url)).await.expect("a page");
    assert_eq!((fetched.status, fetched.body.as_slice()), (200, &b"here"[..]));
    // One look at the name, and no other before the connection.
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    let sent = requests(&server).await;
    assert_eq!(header(&sent[0], "host"), Some(format!("rebound.test:{}", server.address().port()).as_str()));
    assert!(header(&sent[0], "user-agent").expect("a name").contains("Fathom/"));
}

#[tokio::test]
async fn redirects_are_checked_each() {
    let server = MockServer::start().await;
    let port = server.address().port();
    let names = Names::new(&[("inner.test", &["10.1.1.1"]), ("fine.test", &["127.0.0.1"])]);
    let egress = Egress::with_resolver(options(), names).expect("a policy");
    let redirect = |from: &'static str, status: u16, to: String| {
        let answer = ResponseTemplate::new(status).insert_header("Location", to);
        Mock::given(path(from)).respond_with(answer).mount(&server)
    };
    let targets = [
        (301, format!("http://127.0.0.2:{port}/page"), "private"),
        (302, "http://10.0.0.1/".to_owned(), "private"),
        (303, "http://[::1]/".to_owned(), "private"),
        (307, "http://localhost/".to_owned(), "private"),
        (308, "http://inner.test/".to_owned(), "private"),
        (302, "//169.254.169.254/latest/meta-data".to_owned(), "private"),
        (302, "http://0x7f000002/".to_owned(), "private"),
        (302, "https://huggingface.co/datasets/x".to_owned(), "blocked"),
        (302, "https://HF.co/%64atasets/x".to_owned(), "blocked"),
        (302, "file:///etc/passwd".to_owned(), "scheme"),
        (302, "gopher://127.0.0.1/".to_owned(), "scheme"),
        (302, format!("http://user:pw@127.0.0.1:{port}/page"), "credentials"),
    ];
    for (at, (status, target, expected)) in targets.into_iter().enumerate() {
        let from: &'static str = Box::leak(format!("/r{at}").into_boxed_str());
        redirect(from, status, target.clone()).await;
        let error = egress.fetch(FetchRequest::new(server.uri() + from)).await.expect_err("refused");
        let EgressError::Redirect { refusal, .. } = &error else { panic!("{target}: {error}") };
        assert_eq!(refusal.kind(), expected, "{target}");
        assert!(
            error.is_refusal() && error.to_string().contains("redirects to something that is refused"),
            "{error}"
        );
    }
    let page = ResponseTemplate::new(200).set_body_raw("<p>page", "text/html; charset=utf-8");
    Mock::given(path("/page")).respond_with(page).mount(&server).await;
    redirect("/relative", 302, "page".to_owned()).await;
    redirect("/absolute", 301, format!("http://fine.test:{port}/relative")).await;
    redirect("/loop", 302, "/loop".to_owned()).await;
    redirect("/nowhere", 302, "http://".to_owned()).await;
    let fetched =
        egress.fetch(FetchRequest::new(format!("{}/absolute", server.uri()))).await.expect("a page");
    assert_eq!(fetched.url.as_str(), format!("http://fine.test:{port}/page"));
    assert_eq!(fetched.content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(kind_of(&egress, &format!("{}/loop", server.uri())).await, Some("too_many_redirects"));
    assert_eq!(kind_of(&egress, &format!("{}/nowhere", server.uri())).await, Some("broken"));
}

#[tokio::test]
async fn a_redirect_that_waits_for_its_cookie_is_followed() {
    let server = MockServer::start().await;
    let port = server.address().port();
    let names = Names::new(&[("other.test", &["127.0.0.1"])]);
    let egress = Egress::with_resolver(options(), names).expect("a policy");
    let to = |target: String| ResponseTemplate::new(302).insert_header("Location", target);
    let set = to("/entry".into()).insert_header("Set-Cookie", "seen=yes; Path=/");
    Mock::given(path("/consent")).respond_with(set).mount(&server).await;
    let passed = to(format!("http://other.test:{port}/page"));
    Mock::given(path("/entry"))
        .and(wiremock::matchers::header("cookie", "seen=yes"))
        .respond_with(passed)
        .mount(&server)
        .await;
    Mock::given(path("/entry")).respond_with(to("/consent".into())).mount(&server).await;
    Mock::given(path("/page"))
        .respond_with(ResponseTemplate::new(200).set_body_string("there"))
        .mount(&server)
        .await;
    let fetched = egress.fetch(FetchRequest::new(format!("{}/entry", server.uri()))).await.expect("a page");
    assert_eq!(fetched.body, b"there");
    let sent = requests(&server).await;
    let cookies: Vec<_> = sent.iter().map(|request| header(request, "cookie")).collect();
    assert_eq!(cookies, [None, None, Some("seen=yes"), None], "another host is not told");
    // Nothing is remembered.
    egress.fetch(FetchRequest::new(format!("{}/entry", server.uri()))).await.expect("a page");
    assert_eq!(header(&requests(&server).await[4], "cookie"), None);
}

#[tokio::test]
async fn secrets_do_not_follow_to_another_host() {
    let server = MockServer::start().await;
    let port = server.address().port();
    let names = Names::new(&[("other.test", &["127.0.0.1"])]);
    let egress = Egress::with_resolver(options(), names).expect("a policy");
    let away = ResponseTemplate::new(302).insert_header("Location", format!("http://other.test:{port}/away"));
    Mock::given(path("/first")).respond_with(away).mount(&server).await;
    Mock::given(path("/away")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let headers =
        [("Authorization", "Bearer s3cr3t"), ("X-Token", "s3cr3t"), ("Accept", "text/plain"), ("Host", "x")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let request = FetchRequest { headers, ..FetchRequest::new(format!("{}/first", server.uri())) };
    egress.fetch(request).await.expect("a page");
    let sent = requests(&server).await;
    assert_eq!(header(&sent[0], "authorization"), Some("Bearer s3cr3t"));
    assert_eq!(header(&sent[0], "host"), Some(format!("127.0.0.1:{port}").as_str()));
    assert_eq!((header(&sent[1], "authorization"), header(&sent[1], "x-token")), (None, None));
    assert_eq!(header(&sent[1], "accept"), Some("text/plain"));
}

#[tokio::test]
async fn what_is_too_large_too_slow_or_broken_ends_in_time() {
    let server = MockServer::start().await;
    let limited = |time_limit: Duration| {
        let limits = EgressOptions { size_limit: 10_000, time_limit, ..options() };
        Egress::new(limits).expect("a policy")
    };
    let (egress, hasty) = (limited(Duration::from_secs(60)), limited(Duration::from_millis(400)));
    let answer = |at: &'static str, template: ResponseTemplate| {
        Mock::given(path(at)).respond_with(template).mount(&server)
    };
    answer("/fits", ResponseTemplate::new(200).set_body_bytes(vec![b'x'; 10_000])).await;
    answer("/large", ResponseTemplate::new(200).set_body_bytes(vec![b'x'; 10_001])).await;
    answer("/slow", ResponseTemplate::new(200).set_delay(Duration::from_secs(60))).await;
    let packed = |name: &str| ResponseTemplate::new(200).insert_header("Content-Encoding", name);
    // 20,000 times `a`, by gzip.
    let bomb = include_bytes!("../../fixtures/20000a.gz");
    answer("/bomb", packed("gzip").set_body_bytes(bomb.as_slice())).await;
    answer("/unasked", packed("br").set_body_bytes(b"x".as_slice())).await;
    answer("/torn", packed("gzip").set_body_bytes(b"no gzip".as_slice())).await;
    for (page, expected) in [
        ("/fits", None),
        ("/large", Some("too_large")),
        ("/bomb", Some("too_large")),
        ("/unasked", Some("broken")),
        ("/torn", Some("broken")),
    ] {
        assert_eq!(kind_of(&egress, &format!("{}{page}", server.uri())).await, expected, "{page}");
    }
    assert_eq!(kind_of(&hasty, &format!("{}/slow", server.uri())).await, Some("timeout"));
    let request =
        FetchRequest { size_limit: Some(9_999), ..FetchRequest::new(format!("{}/fits", server.uri())) };
    let error = egress.fetch(request).await.expect_err("smaller than the policy's limit");
    assert!(error.to_string().ends_with("it is larger than 9999 bytes, the most that is read"), "{error}");
    // Bound and not listening: nobody else can take the port meanwhile.
    let silent = tokio::net::TcpSocket::new_v4().expect("a socket");
    silent.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = silent.local_addr().expect("its number");
    assert_eq!(kind_of(&egress, &format!("http://{address}/")).await, Some("connect"));
}

#[tokio::test]
async fn a_body_without_end_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its number");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            });
        }
    });
    let egress = Egress::new(EgressOptions { size_limit: 1 << 20, ..options() }).expect("a policy");
    assert_eq!(kind_of(&egress, &format!("http://{address}/")).await, Some("too_large"));
}

#[tokio::test]
async fn a_status_is_no_error() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(503).insert_header("Retry-After", "7").set_body_string("busy");
    Mock::given(path("/")).and(header_exists("accept-encoding")).respond_with(answer).mount(&server).await;
    let fetched = egress().fetch(FetchRequest::new(server.uri())).await.expect("an answer");
    assert_eq!((fetched.status, fetched.retry_after, fetched.is_success()), (503, Some(7), false));
}
