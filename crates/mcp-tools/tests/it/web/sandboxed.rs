//! The network of a sandbox: a proxy with the policy, and nothing beside it.

use mcp_tools::egress::{Egress, EgressOptions};
use mcp_tools::servers::python;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::{Names, header, options, requests};
use crate::python::client::{self, Client, scratch};

/// A sandbox with a network, where this machine can keep code to the proxy.
async fn networked(egress: Egress) -> Option<Client> {
    let scratch = scratch();
    let mut options = client::options(&scratch);
    options.network = Some(egress);
    let server = python::server(options);
    let lines = server.confinement();
    let line = lines.iter().find(|line| line.starts_with("network: ")).expect("a line about the network");
    if !line.contains("through a proxy") {
        eprintln!("skipped: {line}");
        return None;
    }
    Some(Client::connect(server, scratch).await)
}

const FETCH: &str = "
import urllib.request, urllib.error
def fetch(url, data=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=20) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return f'{error.code} {error.read().decode()}'
    except Exception as error:
        return repr(error)
";

#[tokio::test]
async fn code_reaches_what_the_policy_lets_through() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/data"))
        .respond_with(ResponseTemplate::new(200).set_body_string("here"))
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/post"))
        .respond_with(ResponseTemplate::new(200).set_body_string("taken"))
        .mount(&server)
        .await;
    let port = server.address().port();
    let names = Names::new(&[("fine.test", &["127.0.0.1"]), ("inner.test", &["10.0.0.1"])]);
    let egress = Egress::with_resolver(options(), names).expect("a policy");
    let Some(client) = networked(egress).await else { return };
    client.run(FETCH).await;
    let fetch = async |url: String| client.run(&format!("print(fetch('{url}'))")).await.text;
    assert_eq!(fetch(format!("http://fine.test:{port}/data?x=1")).await, "here");
    assert_eq!(
        client.run(&format!("print(fetch('http://127.0.0.1:{port}/post', b'abc'))")).await.text,
        "taken"
    );
    let sent = requests(&server).await;
    assert_eq!(
        (sent[0].url.query(), header(&sent[0], "host")),
        (Some("x=1"), Some(format!("fine.test:{port}").as_str()))
    );
    assert_eq!((sent[1].body.as_slice(), header(&sent[1], "proxy-connection")), (&b"abc"[..], None));
    for (url, expected) in [
        ("http://inner.test/", "is a private address (10.0.0.1)"),
        ("http://192.168.0.1/", "is a private address"),
        ("http://169.254.169.254/latest/", "is a link-local address"),
        ("http://huggingface.co/datasets/x", "it is blocked in this run"),
        ("http://unknown.test/", "502"),
        ("https://huggingface.co/", "403"),
        ("https://inner.test/", "403"),
    ] {
        let text = fetch(url.to_owned()).await;
        assert!(text.contains(expected), "{url}: {text}");
    }
    // A tunnel: raw bytes to a checked host.
    let tunnel = format!(
        "import http.client
connection = http.client.HTTPConnection('127.0.0.1', 3128)
connection.set_tunnel('fine.test', {port})
connection.request('GET', '/data')
print(connection.getresponse().read().decode())"
    );
    assert_eq!(client.run(&tunnel).await.text, "here");
    // One request a connection: what comes after it is not carried out.
    let smuggled = format!(
        "import socket
s = socket.create_connection(('127.0.0.1', 3128))
one = 'GET http://fine.test:{port}/data HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'
s.sendall((one + 'GET http://huggingface.co/datasets/x HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n').encode())
received = b''
while piece := s.recv(4096): received += piece
print(received.count(b'HTTP/1.1'))"
    );
    let before = requests(&server).await.len();
    assert_eq!(client.run(&smuggled).await.text, "1");
    assert_eq!(requests(&server).await.len(), before + 1);
    client.stop().await;
}

#[tokio::test]
async fn there_is_no_way_beside_the_proxy() {
    let server = MockServer::start().await;
    Mock::given(path("/")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let port = server.address().port();
    let Some(client) = networked(Egress::new(EgressOptions::default()).expect("a policy")).await else {
        return;
    };
    client
        .run(
            "import socket
def attempt(work):
    try:
        return f'came through: {work()}'
    except OSError as error:
        return 'refused'",
        )
        .await;
    for (what, code) in [
        ("a server of this machine", format!("socket.create_connection(('127.0.0.1', {port}), 5)")),
        ("the same by IPv6", format!("socket.create_connection(('::1', {port}), 5)")),
        ("a server elsewhere", "socket.create_connection(('93.184.216.34', 80), 5)".to_owned()),
        ("its proxy's port elsewhere", "socket.create_connection(('93.184.216.34', 3128), 5)".to_owned()),
        ("names", "socket.getaddrinfo('example.org', 80)".to_owned()),
        ("datagrams", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)".to_owned()),
        ("raw sockets", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)".to_owned()),
        ("multipath", "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)".to_owned()),
        ("sockets of this machine", "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)".to_owned()),
        ("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)".to_owned()),
        ("listening", "socket.create_server(('127.0.0.1', 8080))".to_owned()),
    ] {
        let reply = client.run(&format!("print(attempt(lambda: {code}))")).await;
        assert_eq!(reply.text, "refused", "{what}");
    }
    assert_eq!(requests(&server).await.len(), 0);
    let asked = client.run("import os; print(os.environ['HTTPS_PROXY'])").await;
    assert_eq!(asked.text, "http://127.0.0.1:3128");
    client.stop().await;
}
