//! Tells only what is new: events that the log has are compared and passed over, the rest goes on to the log.

use std::sync::{Mutex, PoisonError};

use core_protocol::event::{Event, EventBody};
use serde_json::Value;

use super::past::{Departure, Past};
use crate::ports::{EventSink, SinkError, Stamp};

/// How much of an event an error shows.
const EXCERPT_CHARACTERS: usize = 160;

/// Between a run that is driven again and its log.
pub struct JournalSink<'a> {
    past: &'a Past,
    log: &'a dyn EventSink,
    /// Told before the first event that is new.
    beginning: Mutex<Option<EventBody>>,
}

impl<'a> JournalSink<'a> {
    /// Passes on to `log` what `past` does not have; before the first such event, `beginning`.
    #[must_use]
    pub const fn new(past: &'a Past, log: &'a dyn EventSink, beginning: Option<EventBody>) -> Self {
        Self { past, log, beginning: Mutex::new(beginning) }
    }

    /// Tells the beginning, where it was not told.
    ///
    /// # Errors
    ///
    /// Where it cannot be kept.
    pub fn begin(&self) -> Result<(), SinkError> {
        let mut waiting = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.take() {
            Some(body) => self.log.emit(Stamp { pass: 0, turn: 0, agent: "main" }, body),
            None => Ok(()),
        }
    }
}

impl EventSink for JournalSink<'_> {
    fn emit(&self, stamp: Stamp<'_>, body: EventBody) -> Result<(), SinkError> {
        {
            let mut cursor = self.past.cursor();
            if let Some(departure) = &cursor.departure {
                return Err(SinkError(departure.to_string()));
            }
            let logged = match &body {
                EventBody::ToolCallFinished { call_id, .. } => {
                    cursor.finished.remove(&(stamp.agent.to_owned(), call_id.clone()))
                }
                EventBody::LlmRetry { .. }
                | EventBody::LlmWaited { .. }
                | EventBody::ToolsWaited { .. }
                | EventBody::TextDelta { .. }
                | EventBody::ThinkingDelta { .. } => None,
                _ => cursor.agents.get_mut(stamp.agent).and_then(std::collections::VecDeque::pop_front),
            };
            if let Some(logged) = logged {
                return match departure(&logged, stamp, &body) {
                    None => Ok(()),
                    Some(departure) => {
                        let error = SinkError(departure.to_string());
                        cursor.departure = Some(departure);
                        Err(error)
                    }
                };
            }
        }
        if body.is_stored() {
            self.begin()?;
        }
        self.log.emit(stamp, body)
    }
}

/// Where what is told differs from what was logged.
fn departure(logged: &Event, stamp: Stamp<'_>, body: &EventBody) -> Option<Departure> {
    if logged.body == *body && (logged.pass, logged.turn) == (stamp.pass, stamp.turn) {
        return None;
    }
    let place = |pass: u32, turn: u32| format!("pass {pass}, turn {turn}, ");
    let (expected, found) = (essence(&logged.body), essence(body));
    if expected == found && (logged.pass, logged.turn) == (stamp.pass, stamp.turn) {
        return None;
    }
    let (expected, found) = apart(&expected.to_string(), &found.to_string());
    Some(Departure {
        seq: logged.seq,
        expected: place(logged.pass, logged.turn) + &expected,
        found: place(stamp.pass, stamp.turn) + &found,
    })
}

/// An event as JSON, without what may differ from one time to the next: where the model is reached, how long
/// something took. Secrets are replaced in a log, so that their places are not compared.
fn essence(body: &EventBody) -> Value {
    let mut value = serde_json::to_value(body).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        for name in ["params", "ms"] {
            fields.remove(name);
        }
    }
    value
}

/// Two texts from a little before where they differ.
fn apart(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(EXCERPT_CHARACTERS / 2);
    let part = |text: &str| {
        let shown: String = text.chars().skip(from).take(EXCERPT_CHARACTERS).collect();
        if from > 0 { format!("…{shown}") } else { shown }
    };
    (part(one), part(other))
}
