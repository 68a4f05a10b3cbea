//! Connections and requests.
//!
//! Decides how a checked address is reached: names are resolved here and nowhere else, the connection goes to what
//! was checked, every redirect begins anew. What may be reached is the policy's.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use reqwest::{Client, Method, Proxy, RequestBuilder, Response};
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::body::{Body, BodyError};
use super::cookies::Cookies;
use super::policy::Policy;
use super::{EgressError, EgressOptions, FetchRequest, Fetched, ServiceRequest};

/// Where names become addresses.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of a host.
    ///
    /// # Errors
    ///
    /// Where there are none, or nobody knows.
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Headers that belong to the connection and not to the one who asks.
const OF_THE_CONNECTION: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "accept-encoding",
    "range",
];

/// What another host is told as well.
const FOR_EVERYBODY: &[HeaderName] = &[ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];

pub(super) struct Inner {
    options: EgressOptions,
    policy: Arc<Policy>,
    resolver: Arc<dyn Resolver>,
    clients: OnceCell<Clients>,
}

/// A connection is never shared between what is trusted and what is not: each has a pool of its own.
struct Clients {
    /// To checked addresses only.
    direct: Client,
    /// To checked names through a proxy.
    proxied: Client,
    /// To services of the configuration, wherever they are.
    service: Client,
}

impl Inner {
    pub(super) fn new(options: EgressOptions, resolver: Arc<dyn Resolver>) -> Result<Self, EgressError> {
        let policy = Arc::new(Policy::new(&options)?);
        Ok(Self { options, policy, resolver, clients: OnceCell::new() })
    }

    pub(super) fn options(&self) -> &EgressOptions {
        &self.options
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) async fn fetch(&self, request: FetchRequest) -> Result<Fetched, EgressError> {
        let most = self.options.time_limit;
        let limit = request.time_limit.map_or(most, |limit| limit.min(most));
        match tokio::time::timeout(limit, self.follow(&request)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(EgressError::Timeout { url: request.url, limit }),
        }
    }

    async fn follow(&self, request: &FetchRequest) -> Result<Fetched, EgressError> {
        let first = self.policy.check(&request.url)?;
        let most = self.options.size_limit;
        let size_limit = request.size_limit.map_or(most, |limit| limit.min(most));
        let mut headers = headers_of(&request.headers, OF_THE_CONNECTION);
        let mut url = first.clone();
        let mut cookies = Cookies::default();
        let redirected = |error: EgressError| match error.is_refusal() {
            true => EgressError::Redirect { url: first.to_string(), refusal: Box::new(error) },
            false => error,
        };
        for hop in 0..=self.options.redirect_limit {
            let response = self.get(&url, cookies.added_to(&headers, &url)).await;
            let response = if hop == 0 { response? } else { response.map_err(redirected)? };
            let Some(target) = redirect_target(&response, &url) else {
                return read(response, url, size_limit).await;
            };
            let target = target?;
            self.policy.check_parsed(&target).map_err(redirected)?;
            cookies.take(&url, response.headers());
            if target.origin() != url.origin() {
                headers = headers
                    .into_iter()
                    .filter_map(|(name, value)| Some((name?, value)))
                    .filter(|(name, _)| FOR_EVERYBODY.contains(name))
                    .collect();
            }
            url = target;
        }
        Err(EgressError::TooManyRedirects { url: first.to_string(), limit: self.options.redirect_limit })
    }

    /// What a client of our own proxy may reach: one page, or, by a tunnel, all pages of a host.
    pub(super) fn check_client_of_proxy(&self, url: &Url, is_tunnel: bool) -> Result<(), EgressError> {
        self.policy.check_parsed(url)?;
        if is_tunnel { self.policy.check_tunnel(url) } else { Ok(()) }
    }

    /// The addresses of a host, all of them checked.
    pub(super) async fn checked_addresses(&self, url: &Url) -> Result<Vec<IpAddr>, EgressError> {
        let host = match url.host() {
            Some(Host::Ipv4(address)) => return Ok(vec![IpAddr::V4(address)]),
            Some(Host::Ipv6(address)) => return Ok(vec![IpAddr::V6(address)]),
            Some(Host::Domain(host)) => host,
            None => "",
        };
        let unknown = |problem: String| EgressError::UnknownHost {
            url: url.to_string(),
            host: host.to_owned(),
            problem,
        };
        let addresses = self.resolver.resolve(host).await.map_err(|error| unknown(error.to_string()))?;
        self.policy
            .check_addresses(host, &addresses)
            .map_err(|(address, kind)| refused(url, address, kind))?;
        Ok(addresses)
    }

