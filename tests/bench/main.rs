//! Whole benchmark runs: the program itself as a child process, a real HTTP server in the place of model and judge,
//! real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that is surprised fails")]

mod attachments;
mod bad_input;
mod crashes;
mod hostile;
mod judging;
mod limits;
#[path = "../support/program.rs"]
mod program;
#[path = "../../crates/llm-providers/tests/support/scripted_server.rs"]
mod scripted_server;
mod suites;
mod support;
