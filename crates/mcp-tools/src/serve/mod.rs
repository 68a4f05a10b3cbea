//! Built-in servers for MCP clients elsewhere: over standard input and output, and over streamable HTTP.
//!
//! Decides who may connect and how a server ends with its clients. What a server can do is its own affair.

mod error;
mod gateway;
mod http;
mod stdio;

pub use error::ServeError;
pub use http::{HttpOptions, HttpServer, parse_address};
pub use stdio::serve_stdio;
