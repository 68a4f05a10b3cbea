//! The built-in tool servers, each behind its feature.

#[cfg(any(feature = "models", feature = "python", feature = "reading"))]
mod files;
#[cfg(feature = "library")]
pub mod library;
#[cfg(feature = "models")]
pub mod models;
#[cfg(any(feature = "models", feature = "python", feature = "reading"))]
mod paths;
#[cfg(feature = "planner")]
pub mod planner;
#[cfg(any(feature = "models", feature = "reading"))]
mod programs;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "reading")]
pub mod reading;
#[cfg(feature = "web")]
pub mod web;

/// What a server of this name that offers tools says of itself.
#[cfg(any(feature = "models", feature = "web"))]
fn info(name: &str) -> rmcp::model::ServerConfig {
    use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
    let capabilities = ServerCapabilities::builder().enable_tools().build();
    ServerConfig::new(capabilities).with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
}
