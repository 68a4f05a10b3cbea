//! What a client asks a proxy for.
//!
//! Decides which requests are understood, and how one is passed on: with the headers of the client but those that
//! are for the proxy, and the host of its address, whatever the client wrote.

use url::Url;

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) target: Target,
    method: String,
    headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub(super) body: u64,
    /// Bytes of the head itself.
    pub(super) length: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A connection to a host.
    Tunnel(Url),
    /// One page.
    Page(Url),
}

/// Not passed on: they are between client and proxy, or written anew.
const NOT_FORWARDED: &[&str] = &[
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "expect",
];

impl Head {
    /// Reads a head with its empty line; none where it is not understood.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_token || !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        let mut headers = Vec::new();
        let mut body = None;
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            // A bare line break, or a name with a space, reads differently to different servers.
            if name.is_empty() || !name.bytes().all(is_of_token) || value.contains(['\r', '\n', '\0']) {
                return None;
            }
            match name.to_ascii_lowercase().as_str() {
                "transfer-encoding" => return None,
                "content-length" if body.is_some() => return None,
                "content-length" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    body = Some(value.parse().ok()?);
                }
                "content-length" => return None,
                _ => {}
            }
            headers.push((name.to_owned(), value.to_owned()));
        }
        let target = match method {
            "CONNECT" if !target.contains(['/', '?', '#', '@', '\\']) => {
                Target::Tunnel(Url::parse(&format!("https://{target}/")).ok()?)
            }
            "CONNECT" => return None,
            _ => Target::Page(Url::parse(target).ok().filter(|url| url.scheme() == "http")?),
        };
        Some(Self {
            target,
            method: method.to_owned(),
            headers,
            body: body.unwrap_or(0),
            length: bytes.len(),
        })
    }

    pub(super) fn url(&self) -> Url {
        match &self.target {
            Target::Tunnel(url) | Target::Page(url) => url.clone(),
        }
    }

    pub(super) fn is_tunnel(&self) -> bool {
        matches!(self.target, Target::Tunnel(_))
    }

    /// The head as the server gets it.
    pub(super) fn forwarded(&self) -> String {
        let url = self.url();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        let mut head = format!("{} {}{query} HTTP/1.1\r\nHost: {host}{port}\r\n", self.method, url.path());
        for (name, value) in &self.headers {
            if !NOT_FORWARDED.contains(&name.to_ascii_lowercase().as_str()) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        if self.body > 0 || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            head.push_str(&format!("Content-Length: {}\r\n", self.body));
        }
        head.push_str("Connection: close\r\n\r\n");
        head
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_understood() {
        let head = Head::parse(b"CONNECT example.org:443 HTTP/1.1\r\nHost: elsewhere\r\n\r\n").unwrap();
        assert_eq!(head.target, Target::Tunnel("https://example.org/".parse().unwrap()));
        let head = Head::parse(
            b"POST http://example.org:81/a/../b?c#d HTTP/1.1\r\nHost: evil.test\r\nX-A: 1\r\nProxy-Authorization: p\r\n\
              Connection: keep-alive\r\nContent-Length: 5\r\n\r\n",
        )
        .unwrap();
        assert_eq!((head.body, head.is_tunnel()), (5, false));
        assert_eq!(
            head.forwarded(),
            "POST /b?c HTTP/1.1\r\nHost: example.org:81\r\nX-A: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.org/ HTTP/1.1\r\n\r\n",
            "GET ftp://example.org/ HTTP/1.1\r\n\r\n",
            "get http://example.org/ HTTP/1.1\r\n\r\n",
            "GET http://example.org/ HTTP/1.1 x\r\n\r\n",
            "GET http://example.org/ HTTP/2\r\n\r\n",
            "GET http://example.org/\r\n\r\n",
            "CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.org/x HTTP/1.1\r\n\r\n",
            "POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST http://example.org/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nX : 1\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nX: 1\nHost: y\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nno header\r\n\r\n",
            "\r\n\r\n",
            "\u{0}\r\n\r\n",
        ] {
            assert_eq!(Head::parse(head.as_bytes()), None, "{head}");
        }
    }
}
