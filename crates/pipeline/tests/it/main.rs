//! Integration tests of the crate, one binary.

mod config;
#[path = "../../../llm-providers/tests/support/scripted_server.rs"]
mod scripted_server;
mod tool_models;
mod whole_run;
