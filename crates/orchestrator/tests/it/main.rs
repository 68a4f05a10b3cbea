//! The loop as a pure machine: a script of replies goes in, a list of decisions comes out. No runtime, no network,
//! no clock.

// Helpers outside of test functions are test code too.
#![allow(clippy::expect_used, clippy::panic)]

mod agents;
mod attachments;
mod budgets;
mod compression;
mod context;
mod dialects;
mod duplicates;
mod example_runs;
mod failures;
mod final_answer;
mod findings;
mod harness;
mod ids;
mod interruptions;
mod layouts;
mod no_call;
mod passes;
mod properties;
mod repair;
mod report;
mod resuming;
mod retention;
mod script;
mod selection;
mod shown;
mod tool_results;
mod words;
