//! A run read again: what each request sent, the run as a story, and the forms that other programs read.
//!
//! Pure functions over a [`RunRecord`]: they read no files, send nothing and print nothing. Events that an
//! interruption left behind and a later part of the run declared void are passed over everywhere.

mod chat;
mod markdown;
mod mirothinker;
mod otlp;
mod story;
mod views;

use core_protocol::Usage;
use core_protocol::event::{Event, EventBody, RunSetup};
use llm_providers::Price;
use serde_json::Value;

use crate::log::RunRecord;

pub use chat::{chatml, sharegpt, wire_messages};
pub use markdown::markdown;
pub use mirothinker::{Judgement, mirothinker};
pub use otlp::otlp;
pub use story::story;
pub use views::{SentView, views};

/// The name of the main agent in events.
const MAIN: &str = "main";

/// How a run began.
pub(crate) struct Start<'a> {
    pub(crate) event: &'a Event,
    pub(crate) question: &'a str,
    pub(crate) files: &'a [String],
    pub(crate) config: &'a Value,
    pub(crate) setup: &'a RunSetup,
    pub(crate) version: &'a str,
}

/// The first event of a record; a record has one.
pub(crate) fn start(record: &RunRecord) -> Option<Start<'_>> {
    let event = record.events.first()?;
    match &event.body {
        EventBody::RunStarted { question, files, config, setup, versions, .. } => {
            Some(Start { event, question, files, config, setup, version: &versions.fathom })
        }
        _ => None,
    }
}

/// What tokens cost in the run, in US dollars, where the log knows.
pub(crate) fn cost(setup: &RunSetup, usage: &Usage) -> Option<f64> {
    let price: Price = serde_json::from_value(setup.price.clone()?).ok()?;
    Some(price.cost(usage))
}

/// Milliseconds since 1970 of an event; 0 where its time cannot be read.
pub(crate) fn millis(event: &Event) -> i64 {
    event.ts.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}

/// Milliseconds as people read them.
pub(crate) fn seconds(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}
