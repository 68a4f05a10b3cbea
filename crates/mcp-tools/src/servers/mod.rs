//! The built-in tool servers, each behind its feature.

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
#[cfg(any(feature = "models", feature = "planner", feature = "python", feature = "reading"))]
mod schema;
#[cfg(feature = "web")]
pub mod web;
