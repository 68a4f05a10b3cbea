#![doc = include_str!("../README.md")]

pub mod agents;
mod articles;
mod cassette;
pub mod config;
mod error;
pub mod files;
pub mod lock;
pub mod log;
pub mod model_tools;
pub mod own_log;
mod prompts;
mod replay;
mod resume;
mod run;
pub mod scrub;
mod server_identity;
mod servers;
pub mod signals;
mod surroundings;
pub mod telemetry;
pub mod tool_models;
pub mod trace;
pub mod web_tools;

pub use articles::shipped;
pub use cassette::{CassetteChoice, CassetteReport};
pub use error::{ErrorClass, PipelineError};
pub use mcp_tools::servers::reading::{ReaderProcess, read_apart};
pub use orchestrator::RunClock;
pub use prompts::{PromptFacts, TemplatePrompts, TemplateSource};
pub use replay::Replayed;
pub use resume::{Interrupted, Opened, report_of};
pub use run::{Pipeline, PipelineParts, Question, RunReport, find_model};
pub use servers::{AVAILABLE, Servers, Wiring, nearest_name};
pub use surroundings::{Configured, MCP_FILE, Options, Places, Surroundings};
