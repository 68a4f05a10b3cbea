//! What may be fetched.
//!
//! Decides by an address's text (scheme, port, name, patterns) and by what its host resolved to. Asks nobody.

use std::net::IpAddr;

use url::{Host, Url};

use super::address::{Allowed, not_public, resolved_not_public};
use super::pattern::{Normal, Pattern};
use super::{EgressError, EgressOptions};

/// Longest address; longer ones carry something else.
const LONGEST_URL: usize = 16 * 1024;

/// Endings of names that mean a machine nearby.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
];

/// Ports that web browsers refuse, because what listens there may take a request for one of its own (the fetch
/// standard's list).
#[rustfmt::skip]
const OTHER_SERVICES: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
    531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
    5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[derive(Debug)]
pub(super) struct Policy {
    blocked: Vec<Pattern>,
    allowed: Vec<Allowed>,
}

impl Policy {
    pub(super) fn new(options: &EgressOptions) -> Result<Self, EgressError> {
        let wrong = |setting| move |problem| EgressError::Configuration { setting, problem };
        Ok(Self {
            blocked: options
                .blocked
                .iter()
                .map(|text| Pattern::parse(text))
                .collect::<Result<_, _>>()
                .map_err(wrong("blocked"))?,
            allowed: options
                .allow_private
                .iter()
                .map(|text| Allowed::parse(text))
                .collect::<Result<_, _>>()
                .map_err(wrong("allow_private"))?,
        })
    }

    /// The address that a text means, where it may be fetched as far as the text tells.
    pub(super) fn check(&self, text: &str) -> Result<Url, EgressError> {
        let url = parse(text)?;
        self.check_parsed(&url)?;
        Ok(url)
    }

