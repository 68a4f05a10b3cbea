//! The way out for code that runs without a network: an HTTP proxy that applies the policy.
//!
//! Decides what a client of the proxy may reach: by CONNECT a host whose addresses were checked, with a plain request
//! one page. Of an encrypted connection the proxy sees the host only, so a host of which any page is blocked is
//! refused as a whole. How a request is read is in `request`.

mod request;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use super::{Egress, EgressError};
use request::{Head, Target};

/// Connections at a time.
const MOST_CONNECTIONS: usize = 32;
/// Bytes of the head of a request.
const LONGEST_HEAD: usize = 32 * 1024;
/// For the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// For one connection, from its first byte to its last.
const CONNECTION_LIMIT: Duration = Duration::from_secs(300);
/// Bytes that a client may send on one connection.
const MOST_SENT: u64 = 64 << 20;

/// Serves clients until the listener fails or the future is dropped; their connections end with it.
pub(crate) async fn serve(egress: Egress, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        let egress = egress.clone();
        connections.spawn(async move {
            let _place = place;
            let _ = timeout(CONNECTION_LIMIT, connection(&egress, client)).await;
        });
    }
}

async fn connection(egress: &Egress, mut client: TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    let head = match timeout(HEAD_LIMIT, head(&mut client, &mut read)).await {
        Ok(Ok(Some(head))) => head,
        Ok(Ok(None)) => {
            return refuse(&mut client, 400, "this is no request that a proxy could carry out").await;
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => return refuse(&mut client, 408, "the request did not come").await,
    };
    let url = head.url();
    let reached = async {
        egress.0.check_client_of_proxy(&url, head.is_tunnel())?;
        reach(egress, &url).await
    };
    let mut server = match reached.await {
        Ok(server) => server,
        Err(error) if error.is_refusal() => return refuse(&mut client, 403, &error.to_string()).await,
        Err(error) => return refuse(&mut client, 502, &error.to_string()).await,
    };
    let rest = &read[head.length..];
    let most = match &head.target {
        Target::Tunnel(_) => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server.write_all(rest).await?;
            MOST_SENT
        }
        Target::Page(_) => {
            server.write_all(head.forwarded().as_bytes()).await?;
            // The body, and nothing after it: a second request would not be looked at.
            let body = &rest[..rest.len().min(usize::try_from(head.body).unwrap_or(usize::MAX))];
            server.write_all(body).await?;
            head.body.saturating_sub(body.len() as u64).min(MOST_SENT)
        }
    };
    let (from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let sent = async {
        copy(&mut from_client.take(most), &mut to_server).await?;
        if head.is_tunnel() { to_server.shutdown().await } else { Ok(()) }
    };
    let received = async {
        copy(&mut from_server.take(egress.options().size_limit), &mut to_client).await?;
        to_client.shutdown().await
    };
    // Whoever asked has the answer when the server is done; what it would still send is of no use.
    tokio::select! {
        received = received => received,
        Err(error) = sent => Err(error),
    }
}

/// Reads the head of a request; none where it is no request. What was read beyond it stays in `read`.
async fn head(client: &mut TcpStream, read: &mut Vec<u8>) -> std::io::Result<Option<Head>> {
    loop {
        if let Some(end) = memchr::memmem::find(read, b"\r\n\r\n") {
            return Ok(Head::parse(&read[..end + 4]));
        }
        if read.len() > LONGEST_HEAD || client.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

/// A connection to one of the checked addresses of a host.
async fn reach(egress: &Egress, url: &Url) -> Result<TcpStream, EgressError> {
    let port = url.port_or_known_default().unwrap_or(80);
    let mut problem = "it has no address".to_owned();
    for address in egress.0.checked_addresses(url).await? {
        match timeout(egress.options().connect_limit, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => problem = error.to_string(),
            Err(_) => problem = "no connection in time".to_owned(),
        }
    }
    Err(EgressError::Connect { url: url.to_string(), problem })
}

async fn refuse(client: &mut TcpStream, status: u16, why: &str) -> std::io::Result<()> {
    let reason = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        408 => "Request Timeout",
        _ => "Bad Gateway",
    };
    // Some clients show the line of the status and nothing else.
    let line: String =
        why.chars().filter(|character| !character.is_control() && character.is_ascii()).collect();
    let answer = format!(
        "HTTP/1.1 {status} {reason}: {line}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}
