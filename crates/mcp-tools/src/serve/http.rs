//! A server over streamable HTTP.
//!
//! Decides where it listens and who may come in. Loopback is open to programs of this machine and closed
//! to web pages (`Host` and `Origin` must be of this machine, so that no name that was rebound gets
//! through); any other address needs a token. Messages and sessions are `rmcp`'s business.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::ServeError;
use super::gateway::{self, Gateway, Tracked};
use crate::InProcessServer;
use crate::manager::MAX_MESSAGE;

/// The path of the endpoint.
const PATH: &str = "/mcp";
/// A session ends after this time without a request: as long as a sandbox lives unused.
const IDLE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// What a client may take to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// Connections at a time.
const MOST_CONNECTIONS: usize = 256;
/// The pause after a connection could not be accepted: mostly there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What connections, and after them sessions, have to end.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Where and for whom a server is offered.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where to listen; port 0 takes any that is free.
    pub address: SocketAddr,
    /// What clients must send as `Authorization: Bearer …`. Needed for any address but loopback.
    pub token: Option<String>,
}

impl std::fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "***");
        formatter.debug_struct("HttpOptions").field("address", &self.address).field("token", &token).finish()
    }
}

/// Reads an address to listen on: `8000`, `:8000` and `localhost:8000` mean loopback.
///
/// # Errors
/// What is no port and no IP address with one.
pub fn parse_address(text: &str) -> Result<SocketAddr, ServeError> {
    let wrong = || ServeError::Address { given: text.to_owned() };
    let given = text.trim();
    let given = given.strip_prefix("http://").map_or(given, |rest| rest.trim_end_matches('/'));
    if let Ok(address) = given.parse() {
        return Ok(address);
    }
    let port = match given.rsplit_once(':') {
        Some(("" | "localhost", port)) => port,
        Some(_) => return Err(wrong()),
        None => given,
    };
    port.parse().map(|port| (IpAddr::V4(Ipv4Addr::LOCALHOST), port).into()).map_err(|_| wrong())
}

/// A server that listens; [`HttpServer::run`] serves.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    door: Arc<Door>,
    sessions: TaskTracker,
    stop: CancellationToken,
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpServer {
    /// Asks the server what it is and begins to listen.
    ///
    /// # Errors
    /// An address that is taken, or that needs a token; a server that does not work.
    pub fn bind(
        server: Arc<dyn InProcessServer>,
        options: HttpOptions,
    ) -> BoxFuture<'static, Result<Self, ServeError>> {
        Box::pin(Self::bound(server, options))
    }

    async fn bound(server: Arc<dyn InProcessServer>, options: HttpOptions) -> Result<Self, ServeError> {
        let HttpOptions { address, token } = options;
        if token.as_deref().is_some_and(|token| token.is_empty() || HeaderValue::from_str(token).is_err()) {
            return Err(ServeError::Token);
        }
        let is_loopback = address.ip().is_loopback();
        if token.is_none() && !is_loopback {
            return Err(ServeError::Unprotected { address });
        }
        let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::Taken { address },
            _ => ServeError::Listen { address, source },
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        let info = gateway::info(&server)
            .await
            .map_err(|problem| ServeError::Server { server: server.name().to_owned(), problem })?;
        let sessions = TaskTracker::new();
        let server: Arc<dyn InProcessServer> = Arc::new(Tracked { server, sessions: sessions.clone() });
        let stop = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop.child_token())
            .with_max_request_body_bytes(MAX_MESSAGE);
        let config = if is_loopback {
            let here = ["localhost", "127.0.0.1", "[::1]"];
            let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            config
                .with_allowed_hosts(hosts.into_iter().chain([address.ip().to_string()]))
                .with_allowed_origins(here.map(|host| format!("http://{host}:*")))
                .enforce_origin_validation()
        } else {
            // A page that does not know the token gets nowhere, whatever name it comes by.
            config.disable_allowed_hosts().disable_allowed_origins()
        };
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE_LIMIT);
        let make = move || Ok(Gateway::new(Arc::clone(&server), info.clone()));
        let service = StreamableHttpService::new(make, Arc::new(manager), config);
        let token = token.map(|token| digest(&token));
        Ok(Self { listener, address, door: Arc::new(Door { service, token }), sessions, stop })
    }

    /// The address of the endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop` is cancelled, then ends all sessions and waits until they are gone.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.serve_until(stop))
    }

    async fn serve_until(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
            };
            let (door, stopped) = (Arc::clone(&self.door), self.stop.clone());
            connections.spawn(async move {
                let _slot = slot;
                converse(stream, door, stopped).await;
            });
        }
        drop(self.listener);
        self.stop.cancel();
        connections.close();
        self.sessions.close();
        let _ = timeout(LEAVE_TIME, connections.wait()).await;
        drop(self.door);
        if timeout(LEAVE_TIME, self.sessions.wait()).await.is_err() {
            tracing::warn!("sessions did not end in time");
        }
    }
}

/// Serves one connection.
async fn converse(stream: TcpStream, door: Arc<Door>, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.enter(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // A stream of events may have a client that never leaves.
            timeout(LEAVE_TIME / 2, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// What every request passes.
struct Door {
    service: StreamableHttpService<Gateway, LocalSessionManager>,
    /// Of the token, so that comparing takes the same time whatever was sent.
    token: Option<[u8; 32]>,
}

impl Door {
    async fn enter(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        if request.uri().path().trim_end_matches('/') != PATH {
            return refusal(StatusCode::NOT_FOUND, "Nothing is here: the endpoint is at /mcp.\n");
        }
        if let Some(token) = &self.token {
            let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            let sent = sent.and_then(|value| value.split_once(' '));
            let fits = sent.is_some_and(|(scheme, sent)| {
                scheme.eq_ignore_ascii_case("bearer") && digest(sent.trim()) == *token
            });
            if !fits {
                let mut response = refusal(
                    StatusCode::UNAUTHORIZED,
                    "A token is missing or wrong: send the header `Authorization: Bearer TOKEN`.\n",
                );
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return response;
            }
        }
        self.service.handle(request).await
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn refusal(status: StatusCode, text: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_unless_they_say_otherwise() {
        for (text, expected) in [
            ("8000", Some("127.0.0.1:8000")),
            (":0", Some("127.0.0.1:0")),
            ("localhost:8000", Some("127.0.0.1:8000")),
            (" 127.0.0.1:1 ", Some("127.0.0.1:1")),
            ("[::1]:8000", Some("[::1]:8000")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("http://127.0.0.1:8000/", Some("127.0.0.1:8000")),
            ("127.0.0.1", None),
            ("example.org:80", None),
            ("99999", None),
            ("", None),
            (":", None),
        ] {
            let read = parse_address(text).ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        let options =
            HttpOptions { address: SocketAddr::from(([127, 0, 0, 1], 1)), token: Some("s3cr3t".into()) };
        assert!(!format!("{options:?}").contains("s3cr3t"));
    }
}
