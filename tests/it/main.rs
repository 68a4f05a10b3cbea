//! Whole runs: the program itself as a child process, a real HTTP server in the place of the model, real MCP servers
//! over stdio, real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that is surprised fails")]

mod bad_input;
mod commands;
mod example_runs;
mod faults;
mod long_run;
mod npm_server;
#[path = "../../crates/llm-providers/tests/support/scripted_server.rs"]
mod scripted_server;
mod support;
