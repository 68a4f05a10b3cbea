//! Services that answer for the web tools, and their keys.
//!
//! Decides which variables set a service up. No key is ever shown.

use super::search;

/// A key that does not show itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

impl Key {
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

/// A service with its key and, where it is not the usual one, its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) key: Key,
    pub(super) base_url: String,
}

/// The services that are set up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Services {
    pub(super) serper: Option<Service>,
    /// Address of a SearXNG.
    pub(super) searxng: Option<String>,
    pub(super) brave: Option<Service>,
    pub(super) tavily: Option<Service>,
    pub(super) tencent: Option<Tencent>,
    pub(super) jina: Option<Service>,
}

/// Tencent Cloud, which searches with Sogou.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tencent {
    pub(super) id: Key,
    pub(super) key: Key,
    pub(super) base_url: String,
}

impl Services {
    /// What the variables set up: `SERPER_API_KEY`, `SERPER_BASE_URL`, `SEARXNG_BASE_URL`, `BRAVE_API_KEY` (or
    /// `BRAVE_SEARCH_API_KEY`), `TAVILY_API_KEY`, `TENCENTCLOUD_SECRET_ID` and `TENCENTCLOUD_SECRET_KEY`,
    /// `JINA_API_KEY`, `JINA_BASE_URL`; the other services have a variable for their address likewise.
    #[must_use]
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let get =
            |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let address = |name: &str, usual: &str| {
            let address = get(name).unwrap_or_else(|| usual.to_owned());
            let address = if address.contains("://") { address } else { format!("https://{address}") };
            address.trim_end_matches('/').to_owned()
        };
        let service = |key: Option<String>, base_url: &str, usual: &str| {
            Some(Service { key: Key(key?), base_url: address(base_url, usual) })
        };
        Self {
            serper: service(get("SERPER_API_KEY"), "SERPER_BASE_URL", "https://google.serper.dev"),
            searxng: get("SEARXNG_BASE_URL").map(|_| address("SEARXNG_BASE_URL", "")),
            brave: service(
                get("BRAVE_API_KEY").or_else(|| get("BRAVE_SEARCH_API_KEY")),
                "BRAVE_BASE_URL",
                "https://api.search.brave.com",
            ),
            tavily: service(get("TAVILY_API_KEY"), "TAVILY_BASE_URL", "https://api.tavily.com"),
            tencent: get("TENCENTCLOUD_SECRET_ID").zip(get("TENCENTCLOUD_SECRET_KEY")).map(|(id, key)| {
                Tencent {
                    id: Key(id),
                    key: Key(key),
                    base_url: address("TENCENTCLOUD_BASE_URL", "https://wsa.tencentcloudapi.com"),
                }
            }),
            jina: service(get("JINA_API_KEY"), "JINA_BASE_URL", "https://r.jina.ai"),
        }
    }

    /// The service that `google_search` uses; none: the local library.
    #[must_use]
    pub fn search_service(&self) -> Option<&'static str> {
        search::service(self).map(|service| service.name())
    }

    /// For people: what answers each kind of request, and the variable that would set something better up.
    #[must_use]
    pub fn report(&self) -> Vec<ServiceReport> {
        let line = |tool, used: Option<String>, without: &str, variables: String| ServiceReport {
            tool,
            is_set_up: used.is_some(),
            text: match used {
                Some(name) => format!("uses {name}"),
                None => format!("{without}; set up by {variables}"),
            },
        };
        vec![
            line(
                "google_search",
                self.search_service().map(str::to_owned),
                "searches the local library only",
                format!("one of {}", search::VARIABLES),
            ),
            line(
                "sogou_search",
                self.tencent.as_ref().map(|_| "Tencent Cloud".to_owned()),
                "is not available",
                "TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY".to_owned(),
            ),
            line(
                "scraping",
                self.jina.as_ref().map(|_| "the Jina reader".to_owned()),
                "fetches pages directly, without running their scripts",
                "JINA_API_KEY".to_owned(),
            ),
        ]
    }
}

/// What answers one kind of request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReport {
    /// The tool.
    pub tool: &'static str,
    /// Whether a service is set up for it.
    pub is_set_up: bool,
    /// Which one, or what happens without.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services(variables: &[(&str, &str)]) -> Services {
        Services::from_environment(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_first_that_is_set_up_searches() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(services(variables).search_service(), expected, "{variables:?}");
        };
        check(&[], None);
        check(&[("SERPER_API_KEY", "  ")], None);
        check(&[("TAVILY_API_KEY", "t"), ("BRAVE_SEARCH_API_KEY", "b")], Some("Brave"));
        check(&[("BRAVE_API_KEY", "b"), ("SEARXNG_BASE_URL", "http://127.0.0.1:8888/")], Some("SearXNG"));
        check(&[("SEARXNG_BASE_URL", "http://127.0.0.1:8888"), ("SERPER_API_KEY", "s")], Some("Serper"));
        check(&[("TAVILY_API_KEY", "t")], Some("Tavily"));
    }

    #[test]
    fn addresses_and_secrets() {
        let services = services(&[
            ("SERPER_API_KEY", "serper-secret"),
            ("SERPER_BASE_URL", "http://127.0.0.1:9/"),
            ("TENCENTCLOUD_SECRET_ID", "only-an-id"),
            ("JINA_API_KEY", "jina-secret"),
            ("SEARXNG_BASE_URL", "search.example"),
        ]);
        assert_eq!(services.serper.as_ref().unwrap().base_url, "http://127.0.0.1:9");
        assert_eq!(services.searxng.as_deref(), Some("https://search.example"));
        assert_eq!(services.tencent, None);
        assert_eq!(services.jina.as_ref().unwrap().base_url, "https://r.jina.ai");
        assert!(!format!("{services:?} {:?}", services.report()).contains("secret"));
        assert_eq!(
            services.report().iter().map(|line| line.is_set_up).collect::<Vec<_>>(),
            [true, false, true]
        );
    }
}
