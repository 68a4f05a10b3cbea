//! The loop as a pure machine: a script of replies goes in, a list of decisions comes out. No runtime, no network,
//! no clock.

mod attachments;
mod budgets;
mod context;
mod duplicates;
mod example_runs;
mod failures;
mod final_answer;
mod harness;
mod ids;
mod interruptions;
mod layouts;
mod no_call;
mod passes;
mod properties;
mod repair;
mod resuming;
mod retention;
mod script;
mod tool_results;
