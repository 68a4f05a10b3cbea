#![doc = include_str!("../README.md")]

mod articles;
pub mod config;
mod error;
pub mod files;
pub mod log;
mod prompts;
mod run;
pub mod scrub;
mod servers;
mod supported;
mod surroundings;

pub use articles::shipped;
pub use error::{ErrorClass, PipelineError};
pub use prompts::{PromptFacts, TemplatePrompts, TemplateSource};
pub use run::{Pipeline, PipelineParts, Question, RunReport};
pub use servers::{AVAILABLE, Servers, Wiring};
pub use supported::check as check_supported;
pub use surroundings::{Configured, MCP_FILE, Options, Places, Surroundings};
