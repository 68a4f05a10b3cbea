//! One HTTP endpoint: the client, its TLS and proxies, and what its faults mean.
//!
//! Decides how a request is sent and which [`LlmError`] a fault on the way is. The client is built at
//! the first request, and root certificates are loaded for https only, off the async threads: a request
//! to a server on this machine goes out at once. Redirects are not followed (a POST would become a
//! GET, and the key would travel to another host); they are reported instead.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, NoProxy, Proxy, Response, Url};
use tokio::sync::OnceCell;

use crate::address::{endpoint_url, may_be_secret};
pub(crate) use crate::address::{is_loopback, safe_url};
use crate::classify;
use crate::quirks::Auth;
use crate::scrub::Scrubber;
use crate::{Endpoint, Environment, LlmError, Origins, Secret, TimeoutStage, Unreachable, retry_after};

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 * 1024;
/// How long the body of an error may take.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(5);

const USER_AGENT: &str = concat!("fathom/", env!("CARGO_PKG_VERSION"));

/// Everything that must be known to reach an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct HttpSettings {
    pub(crate) provider: String,
    pub(crate) model: String,
    /// Base address; [`HttpSettings::path`] is added to its path.
    pub(crate) base_url: String,
    pub(crate) path: String,
    pub(crate) key: Option<Secret>,
    pub(crate) auth: Auth,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) connect_timeout: Option<Duration>,
    /// Where name, address and key were set, for messages.
    pub(crate) origins: Origins,
    pub(crate) environment: Environment,
}

