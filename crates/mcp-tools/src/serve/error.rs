//! What can keep a server from being offered.

use std::io;
use std::net::SocketAddr;

/// Why a server is not offered over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be read.
    #[error(
        "`{given}` is no address to listen on: write a port (8000), or an IP address with one (127.0.0.1:8000)"
    )]
    Address {
        /// What was given.
        given: String,
    },
    /// Somebody else listens there.
    #[error("{address} is taken by another program: choose another port, or 0 for any that is free")]
    Taken {
        /// Where this server was to listen.
        address: SocketAddr,
    },
    /// The address cannot be listened on for another reason.
    #[error("{address} cannot be listened on: {source}")]
    Listen {
        /// Where this server was to listen.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Other machines could use the server, and nothing would keep them from it.
    #[error(
        "{address} can be reached from other machines: set a token that clients must send, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// Where this server was to listen.
        address: SocketAddr,
    },
    /// The token cannot stand in a header.
    #[error("the token is empty or holds characters that no header may hold: use letters and digits")]
    Token,
    /// The server does not work.
    #[error("the server `{server}` does not start: {problem}")]
    Server {
        /// Its name.
        server: String,
        /// What is wrong.
        problem: String,
    },
}

impl ServeError {
    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "address",
            Self::Taken { .. } => "address_taken",
            Self::Listen { .. } => "listen",
            Self::Unprotected { .. } => "unprotected",
            Self::Token => "token",
            Self::Server { .. } => "server",
        }
    }

    /// Whether the same thing may work when it is tried again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Taken { .. } => true,
            Self::Address { .. }
            | Self::Listen { .. }
            | Self::Unprotected { .. }
            | Self::Token
            | Self::Server { .. } => false,
        }
    }
}
