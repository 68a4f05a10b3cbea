//! Whole runs: the program itself as a child process, a real HTTP server in the place of the model, real MCP servers
//! over stdio, real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that is surprised fails")]

mod bad_input;
mod cassette;
mod commands;
mod example_runs;
mod faults;
#[path = "../../crates/mcp-tools/tests/support/installed.rs"]
mod installed;
mod long_run;
mod loop_features;
mod mcp_serve;
mod npm_server;
#[path = "../support/program.rs"]
mod program;
mod resume;
#[path = "../../crates/llm-providers/tests/support/scripted_server.rs"]
mod scripted_server;
mod sub_agents;
mod support;
