//! Proxies of the surroundings.
//!
//! Decides which proxy an address goes through. Behind a proxy the proxy resolves names, so the check of addresses
//! is only as good as this machine's own view of them: see [`super::Egress`].

use std::net::IpAddr;

use url::{Host, Url};

/// Proxies as the usual variables name them. `Debug` shows no addresses, which may hold passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    except: Vec<String>,
}

impl std::fmt::Debug for Proxies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |proxy: &Option<Url>| proxy.as_ref().map(|_| "set");
        formatter
            .debug_struct("Proxies")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("except", &self.except)
            .finish()
    }
}

impl Proxies {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in capitals or not. Values that are no
    /// address of an HTTP proxy are left out.
    #[must_use]
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| {
            [name.to_owned(), name.to_lowercase()]
                .iter()
                .filter_map(|name| lookup(name))
                .find(|value| !value.trim().is_empty())
        };
        let proxy = |name: &str| {
            let value = get(name).or_else(|| get("ALL_PROXY"))?;
            let value = value.trim();
            let complete = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
            Url::parse(&complete)
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        };
        let except = get("NO_PROXY").unwrap_or_default();
        Self {
            http: proxy("HTTP_PROXY"),
            https: proxy("HTTPS_PROXY"),
            except: except
                .split(',')
                .map(|entry| entry.trim().trim_start_matches("*.").trim_start_matches('.').to_lowercase())
                .filter(|entry| !entry.is_empty())
                .collect(),
        }
    }

    /// The proxy that an address goes through.
    pub(super) fn proxy_of(&self, url: &Url) -> Option<&Url> {
        let proxy = if url.scheme() == "https" { self.https.as_ref() } else { self.http.as_ref() }?;
        let is_direct = match url.host()? {
            Host::Domain(name) => {
                let name = name.trim_end_matches('.').to_lowercase();
                name == "localhost"
                    || name.ends_with(".localhost")
                    || self.except.iter().any(|entry| {
                        entry == "*"
                            || name
                                .strip_suffix(entry.as_str())
                                .is_some_and(|b| b.is_empty() || b.ends_with('.'))
                    })
            }
            Host::Ipv4(address) => address.is_loopback() || self.excepts(IpAddr::V4(address)),
            Host::Ipv6(address) => address.is_loopback() || self.excepts(IpAddr::V6(address)),
        };
        (!is_direct).then_some(proxy)
    }

    fn excepts(&self, address: IpAddr) -> bool {
        self.except.iter().any(|entry| {
            entry == "*"
                || super::address::Allowed::parse(entry).is_ok_and(|entry| entry.has_address(address))
        })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Url> {
        self.http.iter().chain(&self.https)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_proxy() {
        let proxies = Proxies::from_environment(&|name| {
            Some(match name {
                "http_proxy" => "proxy.test:3128".to_owned(),
                "HTTPS_PROXY" => "http://user:proxy-password@secure.test:3129".to_owned(),
                "NO_PROXY" => " .inside.test, 10.0.0.0/8,, exact.test ".to_owned(),
                _ => return None,
            })
        });
        let check = |url: &str, expected: Option<&str>| {
            let proxy = proxies.proxy_of(&Url::parse(url).unwrap());
            assert_eq!(proxy.and_then(Url::host_str), expected, "{url}");
        };
        check("http://example.org/", Some("proxy.test"));
        check("https://example.org/", Some("secure.test"));
        check("https://a.inside.test/", None);
        check("https://inside.test/", None);
        check("https://notinside.test/", Some("secure.test"));
        check("https://exact.test./", None);
        check("http://10.9.9.9/", None);
        check("http://11.0.0.1/", Some("proxy.test"));
        check("http://127.0.0.1/", None);
        check("http://localhost/", None);
        assert!(!format!("{proxies:?}").contains("proxy-password"));
        let none =
            Proxies::from_environment(&|name| (name == "ALL_PROXY").then(|| "socks5://x:1".to_owned()));
        assert_eq!(none, Proxies::default());
    }
}
