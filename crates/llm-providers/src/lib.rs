#![doc = include_str!("../README.md")]
// What the engines share is not taken apart by feature: built without one of them, parts of it are idle.
#![cfg_attr(
    not(all(feature = "openai", feature = "openai-responses", feature = "anthropic")),
    allow(dead_code, unused_imports)
)]

mod address;
#[cfg(feature = "anthropic")]
mod anthropic;
mod attempt;
pub mod cassette;
pub mod classify;
mod client;
mod config;
mod data;
mod detect;
#[cfg(feature = "http")]
mod engine;
mod environment;
mod error;
mod hint;
mod history;
#[cfg(feature = "http")]
mod http;
mod lenient;
#[cfg(feature = "http")]
mod lenient_json;
pub mod limiter;
mod native_call;
#[cfg(feature = "openai")]
mod openai;
#[cfg(feature = "http")]
mod preflight;
mod price;
mod proof;
mod provider;
mod quirks;
#[cfg(feature = "reader")]
pub mod reader;
mod registry;
mod repeat;
#[cfg(feature = "openai-responses")]
mod responses;
mod retry;
#[cfg(feature = "http")]
mod retry_after;
mod sampling;
mod scrub;
mod secret;
mod shortcoming;
#[cfg(feature = "http")]
mod sse;
mod stop_tags;
mod tokens;
mod tool_schema;
#[cfg(feature = "http")]
mod usage;
#[cfg(feature = "http")]
mod wire;

pub use client::{CallEvent, CallOutcome, LlmClient};
pub use config::{ConcurrencyConfig, LlmConfig, RetryConfig, ToolProtocol};
pub use data::Engine;
pub use detect::{Detected, LocalServer, Probe, detect, probe_local_servers};
pub use environment::Environment;
pub use error::{Endpoint, LlmError, Origins, TimeoutStage, Unreachable};
#[cfg(feature = "http")]
pub use http::post_json;
pub use limiter::{Limiter, LimiterStatus, Limiters};
pub use native_call::unreadable_arguments;
#[cfg(feature = "http")]
pub use preflight::{Inspection, inspect, preflight};
pub use price::Price;
pub use provider::{Capabilities, ChatRequest, EventStream, Provider, StreamEvent, Tokenizer};
pub use quirks::{AssistantPrefix, Auth, Quirks, SendReasoning};
pub use registry::Registry;
pub use secret::Secret;
pub use tokens::warm_up;
