#![doc = include_str!("../README.md")]

pub mod boundaries;
pub mod config;
mod driver;
pub mod findings;
pub mod journal;
mod ledger;
pub mod limits;
pub mod machine;
mod ports;
mod repair;
pub mod retention;
mod run_clock;
pub mod selection;
mod spans;
pub mod sub_agents;

pub use config::{AgentConfig, AgentRole};
pub use driver::Driver;
pub use findings::Finding;
pub use machine::state::Task;
pub use machine::{Agent, Machine, ModelFacts, Setup, Step};
pub use ports::{CallObserver, EventSink, Model, Prompts, SinkError, Stamp, Tools};
pub use run_clock::{RunClock, Wait};
pub use sub_agents::{SubAgentParts, SubAgentReport, SubAgents};
