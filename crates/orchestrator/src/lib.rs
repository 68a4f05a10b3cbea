#![doc = include_str!("../README.md")]

pub mod boundaries;
pub mod config;
mod driver;
pub mod limits;
pub mod machine;
mod ports;
mod repair;
pub mod retention;

pub use config::{AgentConfig, AgentRole};
pub use driver::Driver;
pub use machine::state::Task;
pub use machine::{Machine, ModelFacts, Setup, Step};
pub use ports::{EventSink, Prompts, SinkError, Stamp, Tools};
