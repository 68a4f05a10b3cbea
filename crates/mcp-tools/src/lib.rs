#![doc = include_str!("../README.md")]

mod manager;
#[cfg(feature = "python")]
mod sandbox;
pub mod servers;
mod spawn;

pub use manager::*;
