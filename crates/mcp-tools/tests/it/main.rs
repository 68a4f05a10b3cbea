//! Integration tests of the crate, in one binary.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

#[cfg(feature = "e2b")]
mod e2b;
#[cfg(unix)]
#[path = "../support/installed.rs"]
mod installed;
#[cfg(all(unix, feature = "library"))]
mod library;
#[cfg(all(
    feature = "e2b",
    feature = "library",
    feature = "models",
    feature = "planner",
    feature = "reading",
    feature = "web"
))]
mod listing;
#[cfg(unix)]
mod manager;
#[cfg(all(feature = "models", feature = "planner", feature = "python"))]
mod models;
#[cfg(feature = "python")]
mod python;
#[cfg(all(feature = "python", feature = "reading"))]
mod reading;
#[cfg(feature = "reading")]
mod samples;
#[cfg(feature = "python")]
mod sandbox;
#[cfg(all(unix, feature = "http", feature = "serve"))]
mod serve;
#[cfg(all(feature = "models", feature = "python"))]
mod videos;
#[cfg(all(feature = "python", feature = "web"))]
mod web;
