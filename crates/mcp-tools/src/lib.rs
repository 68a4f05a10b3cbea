#![doc = include_str!("../README.md")]

#[cfg(feature = "egress")]
#[cfg_attr(
    not(all(feature = "models", feature = "python", feature = "web")),
    allow(dead_code, unused_imports, reason = "each of these servers uses a part of it")
)]
pub mod egress;
mod manager;
mod models;
#[cfg(feature = "python")]
mod sandbox;
#[cfg(feature = "serve")]
mod serve;
pub mod servers;
mod spawn;

pub use manager::*;
pub use models::{Media, ModelAnswer, ModelError, ModelQuestion, ToolModel};
#[cfg(feature = "serve")]
pub use serve::{HttpOptions, HttpServer, ServeError, parse_address, serve_stdio};