/// An endpoint that requests can be sent to. `Debug` shows no secrets.
pub(crate) struct HttpEndpoint {
    endpoint: Arc<Endpoint>,
    url: Url,
    headers: HeaderMap,
    connect_timeout: Option<Duration>,
    proxies: ProxySettings,
    scrubber: Scrubber,
    client: OnceCell<Client>,
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpEndpoint").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl HttpEndpoint {
    /// Checks the settings; sends nothing and loads nothing.
    pub(crate) fn new(settings: HttpSettings) -> Result<Self, LlmError> {
        let url = endpoint_url(&settings.base_url, &settings.path)?;
        let endpoint = Arc::new(Endpoint {
            provider: settings.provider,
            model: settings.model,
            url: Some(safe_url(&url)),
            origins: settings.origins,
        });
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let name_value = HeaderName::try_from(name.as_str())
                .ok()
                .zip(HeaderValue::try_from(value.expose()).ok())
                .ok_or_else(|| {
                    wrong_setting(format!("the header `{name}` (llm.quirks.headers) is not valid"))
                })?;
            let (name, mut value) = name_value;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Some(key) = settings.key.as_ref().filter(|key| !key.is_empty()) {
            let key = key.expose().trim();
            let (name, value) = match settings.auth {
                Auth::Bearer => ("authorization", format!("Bearer {key}")),
                Auth::XApiKey => ("x-api-key", key.to_owned()),
                Auth::ApiKey => ("api-key", key.to_owned()),
            };
            let mut value = HeaderValue::try_from(value).map_err(|_| LlmError::Configuration {
                message: format!(
                    "the API key of provider `{}` holds characters that no key has",
                    endpoint.provider
                ),
                hint: Some(
                    "look for line breaks or quotes in llm.api_key or its environment variable".to_owned(),
                ),
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let proxies = if is_loopback(&url) {
            ProxySettings::default()
        } else {
            ProxySettings::from_environment(&settings.environment)
        };
        // Further headers and the address's query hold keys too, at some gateways.
        let of_query = url.query_pairs().filter(|(name, _)| may_be_secret(name));
        let of_query: Vec<Secret> = of_query.map(|(_, value)| Secret::from(&*value)).collect();
        let of_headers = settings.headers.into_iter().filter(|(name, _)| may_be_secret(name));
        let secrets = settings
            .key
            .into_iter()
            .chain(url.password().map(Secret::from))
            .chain(of_query)
            .chain(of_headers.map(|(_, value)| value))
            .chain(proxies.secrets());
        Ok(Self {
            endpoint,
            url,
            headers,
            connect_timeout: settings.connect_timeout,
            scrubber: Scrubber::new(secrets),
            proxies,
            client: OnceCell::new(),
        })
    }

    /// Whom requests go to, for messages.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// What takes the endpoint's secrets out of foreign words.
    pub(crate) fn scrubber(&self) -> &Scrubber {
        &self.scrubber
    }

    /// Sends a JSON body. A response with a bad status is an error.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Response, LlmError> {
        let client = self.client.get_or_try_init(|| self.build_client()).await?;
        let request = client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        let response = request.send().await.map_err(|error| self.transport_error(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.status_error(response).await)
    }

    /// The whole address.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Asks for JSON. A response with a bad status is an error.
    pub(crate) async fn get(&self) -> Result<serde_json::Value, LlmError> {
        let client = self.client.get_or_try_init(|| self.build_client()).await?;
        let request = client.get(self.url.clone()).headers(self.headers.clone());
        let response = request.send().await.map_err(|error| self.transport_error(error))?;
        if !response.status().is_success() {
            return Err(self.status_error(response).await);
        }
        response.json().await.map_err(|error| LlmError::Malformed {
            endpoint: Arc::clone(&self.endpoint),
            detail: self.scrubber.scrub(&chain(&error.without_url())),
        })
    }

    /// What a fault of the connection means.
    pub(crate) fn transport_error(&self, error: reqwest::Error) -> LlmError {
        let error = error.without_url();
        let endpoint = Arc::clone(&self.endpoint);
        if error.is_timeout() {
            let limit = self.connect_timeout.unwrap_or_default();
            return LlmError::Timeout { endpoint, stage: TimeoutStage::Connect, limit };
        }
        let detail = self.scrubber.scrub(&chain(&error));
        if error.is_connect() {
            let local = is_loopback(&self.url);
            return LlmError::Unreachable { endpoint, reason: reason(&error), local, detail };
        }
        LlmError::StreamBroken { endpoint, detail }
    }

    async fn status_error(&self, response: Response) -> LlmError {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait =
            retry_after::parse(header(RETRY_AFTER.as_str()), header("retry-after-ms"), SystemTime::now());
        let location = header(LOCATION.as_str()).map(str::to_owned);
        let mut body = self.scrubber.scrub(&error_body(response).await);
        if (300..400).contains(&status) {
            body = match location.as_deref().and_then(|location| self.url.join(location).ok()) {
                Some(target) => format!("it redirects to {}", safe_url(&target)),
                None => "it redirects elsewhere".to_owned(),
            };
        }
        classify::from_response(&self.endpoint, status, wait, &body)
    }

    async fn build_client(&self) -> Result<Client, LlmError> {
        let needs_roots = self.url.scheme() == "https" || self.proxies.needs_tls();
        let tls = if needs_roots {
            tokio::task::spawn_blocking(|| tls_config(true))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        } else {
            tls_config(false)
        };
        let tls = tls.map_err(|detail| LlmError::Unreachable {
            endpoint: Arc::clone(&self.endpoint),
            reason: Unreachable::Tls,
            local: is_loopback(&self.url),
            detail,
        })?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_keepalive(Duration::from_secs(30))
            .no_proxy();
        if let Some(limit) = self.connect_timeout {
            builder = builder.connect_timeout(limit);
        }
        for proxy in self.proxies.build()? {
            builder = builder.proxy(proxy);
        }
        builder
            .build()
            .map_err(|error| wrong_setting(format!("no HTTP client can be built: {}", chain(&error))))
    }
}

/// What a server answers to a GET, where that is JSON and good. For looking around on this machine:
/// no key is sent, no proxy asked.
pub(crate) async fn get_json(url: &str) -> Option<serde_json::Value> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls_config(false).ok()?)
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .ok()?;
    let response = client.get(url).send().await.ok()?.error_for_status().ok()?;
    response.json().await.ok()
}

/// Posts JSON to a service that is no model, such as a collector of traces: status and the start of the answer. No
/// proxy is asked, no redirect followed, no secret sent.
///
/// # Errors
///
/// What keeps an answer from coming, in words.
pub async fn post_json(
    url: &str,
    body: &serde_json::Value,
    limit: Duration,
) -> Result<(u16, String), String> {
    let is_plain = url.starts_with("http://");
    let tls = tokio::task::spawn_blocking(move || tls_config(!is_plain))
        .await
        .unwrap_or_else(|error| Err(error.to_string()))?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| chain(&error))?;
    let response = client
        .post(url)
        .timeout(limit)
        .json(body)
        .send()
        .await
        .map_err(|error| chain(&error.without_url()))?;
    let status = response.status().as_u16();
    let body = error_body(response).await;
    Ok((status, body))
}

/// The start of an error's body.
async fn error_body(mut response: Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() >= ERROR_BODY {
                body.truncate(ERROR_BODY);
                break;
            }
        }
    };
    // A body that does not come is no reason to wait: the status tells enough.
    let _ = tokio::time::timeout(ERROR_BODY_LIMIT, read).await;
    String::from_utf8_lossy(&body).into_owned()
}

