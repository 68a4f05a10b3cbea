//! The way out: everything that a tool fetches from a network goes through here.
//!
//! Decides what may be fetched, from where and how much of it. What is made of it is left to the tools.
//!
//! An address is checked by its text, its host by what it resolves to, and the connection goes to an address that
//! was checked and to no other; the same again for every redirect. Behind a proxy it is the proxy that resolves
//! names: what this machine knows of them is checked, the rest is the proxy's affair.

mod address;
mod body;
mod client;
mod cookies;
mod error;
mod name;
mod pattern;
mod policy;
mod proxies;
#[cfg(feature = "python")]
pub(crate) mod proxy;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use url::Url;

pub use client::{Resolver, SystemResolver};
pub use error::EgressError;
pub(crate) use error::shown;
pub use proxies::Proxies;
pub(crate) use retry::{Backoff, is_retryable_status};

/// What may be fetched, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressOptions {
    /// Pages that are not fetched: `host.example` with its subdomains, `host.example/path` with all below it, a word
    /// without a dot anywhere in an address, or a pattern with `*` for host, path and query.
    pub blocked: Vec<String>,
    /// Hosts, addresses and networks (`10.1.0.0/16`) that may be reached although they are not public.
    pub allow_private: Vec<String>,
    /// Bytes of an answer, unpacked. Default 32 MiB.
    pub size_limit: u64,
    /// From the request to the last byte, redirects included. Default 60 s.
    pub time_limit: Duration,
    /// For one connection. Default 10 s.
    pub connect_limit: Duration,
    /// Redirects that are followed. Default 10.
    pub redirect_limit: usize,
    /// What the fetcher calls itself.
    pub user_agent: String,
    /// Proxies to go through.
    pub proxies: Proxies,
}

/// Pages with the answers of benchmarks, under all names of their host, and a service that searches them.
pub const BLOCKED: &[&str] = &[
    "huggingface.co/datasets",
    "huggingface.co/spaces",
    "huggingface.co/api/datasets",
    "huggingface.co/api/spaces",
    "hf.co/datasets",
    "hf.co/spaces",
    "datasets-server.huggingface.co",
    "hf-mirror.com/datasets",
    "hf-mirror.com/spaces",
    "hf.space",
    "unifuncs",
];

impl Default for EgressOptions {
    fn default() -> Self {
        Self {
            blocked: BLOCKED.iter().map(|text| (*text).to_owned()).collect(),
            allow_private: Vec::new(),
            size_limit: 32 << 20,
            time_limit: Duration::from_secs(60),
            connect_limit: Duration::from_secs(10),
            redirect_limit: 10,
            user_agent: concat!("Mozilla/5.0 (compatible; Fathom/", env!("CARGO_PKG_VERSION"), ")")
                .to_owned(),
            proxies: Proxies::default(),
        }
    }
}

/// What is fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// The address; `https://` may be left out.
    pub url: String,
    /// Headers, such as `Accept`. Those that belong to the connection are left out; those that may hold secrets are
    /// not sent on to another host.
    pub headers: Vec<(String, String)>,
    /// Bytes of the answer, where less than the policy's limit.
    pub size_limit: Option<u64>,
    /// Time for all of it, where less than the policy's limit.
    pub time_limit: Option<Duration>,
}

impl FetchRequest {
    /// A page, with the limits of the policy.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

/// What came back, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The address that answered, after redirects.
    pub url: Url,
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`, as the server says it.
    pub content_type: Option<String>,
    /// The file's name: from `Content-Disposition`, else the last part of the path; empty where there is none.
    pub name: String,
    /// How long the server asks to be left alone, in seconds.
    pub retry_after: Option<u64>,
    /// The body, unpacked.
    pub body: Vec<u8>,
}

impl Fetched {
    /// Whether the server gave what was asked for.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A request to a service that the configuration names: its address is trusted, its answer is limited all the same.
#[derive(Clone, Default)]
pub(crate) struct ServiceRequest {
    pub(crate) url: String,
    /// May hold keys.
    pub(crate) headers: Vec<(String, String)>,
    /// A JSON body makes it a POST.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) time_limit: Option<Duration>,
}

/// The way out, with its policy. Clones share connections.
#[derive(Clone)]
pub struct Egress(Arc<client::Inner>);

impl std::fmt::Debug for Egress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Egress").field(self.options()).finish()
    }
}

impl Egress {
    /// With the system's resolver. Connects to nothing.
    ///
    /// # Errors
    ///
    /// [`EgressError::Configuration`] for an entry that means nothing.
    pub fn new(options: EgressOptions) -> Result<Self, EgressError> {
        Self::with_resolver(options, Arc::new(SystemResolver))
    }

    /// With a resolver of one's own.
    ///
    /// # Errors
    ///
    /// As [`Egress::new`].
    pub fn with_resolver(options: EgressOptions, resolver: Arc<dyn Resolver>) -> Result<Self, EgressError> {
        Ok(Self(Arc::new(client::Inner::new(options, resolver)?)))
    }

    /// The policy.
    #[must_use]
    pub fn options(&self) -> &EgressOptions {
        self.0.options()
    }

    /// The address that a text means, where its text alone is no reason to refuse it. Resolves nothing.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn check(&self, url: &str) -> Result<Url, EgressError> {
        self.0.policy().check(url)
    }

    /// Whether fetches go through proxies of the surroundings.
    #[cfg(feature = "python")]
    pub(crate) fn is_behind_proxy(&self) -> bool {
        self.options().proxies.all().next().is_some()
    }

    /// Fetches a page that a model or another page named.
    ///
    /// # Errors
    ///
    /// What the policy refused, and what went wrong on the way. A bad status is no error.
    pub async fn fetch(&self, request: FetchRequest) -> Result<Fetched, EgressError> {
        self.0.fetch(request).await
    }

    /// Asks a service of the configuration: no redirects, and private addresses may be reached.
    pub(crate) async fn ask_service(&self, request: ServiceRequest) -> Result<Fetched, EgressError> {
        self.0.ask_service(request).await
    }

    /// Tells a service of the configuration to remove what an address stands for.
    #[cfg(feature = "e2b")]
    pub(crate) async fn delete_at_service(&self, request: ServiceRequest) -> Result<Fetched, EgressError> {
        self.0.delete_at_service(request).await
    }
}
