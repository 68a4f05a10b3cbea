#![doc = include_str!("../README.md")]

pub mod citations;
mod ending;
mod failure;
pub mod history;
mod prompts;

pub use ending::{
    Ending, EndingInput, EndingOutcome, EndingStep, MAX_CONTEXT_DROPS, PassFacts, Plan, final_answer_tries,
    plan,
};
pub use failure::unreported_failure;
pub use history::HistoryEntry;
pub use prompts::{EndingPrompts, fold_prefix};
