//! What a tool server is and how it is reached.
//!
//! Decides the shape of a server's description and the defaults of its limits. Starting it is left
//! to the session, reading it from a file to `mcp_json`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

/// How long a server may take from its start to its list of tools, where nothing else is said.
pub const DEFAULT_START_LIMIT: Duration = Duration::from_secs(30);
/// How long one call may take, where nothing else is said.
pub const DEFAULT_CALL_LIMIT: Duration = Duration::from_secs(300);
/// The longest that one call may take, whatever is said.
pub const MAX_CALL_LIMIT: Duration = Duration::from_secs(1200);
/// Characters of text that one result may hold, where nothing else is said.
pub const DEFAULT_OUTPUT_LIMIT: usize = 100_000;

/// One server: its name, how it is reached, and its limits.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The name that the model calls it by; unique among the servers of a manager.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// From the start of the program or connection to the list of tools.
    pub start_limit: Duration,
    /// For one call; [`MAX_CALL_LIMIT`] bounds it.
    pub call_limit: Duration,
    /// Calls that may run at once; none sets no bound.
    pub max_concurrency: Option<usize>,
    /// The only tools of this server that are shown and called; none: all.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools of this server that are neither shown nor called.
    pub disabled_tools: Vec<String>,
}

impl ServerSpec {
    /// A server with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            start_limit: DEFAULT_START_LIMIT,
            call_limit: DEFAULT_CALL_LIMIT,
            max_concurrency: None,
            enabled_tools: None,
            disabled_tools: Vec::new(),
        }
    }

    /// A built-in server under its own name, with the default limits.
    #[must_use]
    pub fn built_in(server: Arc<dyn InProcessServer>) -> Self {
        Self::new(server.name().to_owned(), Transport::InProcess(server))
    }
}

/// How a server is reached. `Debug` shows no values of variables, headers and tokens.
#[derive(Clone)]
pub enum Transport {
    /// A program of its own that speaks over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the few that every server inherits.
        env: BTreeMap<String, String>,
        /// Where it starts; none is the directory of this process.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP endpoint. Needs the feature `http`.
    Http {
        /// The address of the endpoint.
        url: String,
        /// A token for the `Authorization` header, without the word `Bearer`.
        bearer: Option<String>,
        /// Further headers of every request.
        headers: BTreeMap<String, String>,
    },
    /// A server inside this process.
    InProcess(Arc<dyn InProcessServer>),
    /// A server that is described and cannot be had.
    Unavailable {
        /// Why, and what to do.
        reason: String,
        /// It was switched off on purpose: a manager says nothing of it.
        switched_off: bool,
    },
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, bearer, headers } => formatter
                .debug_struct("Http")
                .field("url", &without_query(url))
                .field("bearer", &bearer.as_ref().map(|_| "***"))
                .field("headers", &headers.keys())
                .finish(),
            Self::InProcess(server) => formatter.debug_tuple("InProcess").field(&server.name()).finish(),
            Self::Unavailable { reason, .. } => formatter.debug_tuple("Unavailable").field(reason).finish(),
        }
    }
}

/// An address without its query, fragment and credentials, which may hold keys.
pub(crate) fn without_query(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let bare = &url[..end];
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.find('/').unwrap_or(rest.len());
            match rest[..authority].rfind('@') {
                Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
                None => bare.to_owned(),
            }
        }
        None => bare.to_owned(),
    }
}

/// A server that runs inside this process, over an in-memory transport.
///
/// [`in_process`](crate::in_process) makes one from any handler of `rmcp`; implement the trait where a
/// server needs more than a handler.
#[async_trait]
pub trait InProcessServer: Send + Sync {
    /// The name that the server goes by unless its [`ServerSpec`] says otherwise.
    fn name(&self) -> &str;

    /// Serves one session until the peer hangs up or `stop` is cancelled. Called anew for every
    /// session, so that a restart starts afresh.
    async fn serve(&self, io: DuplexStream, stop: CancellationToken);

    /// What is in force to confine code that the server runs, for the log.
    fn confinement(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a manager does with the tools and their output.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Tools that are neither shown nor called, as (server, tool).
    pub blacklist: Vec<(String, String)>,
    /// Characters of text that one result may hold.
    pub output_limit: usize,
    /// Where results that were cut are kept whole, each under the sha256 of its text; none keeps
    /// none.
    pub blob_dir: Option<PathBuf>,
    /// Tags whose `<` becomes `&lt;` in what servers send. An entry that starts with `<` is taken
    /// as it is (`<use_mcp_tool>`, `<function=`); any other is a tag name, opening and closing.
    pub neutralise_tags: Vec<String>,
    /// The version that servers are told.
    pub client_version: String,
    /// By server, whether its calls may be made again where nobody knows whether they were carried out; a server
    /// that is not named here is asked. See [`ToolManager::is_repeatable`](crate::ToolManager::is_repeatable).
    pub repeatable: BTreeMap<String, bool>,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            blacklist: Vec::new(),
            output_limit: DEFAULT_OUTPUT_LIMIT,
            blob_dir: None,
            neutralise_tags: Vec::new(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            repeatable: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secrets() {
        let secret = "s3cr3t".to_owned();
        let map = BTreeMap::from([("KEY".to_owned(), secret.clone())]);
        let specs = [
            Transport::Stdio { command: "x".into(), args: vec![secret.clone()], env: map.clone(), cwd: None },
            Transport::Http {
                url: "https://u:s3cr3t@host/mcp?key=s3cr3t".into(),
                bearer: Some(secret),
                headers: map,
            },
        ];
        for transport in specs {
            let shown = format!("{:?}", ServerSpec::new("n", transport));
            assert!(!shown.contains("s3cr3t"), "{shown}");
            assert!(shown.contains("KEY"), "{shown}");
        }
    }

    #[test]
    fn addresses_lose_what_may_be_secret() {
        for (url, expected) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://host/mcp?k=v#f", "https://host/mcp"),
            ("https://u:p@host:1/a@b", "https://host:1/a@b"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(without_query(url), expected);
        }
    }
}
