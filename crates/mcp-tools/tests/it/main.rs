//! Integration tests of the crate, in one binary.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

#[cfg(all(unix, feature = "library"))]
mod library;
#[cfg(unix)]
mod manager;
#[cfg(feature = "python")]
mod python;
#[cfg(all(feature = "python", feature = "reading"))]
mod reading;
#[cfg(feature = "python")]
mod sandbox;
