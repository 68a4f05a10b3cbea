//! The `tools.egress` section: what tools may fetch from the network.
//!
//! Decides names, types, defaults, and how the lists of several layers go together; the policy itself is
//! `mcp_tools::egress`.

use std::time::Duration;

use mcp_tools::egress::{BLOCKED, Egress, EgressError, EgressOptions, Proxies};
use serde::{Deserialize, Serialize};

/// The `tools.egress` section. A list that a later layer sets takes the place of the one before; `also_blocked` is for
/// those who want to add to what is blocked by default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// Pages that are not fetched: hosts, hosts with a path, words, patterns with `*`.
    pub blocked: Vec<String>,
    /// Further ones.
    pub also_blocked: Vec<String>,
    /// Hosts, addresses and networks that may be reached although they are not public.
    pub allow_private: Vec<String>,
    /// Bytes of an answer, unpacked.
    pub size_limit: u64,
    /// Seconds for one fetch, redirects included.
    pub time_limit: f64,
    /// Seconds for one connection.
    pub connect_limit: f64,
    /// Redirects that are followed.
    pub redirect_limit: usize,
    /// What the fetcher calls itself; none: its own name.
    pub user_agent: Option<String>,
    /// Whether the proxies of the environment are used (`HTTPS_PROXY`, …).
    pub use_proxies: bool,
}

impl Default for EgressConfig {
    fn default() -> Self {
        let policy = EgressOptions::default();
        Self {
            blocked: BLOCKED.iter().map(|text| (*text).to_owned()).collect(),
            also_blocked: Vec::new(),
            allow_private: Vec::new(),
            size_limit: policy.size_limit,
            time_limit: policy.time_limit.as_secs_f64(),
            connect_limit: policy.connect_limit.as_secs_f64(),
            redirect_limit: policy.redirect_limit,
            user_agent: None,
            use_proxies: true,
        }
    }
}

impl EgressConfig {
    /// The policy that this describes, with the proxies of an environment.
    #[must_use]
    pub fn options(&self, lookup: &dyn Fn(&str) -> Option<String>) -> EgressOptions {
        let own = EgressOptions::default();
        let seconds = |value: f64, otherwise| Duration::try_from_secs_f64(value).unwrap_or(otherwise);
        EgressOptions {
            blocked: self.blocked.iter().chain(&self.also_blocked).cloned().collect(),
            allow_private: self.allow_private.clone(),
            size_limit: self.size_limit,
            time_limit: seconds(self.time_limit, own.time_limit),
            connect_limit: seconds(self.connect_limit, own.connect_limit),
            redirect_limit: self.redirect_limit,
            user_agent: self.user_agent.clone().unwrap_or(own.user_agent),
            proxies: if self.use_proxies { Proxies::from_environment(lookup) } else { Proxies::default() },
        }
    }

    /// Entries that mean nothing: the key of their list, and what is expected.
    pub(crate) fn wrong_entries(&self) -> Vec<(&'static str, &'static str)> {
        const PAGES: &str = "hosts, hosts with a path, words, or patterns with `*`, none of them empty";
        const PRIVATE: &str = "hosts, addresses or networks, such as wiki.internal, 10.0.0.7 or 10.0.0.0/8";
        let means =
            |options: EgressOptions| !matches!(Egress::new(options), Err(EgressError::Configuration { .. }));
        let pages = |list: &[String]| EgressOptions { blocked: list.to_vec(), ..EgressOptions::default() };
        let private = EgressOptions { allow_private: self.allow_private.clone(), ..EgressOptions::default() };
        [
            ("blocked", PAGES, means(pages(&self.blocked))),
            ("also_blocked", PAGES, means(pages(&self.also_blocked))),
            ("allow_private", PRIVATE, means(private)),
        ]
        .into_iter()
        .filter(|(.., means)| !means)
        .map(|(key, expected, _)| (key, expected))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_go_together() {
        let config =
            EgressConfig { also_blocked: vec!["answers.example".to_owned()], ..EgressConfig::default() };
        let options = config.options(&|_| None);
        assert_eq!(options.blocked.len(), BLOCKED.len() + 1);
        let egress = Egress::new(options).unwrap();
        assert!(egress.check("https://answers.example/1").is_err());
        assert!(egress.check("https://huggingface.co/datasets/x").is_err());
        let config = EgressConfig { blocked: Vec::new(), ..EgressConfig::default() };
        let egress = Egress::new(config.options(&|_| None)).unwrap();
        assert!(egress.check("https://huggingface.co/datasets/x").is_ok());
    }

    #[test]
    fn defaults_are_those_of_the_policy() {
        assert_eq!(EgressConfig::default().options(&|_| None), EgressOptions::default());
    }

    #[test]
    fn entries_that_mean_nothing_are_found() {
        let config = EgressConfig {
            also_blocked: vec![" ".to_owned()],
            allow_private: vec!["10/8".to_owned()],
            ..EgressConfig::default()
        };
        let keys: Vec<&str> = config.wrong_entries().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["also_blocked", "allow_private"]);
        assert_eq!(EgressConfig::default().wrong_entries(), []);
    }
}
