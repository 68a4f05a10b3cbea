//! Providers against a real HTTP server that does what each test says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/scripted_server.rs"]
mod scripted_server;
#[path = "../support/simulated_server.rs"]
mod simulated_server;

mod anthropic;
mod chat_completions;
mod common;
mod detection;
mod fault_matrix;
mod faults;
mod limiting;
mod preflight;
mod providers;
mod quirks;
mod responses;
mod retries;