/// TLS with the ring provider, without touching the process-wide default.
fn tls_config(with_roots: bool) -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = if with_roots {
        builder
            .with_platform_verifier()
            .map_err(|error| format!("no root certificates can be loaded: {error}"))?
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Proxies as the usual environment variables name them.
#[derive(Debug, Clone, Default)]
struct ProxySettings {
    http: Option<Secret>,
    https: Option<Secret>,
    except: Option<String>,
}

impl ProxySettings {
    fn from_environment(environment: &Environment) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| environment.get(name));
        let all = first(&["ALL_PROXY", "all_proxy"]);
        Self {
            http: first(&["HTTP_PROXY", "http_proxy"]).or(all).map(Secret::from),
            https: first(&["HTTPS_PROXY", "https_proxy"]).or(all).map(Secret::from),
            except: first(&["NO_PROXY", "no_proxy"]).map(str::to_owned),
        }
    }

    fn needs_tls(&self) -> bool {
        [&self.http, &self.https].into_iter().flatten().any(|proxy| proxy.expose().starts_with("https:"))
    }

    /// Passwords in the proxies' addresses.
    fn secrets(&self) -> Vec<Secret> {
        [&self.http, &self.https]
            .into_iter()
            .flatten()
            .filter_map(|proxy| Url::parse(proxy.expose()).ok()?.password().map(Secret::from))
            .collect()
    }

    fn build(&self) -> Result<Vec<Proxy>, LlmError> {
        let except = self.except.as_deref().and_then(NoProxy::from_string);
        let build = |address: &Option<Secret>, variable: &str, make: fn(&str) -> reqwest::Result<Proxy>| {
            let Some(address) = address else { return Ok(None) };
            make(address.expose()).map(|proxy| Some(proxy.no_proxy(except.clone()))).map_err(|_| {
                wrong_setting(format!("{variable} (or ALL_PROXY) in the environment is not an address"))
            })
        };
        let http = build(&self.http, "HTTP_PROXY", |address| Proxy::http(address))?;
        let https = build(&self.https, "HTTPS_PROXY", |address| Proxy::https(address))?;
        Ok([http, https].into_iter().flatten().collect())
    }
}

fn wrong_setting(message: String) -> LlmError {
    LlmError::Configuration { message, hint: None }
}

fn sources<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn StdError + 'static) = *error;
        error.source()
    })
}

/// The messages of an error and all its causes; those that repeat the one before are left out.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in sources(error) {
        let message = cause.to_string();
        if !text.contains(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
    }
    text
}

fn reason(error: &reqwest::Error) -> Unreachable {
    sources(error).find_map(reason_of).unwrap_or(Unreachable::Other)
}

/// What one error of a chain tells. I/O errors hold others that are no part of the chain.
fn reason_of(error: &(dyn StdError + 'static)) -> Option<Unreachable> {
    if error.is::<rustls::Error>() {
        return Some(Unreachable::Tls);
    }
    if let Some(io) = error.downcast_ref::<io::Error>() {
        if io.kind() == io::ErrorKind::ConnectionRefused {
            return Some(Unreachable::Refused);
        }
        let inner = io.get_ref().map(|inner| inner as &(dyn StdError + 'static));
        return inner.and_then(|inner| sources(inner).find_map(reason_of));
    }
    error.to_string().starts_with("dns error").then_some(Unreachable::UnknownHost)
}

#[cfg(test)]
mod tests {
    use super::{HttpEndpoint, HttpSettings, tls_config};
    use crate::quirks::Auth;
    use crate::{Environment, Origins, Secret};

    fn settings(key: &str, environment: Environment) -> HttpSettings {
        HttpSettings {
            provider: "p".into(),
            model: "m".into(),
            base_url: "https://host/v1".into(),
            path: "/x".into(),
            key: Some(Secret::new(key)),
            auth: Auth::Bearer,
            headers: Vec::new(),
            connect_timeout: None,
            origins: Origins::default(),
            environment,
        }
    }

    #[test]
    fn a_key_that_no_header_can_hold_is_named_and_not_shown() {
        let error = HttpEndpoint::new(settings("abc\ndef-secret", Environment::default())).unwrap_err();
        assert_eq!(error.kind(), "configuration");
        assert!(!format!("{error} {error:?}").contains("def-secret"));
    }

    #[test]
    fn debug_shows_no_key_and_no_proxy_password() {
        let environment = Environment::from([("HTTPS_PROXY", "http://user:proxy-password@proxy:3128")]);
        let endpoint = HttpEndpoint::new(settings("sk-very-secret", environment)).unwrap();
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("very-secret") && !shown.contains("proxy-password"), "{shown}");
        assert_eq!(endpoint.proxies.build().unwrap().len(), 1);
        assert_eq!(endpoint.scrubber().scrub("proxy-password"), "***");
    }

    #[test]
    fn tls_can_be_set_up_with_the_roots_of_this_machine() {
        assert!(tls_config(false).is_ok());
        match tls_config(true) {
            Ok(config) => assert_eq!(config.alpn_protocols.len(), 2),
            Err(detail) => assert!(detail.contains("root certificates"), "{detail}"),
        }
    }
}
