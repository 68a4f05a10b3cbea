//! What the tests of the web tools share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mcp_tools::egress::{Egress, EgressOptions, Resolver};
use mcp_tools::servers::library::{Collection, Document, LibraryOptions};
use mcp_tools::servers::web::{self, Services, WebOptions};
use mcp_tools::{ModelAnswer, ModelError, ModelQuestion, ToolModel};
use wiremock::{MockServer, Request};

use crate::python::client::Client;

/// Names that the tests know, and how often each was asked for.
#[derive(Default)]
pub(crate) struct Names {
    known: HashMap<&'static str, Vec<IpAddr>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn new(known: &[(&'static str, &[&str])]) -> Arc<Self> {
        let parse =
            |addresses: &[&str]| addresses.iter().map(|text| text.parse().expect("an address")).collect();
        let known = known.iter().map(|(name, addresses)| (*name, parse(addresses))).collect();
        Arc::new(Self { known, asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.known.get(host).cloned().ok_or_else(|| std::io::Error::other("no such name in this test"))
    }
}

/// A policy that lets tests reach their own servers, which are all on one address.
pub(crate) fn options() -> EgressOptions {
    EgressOptions { allow_private: vec!["127.0.0.1".to_owned()], ..EgressOptions::default() }
}

pub(crate) fn egress() -> Egress {
    Egress::new(options()).expect("a policy")
}

pub(crate) fn services(variables: &[(&str, &str)]) -> Services {
    Services::from_environment(&|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

/// A session with one of the web servers, which waits next to nothing between its tries.
pub(crate) async fn client(name: &str, change: impl FnOnce(&mut WebOptions)) -> Client {
    let mut options = WebOptions::new(egress());
    options.pause = Duration::from_millis(1);
    change(&mut options);
    let server = web::server(name, options).expect("a server").expect("a known name");
    Client::connect(server, tempfile::tempdir().expect("a directory")).await
}

/// A library of two documents, one of them long.
pub(crate) fn library() -> LibraryOptions {
    let document = |id: &str, title: &str, body: String| Document {
        id: id.into(),
        title: title.into(),
        body,
        source: format!("https://encyclopedia.example/{id}"),
        license: None,
        group: None,
    };
    let long: String =
        (0..2000).map(|line| format!("Volcano number {line} erupted in the year {line}.\n\n")).collect();
    let documents = vec![
        document("curie", "Marie Curie", "Marie Curie shared the Nobel Prize in Physics of 1903.".into()),
        document("volcanoes", "List of volcanoes", long),
    ];
    LibraryOptions::new(vec![Collection::documents("notes", documents).expect("a collection")], None)
}

/// A model that answers by a function and remembers what it was asked.
pub(crate) struct Scripted<F> {
    pub(crate) asked: Mutex<Vec<ModelQuestion>>,
    pub(crate) reply: F,
}

impl<F> Scripted<F>
where
    F: Fn(&ModelQuestion) -> Result<String, ModelError> + Send + Sync + 'static,
{
    pub(crate) fn new(reply: F) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), reply })
    }

    pub(crate) fn questions(&self) -> Vec<ModelQuestion> {
        self.asked.lock().expect("a lock").clone()
    }
}

#[async_trait]
impl<F> ToolModel for Scripted<F>
where
    F: Fn(&ModelQuestion) -> Result<String, ModelError> + Send + Sync + 'static,
{
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        let reply = (self.reply)(&question);
        self.asked.lock().expect("a lock").push(question);
        let text = reply?;
        Ok(ModelAnswer { text, cut: false, model: "small-1".to_owned(), tokens_used: Some(42) })
    }

    fn name(&self) -> &str {
        "small"
    }
}

/// What a server was asked, oldest first.
pub(crate) async fn requests(server: &MockServer) -> Vec<Request> {
    server.received_requests().await.expect("requests are recorded")
}

pub(crate) fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().expect("a text"))
}
