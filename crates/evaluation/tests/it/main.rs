//! Tests of the crate from outside, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod figures;
mod gaia;
mod verdicts;
