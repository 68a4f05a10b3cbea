//! The built-in tool servers, each behind its feature.

#[cfg(feature = "library")]
pub mod library;
#[cfg(any(feature = "python", feature = "reading"))]
mod paths;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "reading")]
pub mod reading;
#[cfg(any(feature = "python", feature = "reading"))]
mod schema;
