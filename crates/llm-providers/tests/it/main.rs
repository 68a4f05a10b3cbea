//! Providers against a real HTTP server that does what each test says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/scripted_server.rs"]
mod scripted_server;

mod anthropic;
mod chat_completions;
mod common;
mod detection;
mod faults;
mod providers;
mod retries;
