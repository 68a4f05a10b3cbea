#![doc = include_str!("../README.md")]
// What the engines share is not taken apart by feature: built without one of them, parts of it are idle.
#![cfg_attr(not(all(feature = "openai", feature = "anthropic")), allow(dead_code, unused_imports))]

#[cfg(feature = "anthropic")]
mod anthropic;
mod attempt;
pub mod classify;
mod client;
mod config;
mod data;
mod detect;
#[cfg(feature = "http")]
mod engine;
mod environment;
mod error;
mod function_name;
mod history;
#[cfg(feature = "http")]
mod http;
mod lenient;
mod native_call;
#[cfg(feature = "openai")]
mod openai;
mod price;
mod provider;
mod quirks;
#[cfg(feature = "reader")]
pub mod reader;
mod registry;
mod repeat;
mod retry;
#[cfg(feature = "http")]
mod retry_after;
mod sampling;
mod scrub;
mod secret;
#[cfg(feature = "http")]
mod sse;
mod tokens;
mod tool_schema;
#[cfg(feature = "http")]
mod wire;

pub use client::{CallEvent, CallOutcome, LlmClient};
pub use config::{LlmConfig, RetryConfig, ToolProtocol};
pub use detect::{Detected, LocalServer, Probe, detect, probe_local_servers};
pub use environment::Environment;
pub use error::{Endpoint, LlmError, TimeoutStage, Unreachable};
pub use native_call::unreadable_arguments;
pub use price::Price;
pub use provider::{Capabilities, ChatRequest, EventStream, Provider, StreamEvent, Tokenizer};
pub use quirks::{AssistantPrefix, Auth, Quirks, SendReasoning};
pub use registry::Registry;
pub use secret::Secret;
pub use tokens::warm_up;
