//! Why something was not fetched.
//!
//! Decides the words that go to the model: which rule refused what, and what else could be done.

/// Longest part of an address that is shown.
const SHOWN: usize = 300;

/// Why something was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// It cannot be read as an address.
    #[error("`{}` is not a web address: {problem}. Give one like https://example.org/page", shown(url))]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Another scheme than http and https.
    #[error("`{}` was refused: only http and https are fetched, not `{scheme}`", shown(url))]
    Scheme {
        /// What was given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A name and password in the address.
    #[error(
        "`{}` was refused: it holds a user name or password; give the address without them",
        without_credentials(url)
    )]
    Credentials {
        /// What was given.
        url: String,
    },
    /// A port at which no web server is.
    #[error("`{}` was refused: port {port} belongs to another service than the web", shown(url))]
    Port {
        /// What was given.
        url: String,
        /// Its port.
        port: u16,
    },
    /// A blocked page.
    #[error("`{}` was refused: it is blocked in this run (rule `{rule}`). Use another source", shown(url))]
    Blocked {
        /// What was asked for.
        url: String,
        /// The pattern that it fits.
        rule: String,
    },
    /// A machine that is not on the public internet.
    #[error(
        "`{}` was refused: `{host}` is {kind}{}, and only the public internet is reached",
        shown(url),
        at(address)
    )]
    Private {
        /// What was asked for.
        url: String,
        /// Its host.
        host: String,
        /// The address that the host resolved to, where it is a name.
        address: Option<String>,
        /// What that is, with an article.
        kind: String,
    },
    /// No such host.
    #[error("`{}` could not be fetched: the host `{host}` does not resolve ({problem})", shown(url))]
    UnknownHost {
        /// What was asked for.
        url: String,
        /// Its host.
        host: String,
        /// What the resolver said.
        problem: String,
    },
    /// A redirect to something that is refused.
    #[error("`{}` redirects to something that is refused: {refusal}", shown(url))]
    Redirect {
        /// What was asked for.
        url: String,
        /// Why its target is refused.
        refusal: Box<EgressError>,
    },
    /// Redirects without end.
    #[error("`{}` could not be fetched: it redirects more than {limit} times", shown(url))]
    TooManyRedirects {
        /// What was asked for.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// More bytes than are read.
    #[error("`{}` could not be fetched: it is larger than {limit} bytes, the most that is read", shown(url))]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The limit, unpacked.
        limit: u64,
    },
    /// No answer in time.
    #[error("`{}` could not be fetched: no complete answer within {} s", shown(url), limit.as_secs_f64())]
    Timeout {
        /// What was asked for.
        url: String,
        /// The limit.
        limit: std::time::Duration,
    },
    /// No connection.
    #[error("`{}` could not be fetched: no connection ({problem})", shown(url))]
    Connect {
        /// What was asked for.
        url: String,
        /// What went wrong.
        problem: String,
    },
    /// The connection broke, or what came is no HTTP.
    #[error("`{}` could not be fetched: {problem}", shown(url))]
    Broken {
        /// What was asked for.
        url: String,
        /// What went wrong.
        problem: String,
    },
    /// A setting that cannot be used.
    #[error("{setting}: {problem}")]
    Configuration {
        /// Its key below `tools.egress`.
        setting: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl EgressError {
    /// A short name for logs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "address",
            Self::Scheme { .. } => "scheme",
            Self::Credentials { .. } => "credentials",
            Self::Port { .. } => "port",
            Self::Blocked { .. } => "blocked",
            Self::Private { .. } => "private",
            Self::UnknownHost { .. } => "unknown_host",
            Self::Redirect { .. } => "redirect",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::TooLarge { .. } => "too_large",
            Self::Timeout { .. } => "timeout",
            Self::Connect { .. } => "connect",
            Self::Broken { .. } => "broken",
            Self::Configuration { .. } => "configuration",
        }
    }

    /// Whether another try may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Connect { .. } | Self::Broken { .. } => true,
            Self::Address { .. }
            | Self::Scheme { .. }
            | Self::Credentials { .. }
            | Self::Port { .. }
            | Self::Blocked { .. }
            | Self::Private { .. }
            | Self::UnknownHost { .. }
            | Self::Redirect { .. }
            | Self::TooManyRedirects { .. }
            | Self::TooLarge { .. }
            | Self::Configuration { .. } => false,
        }
    }

    /// Whether a rule refused it, so that nothing was asked of the host.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Address { .. }
            | Self::Scheme { .. }
            | Self::Credentials { .. }
            | Self::Port { .. }
            | Self::Blocked { .. }
            | Self::Private { .. }
            | Self::Redirect { .. } => true,
            Self::UnknownHost { .. }
            | Self::TooManyRedirects { .. }
            | Self::TooLarge { .. }
            | Self::Timeout { .. }
            | Self::Connect { .. }
            | Self::Broken { .. }
            | Self::Configuration { .. } => false,
        }
    }
}

/// The start of an address, in one line.
pub(crate) fn shown(url: &str) -> String {
    let mut text: String = url.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
    if url.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let host = rest[..end].rfind('@').map_or(&rest[..end], |at| &rest[at + 1..end]);
            shown(&format!("{scheme}://…@{host}{}", &rest[end..]))
        }
        None => "the address".to_owned(),
    }
}

fn at(address: &Option<String>) -> String {
    address.as_ref().map(|address| format!(" ({address})")).unwrap_or_default()
}