    /// One hop.
    async fn get(&self, url: &Url, headers: HeaderMap) -> Result<Response, EgressError> {
        let clients = self.clients().await?;
        let client = match self.options.proxies.proxy_of(url) {
            None => &clients.direct,
            Some(_) => {
                self.check_for_proxy(url).await?;
                &clients.proxied
            }
        };
        send(client.get(url.clone()).headers(headers), url, self.options.connect_limit).await
    }

    /// What this machine knows of a host that a proxy will resolve. Often it knows nothing, which is no reason to
    /// refuse.
    async fn check_for_proxy(&self, url: &Url) -> Result<(), EgressError> {
        let Some(Host::Domain(host)) = url.host() else { return Ok(()) };
        let Ok(addresses) = self.resolver.resolve(host).await else { return Ok(()) };
        self.policy.check_addresses(host, &addresses).map_err(|(address, kind)| refused(url, address, kind))
    }

    pub(super) async fn ask_service(&self, request: ServiceRequest) -> Result<Fetched, EgressError> {
        let method = if request.body.is_some() { Method::POST } else { Method::GET };
        self.send_to_service(request, method).await
    }

    #[cfg(feature = "e2b")]
    pub(super) async fn delete_at_service(&self, request: ServiceRequest) -> Result<Fetched, EgressError> {
        self.send_to_service(request, Method::DELETE).await
    }

    async fn send_to_service(&self, request: ServiceRequest, method: Method) -> Result<Fetched, EgressError> {
        let wrong = |problem: String| EgressError::Address { url: request.url.clone(), problem };
        let url = Url::parse(&request.url).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::Scheme { scheme: url.scheme().to_owned(), url: request.url });
        }
        let limit = request.time_limit.unwrap_or(self.options.time_limit);
        let asked = async {
            let client = &self.clients().await?.service;
            let headers = headers_of(&request.headers, &[]);
            let mut builder = client.request(method, url.clone()).headers(headers);
            if let Some(body) = request.body {
                builder = builder.body(body);
            }
            let response = send(builder, &url, self.options.connect_limit).await?;
            read(response, url.clone(), self.options.size_limit).await
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(fetched) => fetched,
            Err(_) => Err(EgressError::Timeout { url: request.url, limit }),
        }
    }

    async fn clients(&self) -> Result<&Clients, EgressError> {
        self.clients
            .get_or_try_init(|| async {
                let tls = tokio::task::spawn_blocking(tls_config)
                    .await
                    .unwrap_or_else(|error| Err(error.to_string()))
                    .map_err(|problem| EgressError::Configuration { setting: "TLS", problem })?;
                self.build(&tls)
            })
            .await
    }

    fn build(&self, tls: &rustls::ClientConfig) -> Result<Clients, EgressError> {
        let options = &self.options;
        let wrong = |error: reqwest::Error| EgressError::Configuration {
            setting: "proxies",
            problem: innermost(&error.without_url()),
        };
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .user_agent(&options.user_agent)
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(options.connect_limit)
                .no_proxy()
        };
        let checked = Checked { policy: Arc::clone(&self.policy), resolver: Arc::clone(&self.resolver) };
        let (mut proxied, mut service) = (builder(), builder());
        if options.proxies.all().next().is_some() {
            let chosen = options.proxies.clone();
            let custom = move || {
                let chosen = chosen.clone();
                Proxy::custom(move |url| chosen.proxy_of(url).cloned())
            };
            proxied = proxied.proxy(custom());
            service = service.proxy(custom());
        }
        Ok(Clients {
            direct: builder().dns_resolver(Arc::new(checked)).build().map_err(wrong)?,
            proxied: proxied.build().map_err(wrong)?,
            service: service.build().map_err(wrong)?,
        })
    }
}

/// A resolver that gives out checked addresses only. It is asked when a connection is made and not before, so what
/// was checked is what is connected to.
struct Checked {
    policy: Arc<Policy>,
    resolver: Arc<dyn Resolver>,
}

