//! Addresses of servers: put together, recognised, shown.
//!
//! Decides what of an address may be shown, what counts as this machine, and which headers and query
//! parameters may hold a key.

#[cfg(feature = "http")]
use std::net::IpAddr;

#[cfg(feature = "http")]
use reqwest::Url;

#[cfg(feature = "http")]
use crate::LlmError;

/// An address without credentials, query and fragment, whatever else is wrong with it.
pub(crate) fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => address.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

/// The base address with the API's path added; a path that is there already is not added again.
#[cfg(feature = "http")]
pub(crate) fn endpoint_url(base: &str, path: &str) -> Result<Url, LlmError> {
    let wrong = |what: &str| LlmError::Configuration {
        message: format!("llm.base_url is not an address that can be used: {what}"),
        hint: Some("write it like http://127.0.0.1:8000/v1".to_owned()),
    };
    let mut url = Url::parse(base.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    let base_path = url.path().trim_end_matches('/').to_owned();
    // A base that ends in the first segments of the path (…/v1 for /v1/messages) is completed, not doubled.
    let overlap = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).rev().find_map(|end| {
        let head = path.get(..end).filter(|head| !head.is_empty())?;
        base_path.ends_with(head).then_some(end)
    });
    let rest = path.get(overlap.unwrap_or(0)..).unwrap_or_default();
    url.set_path(&format!("{base_path}{rest}"));
    url.set_fragment(None);
    Ok(url)
}

/// An address without credentials, query and fragment.
#[cfg(feature = "http")]
pub(crate) fn safe_url(url: &Url) -> String {
    let mut url = url.clone();
    // These cannot fail for addresses with a host; others have no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Whether a header or a query parameter of this name may hold a key.
#[cfg(feature = "http")]
pub(crate) fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "auth", "password", "signature", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether an address is on this machine.
#[cfg(feature = "http")]
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use reqwest::Url;

    use super::{endpoint_url, is_loopback, may_be_secret, safe_url, without_secrets};

    #[test]
    fn joins_base_and_path() {
        let check = |base: &str, path: &str, expected: &str| {
            assert_eq!(endpoint_url(base, path).unwrap().as_str(), expected, "{base}");
        };
        check("http://h:1/v1", "/chat/completions", "http://h:1/v1/chat/completions");
        check(" http://h:1/v1/ ", "/chat/completions", "http://h:1/v1/chat/completions");
        check("http://h/v1/chat/completions", "/chat/completions", "http://h/v1/chat/completions");
        check("http://h", "/chat/completions", "http://h/chat/completions");
        check(
            "https://h/x?api-version=3#f",
            "/chat/completions",
            "https://h/x/chat/completions?api-version=3",
        );
        check("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages");
        check("https://api.anthropic.com/v1", "/v1/messages", "https://api.anthropic.com/v1/messages");
        check(
            "https://api.anthropic.com/v1/messages/",
            "/v1/messages",
            "https://api.anthropic.com/v1/messages",
        );
        for wrong in ["", "127.0.0.1:8000", "localhost:8000/v1", "ftp://h/v1", "http://", "no address"] {
            let error = endpoint_url(wrong, "/x").unwrap_err();
            assert!(error.is_permanent() && error.to_string().contains("llm.base_url"), "{wrong}");
        }
    }

    #[test]
    fn addresses_are_shown_without_secrets() {
        let url = Url::parse("https://user:password@host:9/v1?key=abc#x").unwrap();
        assert_eq!(safe_url(&url), "https://host:9/v1");
    }

    #[test]
    fn knows_this_machine() {
        let check = |url: &str, expected: bool| {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        };
        check("http://localhost:1/", true);
        check("http://127.9.9.9/", true);
        check("http://[::1]:8/", true);
        check("http://10.0.0.1/", false);
        check("http://localhost.example/", false);
    }

    #[test]
    fn an_address_that_cannot_be_read_shows_no_secrets_either() {
        let check = |address: &str, expected: &str| assert_eq!(without_secrets(address), expected);
        check("https://user:password@host:9/v1?key=abc#x", "https://host:9/v1");
        check("user:password@host/v1", "host/v1");
        check("http://host:99999999/v1?x", "http://host:99999999/v1");
        check("", "");
    }

    #[test]
    fn names_that_may_mean_a_key() {
        let check = |name: &str, expected: bool| assert_eq!(may_be_secret(name), expected, "{name}");
        check("X-Api-Key", true);
        check("Authorization", true);
        check("access_token", true);
        check("anthropic-version", false);
        check("api-version", false);
    }
}
