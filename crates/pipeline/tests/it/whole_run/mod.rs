//! Whole runs in this process: a scripted model behind the real client, a real MCP server over the in-memory
//! transport, real logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that is surprised fails")]

mod crash;
mod damage;
mod exports;
mod log_size;
mod support;
