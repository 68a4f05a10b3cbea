//! Tests of the crate from outside, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod compare;
mod datasets;
mod figures;
mod gaia;
mod html;
mod import;
mod judge;
mod made;
mod prepare;
mod reports;
#[path = "../../../llm-providers/tests/support/scripted_server.rs"]
mod scripted_server;
mod verdicts;
