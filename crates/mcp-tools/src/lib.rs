#![doc = include_str!("../README.md")]

mod manager;
mod models;
#[cfg(feature = "python")]
mod sandbox;
pub mod servers;
mod spawn;

pub use manager::*;
pub use models::{Media, ModelAnswer, ModelError, ModelQuestion, ToolModel};
