#![doc = include_str!("../README.md")]

#[cfg(feature = "egress")]
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