impl reqwest::dns::Resolve for Checked {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (policy, resolver) = (Arc::clone(&self.policy), Arc::clone(&self.resolver));
        Box::pin(async move {
            let host = name.as_str();
            let addresses =
                resolver.resolve(host).await.map_err(|error| Unresolved::Unknown(error.to_string()))?;
            if addresses.is_empty() {
                return Err(Unresolved::Unknown("it has no address".to_owned()).into());
            }
            policy
                .check_addresses(host, &addresses)
                .map_err(|(address, kind)| Unresolved::Refused(address, kind))?;
            let addresses: reqwest::dns::Addrs =
                Box::new(addresses.into_iter().map(|address| std::net::SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// Why a name gave no address to connect to; it comes back out of the client's error.
#[derive(Debug, thiserror::Error)]
enum Unresolved {
    #[error("{0} is {1}")]
    Refused(IpAddr, &'static str),
    #[error("{0}")]
    Unknown(String),
}

fn refused(url: &Url, address: IpAddr, kind: &str) -> EgressError {
    EgressError::Private {
        url: url.to_string(),
        host: url.host_str().unwrap_or_default().to_owned(),
        address: Some(address.to_string()),
        kind: kind.to_owned(),
    }
}

async fn send(request: RequestBuilder, url: &Url, connect_limit: Duration) -> Result<Response, EgressError> {
    let packed = HeaderValue::from_static("gzip, deflate");
    request
        .header(ACCEPT_ENCODING, packed)
        .send()
        .await
        .map_err(|error| problem_of(error, url, connect_limit))
}

fn problem_of(error: reqwest::Error, url: &Url, connect_limit: Duration) -> EgressError {
    let error = error.without_url();
    let text = url.to_string();
    match sources(&error).find_map(|source| source.downcast_ref::<Unresolved>()) {
        Some(Unresolved::Refused(address, kind)) => return refused(url, *address, kind),
        Some(Unresolved::Unknown(problem)) => {
            let host = url.host_str().unwrap_or_default().to_owned();
            return EgressError::UnknownHost { url: text, host, problem: problem.clone() };
        }
        None => {}
    }
    if error.is_connect() {
        let problem = match error.is_timeout() {
            true => format!("none within {} s", connect_limit.as_secs_f64()),
            false => innermost(&error),
        };
        return EgressError::Connect { url: text, problem };
    }
    EgressError::Broken { url: text, problem: innermost(&error) }
}

/// Where a redirect leads.
fn redirect_target(response: &Response, url: &Url) -> Option<Result<Url, EgressError>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    let wrong = || EgressError::Broken {
        url: url.to_string(),
        problem: "it redirects to something that is no address".to_owned(),
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(url.join(&location).map_err(|_| wrong()))
}

async fn read(mut response: Response, url: Url, limit: u64) -> Result<Fetched, EgressError> {
    let text = |name: HeaderName| {
        response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let wrong = |error: BodyError| match error {
        BodyError::TooLarge => EgressError::TooLarge { url: url.to_string(), limit },
        BodyError::Broken(problem) => EgressError::Broken { url: url.to_string(), problem },
    };
    let encoding = text(CONTENT_ENCODING);
    if encoding.is_none() && response.content_length().is_some_and(|length| length > limit) {
        return Err(wrong(BodyError::TooLarge));
    }
    let mut fetched = Fetched {
        status: response.status().as_u16(),
        content_type: text(CONTENT_TYPE),
        name: super::name::of(text(reqwest::header::CONTENT_DISPOSITION).as_deref(), &url),
        retry_after: text(RETRY_AFTER).and_then(|value| value.trim().parse().ok()),
        body: Vec::new(),
        url: url.clone(),
    };
    let mut body = Body::new(encoding.as_deref(), limit).map_err(wrong)?;
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => body.push(&piece).map_err(wrong)?,
            Ok(None) => break,
            Err(error) => return Err(problem_of(error, &url, Duration::ZERO)),
        }
    }
    fetched.body = body.finish().map_err(wrong)?;
    Ok(fetched)
}

/// Headers without those that cannot be sent.
fn headers_of(headers: &[(String, String)], without: &[&str]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::try_from(name.trim()).ok().zip(HeaderValue::try_from(value.trim()).ok());
        if let Some((name, mut value)) = parsed.filter(|(name, _)| !without.contains(&name.as_str())) {
            value.set_sensitive(true);
            map.insert(name, value);
        }
    }
    map
}

/// TLS with the roots of this machine, without touching the process-wide default.
fn tls_config() -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt as _;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_platform_verifier()
        .map_err(|error| format!("no root certificates can be loaded: {error}"))?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn sources<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn StdError + 'static) = *error;
        error.source()
    })
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    sources(error).last().map(ToString::to_string).unwrap_or_default()
}
