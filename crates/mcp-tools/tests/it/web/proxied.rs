//! Fetching through the proxies of the surroundings.

use mcp_tools::egress::{Egress, EgressOptions, FetchRequest, Proxies};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::{Names, header, requests};

#[tokio::test]
async fn a_proxy_is_asked_for_what_may_be_fetched_only() {
    let proxy = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string("by proxy"))
        .mount(&proxy)
        .await;
    let address = format!("http://me:proxy-password@{}", proxy.address());
    let proxies = Proxies::from_environment(&|name| (name == "http_proxy").then(|| address.clone()));
    let names = Names::new(&[("inner.test", &["10.0.0.1"])]);
    let egress = Egress::with_resolver(EgressOptions { proxies, ..EgressOptions::default() }, names)
        .expect("a policy");
    // A name that this machine cannot resolve is the proxy's affair.
    let fetched = egress.fetch(FetchRequest::new("http://far.test/page?x=1")).await.expect("a page");
    assert_eq!(fetched.body, b"by proxy");
    for refused in
        ["http://inner.test/", "http://10.0.0.1/", "http://localhost/", "http://huggingface.co/datasets/x"]
    {
        let error = egress.fetch(FetchRequest::new(refused)).await.expect_err("refused");
        assert!(error.is_refusal(), "{refused}: {error}");
    }
    let sent = requests(&proxy).await;
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].url.path(), sent[0].url.query()), ("/page", Some("x=1")));
    assert_eq!(header(&sent[0], "host"), Some("far.test"));
    assert_eq!(header(&sent[0], "proxy-authorization"), Some("Basic bWU6cHJveHktcGFzc3dvcmQ="));
    assert!(!format!("{egress:?}").contains("proxy-password"));
}
