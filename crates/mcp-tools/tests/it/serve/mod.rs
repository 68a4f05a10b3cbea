//! Built-in servers as other clients meet them, and this client as other servers meet it.

mod conformance;
mod http;