    pub(super) fn check_parsed(&self, url: &Url) -> Result<(), EgressError> {
        let text = || url.as_str().to_owned();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::Scheme { url: text(), scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::Credentials { url: text() });
        }
        let normal = Normal::of(url);
        if let Some(rule) = self.blocked.iter().find(|pattern| pattern.matches(&normal)) {
            return Err(EgressError::Blocked { url: text(), rule: rule.text().to_owned() });
        }
        self.check_host(url)?;
        match url.port() {
            Some(port) if OTHER_SERVICES.contains(&port) => Err(EgressError::Port { url: text(), port }),
            _ => Ok(()),
        }
    }

    /// Whether all pages of a host may be reached: where not even the path is seen, one blocked page blocks them all.
    pub(super) fn check_tunnel(&self, url: &Url) -> Result<(), EgressError> {
        let host = url.host_str().unwrap_or_default();
        match self.blocked.iter().find(|pattern| pattern.is_about(host_name(host))) {
            Some(rule) => Err(EgressError::Blocked { url: url.to_string(), rule: rule.text().to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether the host may be reached, as far as its name tells.
    fn check_host(&self, url: &Url) -> Result<(), EgressError> {
        let refused = |kind: &str| {
            let host = url.host_str().unwrap_or_default().to_owned();
            Err(EgressError::Private { url: url.to_string(), host, address: None, kind: kind.to_owned() })
        };
        let address = match url.host() {
            Some(Host::Domain(name)) => {
                let name = host_name(name);
                if self.allows_name(name) {
                    return Ok(());
                }
                let is_local = !name.contains('.')
                    || LOCAL_NAMES.iter().any(|local| {
                        name.strip_suffix(local)
                            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
                    });
                return if is_local {
                    refused("a name of this machine or of a local network")
                } else {
                    Ok(())
                };
            }
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            None => return refused("no host"),
        };
        match not_public(address) {
            Some(kind) if !self.allows_address(address) => refused(kind),
            _ => Ok(()),
        }
    }

    /// Whether all addresses that a name resolved to may be reached; else one of them, and what it is.
    pub(super) fn check_addresses(
        &self,
        host: &str,
        addresses: &[IpAddr],
    ) -> Result<(), (IpAddr, &'static str)> {
        if self.allows_name(host_name(host)) {
            return Ok(());
        }
        let wrong = addresses.iter().find_map(|&address| {
            let kind = resolved_not_public(address).filter(|_| !self.allows_address(address))?;
            Some((address, kind))
        });
        wrong.map_or(Ok(()), Err)
    }

    fn allows_name(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed.has_name(name))
    }

    fn allows_address(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|allowed| allowed.has_address(address))
    }
}

fn host_name(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// Reads an address as models write them: the scheme may be missing.
fn parse(text: &str) -> Result<Url, EgressError> {
    let text = text.trim();
    let wrong = |problem: &str| EgressError::Address { url: text.to_owned(), problem: problem.to_owned() };
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.len() > LONGEST_URL {
        return Err(wrong("it is too long"));
    }
    let complete = match text.split_once(':') {
        _ if text.starts_with("//") => format!("https:{text}"),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
            text.to_owned()
        }
        Some((before, after)) => {
            let is_port = after
                .split(['/', '?', '#'])
                .next()
                .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
            let is_path = before.contains(['/', '?', '#']) || before.starts_with('[');
            if !is_port && !is_path {
                return Err(EgressError::Scheme { url: text.to_owned(), scheme: before.to_owned() });
            }
            format!("https://{text}")
        }
        None => format!("https://{text}"),
    };
    let url = Url::parse(&complete).map_err(|error| wrong(&error.to_string()))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it has no host"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(policy: &Policy, url: &str) -> Option<&'static str> {
        policy.check(url).err().map(|error| error.kind())
    }

    /// Addresses that are refused before anybody is asked, with the kind of the refusal.
    #[rustfmt::skip]
    const REFUSED: &[(&str, &str)] = &[
        // loopback and this network, in every notation
        ("http://127.0.0.1/", "private"), ("http://127.0.0.1:8080/admin", "private"),
        ("http://127.1/", "private"), ("http://127.0.1/", "private"), ("http://2130706433/", "private"),
        ("http://017700000001/", "private"), ("http://0177.0.0.1/", "private"), ("http://0177.0.0.01/", "private"),
        ("http://0x7f000001/", "private"), ("http://0x7F.0.0.1/", "private"), ("http://0x7f.1/", "private"),
        ("http://127.0.0.1./", "private"), ("http://%31%32%37.0.0.1/", "private"),
        ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", "private"), ("http://\u{2460}\u{2461}\u{2466}.0.0.1/", "private"),
        ("http://0/", "private"), ("http://0.0.0.0/", "private"), ("http:127.0.0.1", "private"),
        ("http:/127.0.0.1", "private"), ("http:\\\\127.0.0.1\\x", "private"), ("127.0.0.1/x", "private"),
        ("127.0.0.1:80/x", "private"), ("//127.0.0.1/x", "private"), ("ht\ntp://127.0.0.1/", "scheme"),
        // private networks, carriers, clouds
        ("http://10.0.0.1/", "private"), ("http://167772161/", "private"), ("http://0xa.1/", "private"),
        ("http://172.16.0.1/", "private"), ("http://192.168.1.1/", "private"), ("http://0300.0250.1.1/", "private"),
        ("http://100.64.0.1/", "private"), ("http://100.100.100.200/latest/", "private"),
        ("http://169.254.169.254/latest/meta-data/", "private"), ("http://2852039166/", "private"),
        ("http://0xa9fea9fe/", "private"), ("http://168.63.129.16/", "private"),
        ("http://224.0.0.1/", "private"), ("http://255.255.255.255/", "private"),
        // IPv6
        ("http://[::1]/", "private"), ("http://[0:0:0:0:0:0:0:1]:80/", "private"), ("http://[::]/", "private"),
        ("http://[::ffff:127.0.0.1]/", "private"), ("http://[::ffff:7f00:1]/", "private"),
        ("http://[::ffff:8.8.8.8]/", "private"), ("http://[::127.0.0.1]/", "private"),
        ("http://[64:ff9b::7f00:1]/", "private"), ("http://[64:ff9b:1::a00:1]/", "private"),
        ("http://[2002:7f00:1::]/", "private"), ("http://[2001:0:1::]/", "private"),
        ("http://[fc00::1]/", "private"), ("http://[fd00:ec2::254]/", "private"), ("http://[fe80::1]/", "private"),
        ("http://[fec0::1]/", "private"), ("http://[ff02::1]/", "private"), ("http://[2001:db8::1]/", "private"),
        // names of machines nearby
        ("http://localhost/", "private"), ("http://LOCALHOST:3000/", "private"), ("http://localhost./", "private"),
        ("localhost:3000/x", "private"), ("http://x.localhost/", "private"), ("http://printer.local/", "private"),
        ("http://metadata.google.internal/computeMetadata/v1/", "private"), ("http://router/", "private"),
        ("http://nas.home.arpa/", "private"), ("http://\u{24db}ocalhost/", "private"),
        // other schemes
        ("file:///etc/passwd", "scheme"), ("FILE:/etc/passwd", "scheme"), ("ftp://example.org/x", "scheme"),
        ("gopher://example.org:70/", "scheme"), ("data:text/html,x", "scheme"), ("javascript:alert(1)", "scheme"),
        ("ws://example.org/", "scheme"), ("dict://example.org:2628/", "scheme"), ("ldap://example.org/", "scheme"),
        ("view-source:http://example.org/", "scheme"), ("jar:http://example.org!/x", "scheme"),
        ("blob:https://example.org/x", "scheme"), ("unix:/run/docker.sock", "scheme"),
        // credentials and ports
        ("http://user@example.org/", "credentials"), ("http://user:pw@example.org/", "credentials"),
        ("http://example.org@127.0.0.1/", "credentials"), ("http://:pw@example.org/", "credentials"),
        ("http://example.org:22/", "port"), ("http://example.org:25/", "port"), ("https://example.org:6667/", "port"),
        // no address
        ("", "address"), ("http://", "address"), ("https://[::1", "address"), ("http://exa mple.org/", "address"),
        ("http://1.2.3.4.5/", "address"), ("http://256.1.1.1/", "address"), ("http://0x100000000/", "address"),
        ("https://example.org:99999/", "address"), ("http://%00/", "address"),
        // blocked pages
        ("https://huggingface.co/datasets/x", "blocked"), ("huggingface.co/datasets/x", "blocked"),
        ("//huggingface.co/spaces/x", "blocked"), ("HTTPS://HUGGINGFACE.CO:443//Spaces/x", "blocked"),
        ("https://huggingface.co./%64atasets", "blocked"), ("https://hf.co/datasets/x", "blocked"),
        ("https://huggingface.co/a/..%2fdatasets/x", "blocked"), ("https://api.unifuncs.com/", "blocked"),
        ("https://r.jina.ai/https://huggingface.co/datasets/x", "blocked"),
    ];

    #[test]
    fn refused_by_their_text() {
        let policy = Policy::new(&EgressOptions::default()).unwrap();
        for (url, expected) in REFUSED {
            let found = kind_of(&policy, url);
            assert_eq!(found, Some(*expected), "{url}");
        }
        assert!(REFUSED.len() > 80);
    }

    #[test]
    fn ordinary_ones_are_allowed() {
        let policy = Policy::new(&EgressOptions::default()).unwrap();
        for url in [
            "https://example.org/",
            "http://example.org/a/../b?q=1#f",
            "example.org",
            "www.example.org/page?x=https://other.example/",
            "//example.org/x",
            "example.org:8080/x",
            "https://example.org:8443/",
            "https://en.wikipedia.org/wiki/Johannes_Kepler",
            "https://de.wikipedia.org/wiki/K\u{f6}ln",
            "https://m\u{fc}nchen.example/",
            "https://xn--mnchen-3ya.example/",
            "http://8.8.8.8/",
            "http://[2606:4700:4700::1111]/",
            "https://huggingface.co/papers/2311.12983",
            "https://huggingface.co/docs/datasets",
            "https://arxiv.org/pdf/2311.12983v1",
            "https://example.org/a:b",
            "https://example.org/@user/post",
            "https://local.example/",
            "https://localhost.example/",
        ] {
            assert_eq!(policy.check(url).err(), None, "{url}");
        }
    }

    #[test]
    fn what_was_allowed_by_hand() {
        let allow_private =
            ["127.0.0.1", "10.1.0.0/16", "wiki.internal", "router"].map(str::to_owned).to_vec();
        let policy = Policy::new(&EgressOptions { allow_private, ..EgressOptions::default() }).unwrap();
        for url in ["http://127.0.0.1:8080/", "http://10.1.2.3/", "http://WIKI.internal./x", "http://router/"]
        {
            assert_eq!(kind_of(&policy, url), None, "{url}");
        }
        for url in ["http://127.0.0.2/", "http://10.2.0.1/", "http://x.wiki.internal/", "http://[::1]/"] {
            assert_eq!(kind_of(&policy, url), Some("private"), "{url}");
        }
        let private = [IpAddr::from([10, 2, 0, 1])];
        assert!(policy.check_addresses("wiki.internal", &private).is_ok());
        assert!(policy.check_addresses("other.example", &private).is_err());
    }

    #[test]
    fn a_tunnel_to_a_host_with_blocked_pages_is_refused() {
        let blocked = ["huggingface.co/datasets", "*.glob.example/private/*"].map(str::to_owned).to_vec();
        let policy = Policy::new(&EgressOptions { blocked, ..EgressOptions::default() }).unwrap();
        for (url, allowed) in [
            ("https://huggingface.co/", false),
            ("https://www.huggingface.co/", false),
            ("https://HUGGINGFACE.co./", false),
            ("https://a.glob.example/", false),
            ("https://example.org/", true),
            ("https://nothuggingface.co/", true),
        ] {
            assert_eq!(policy.check_tunnel(&Url::parse(url).unwrap()).is_ok(), allowed, "{url}");
        }
    }

    #[test]
    fn settings_that_mean_nothing_are_named() {
        let wrong = EgressOptions { blocked: vec!["/".into()], ..EgressOptions::default() };
        assert!(Policy::new(&wrong).unwrap_err().to_string().starts_with("blocked: `/` blocks nothing"));
        let wrong = EgressOptions { allow_private: vec!["10/8".into()], ..EgressOptions::default() };
        assert!(Policy::new(&wrong).unwrap_err().to_string().starts_with("allow_private: `10/8` is not"));
    }
}
