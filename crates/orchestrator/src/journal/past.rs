//! The past of a run, read from its events: what ended, what had begun, how each agent went on.
//!
//! Decides which events an interrupted run goes on from. An event that is only half of something (a reply whose
//! `llm_response` is missing) does not count, nor does what an interruption itself told; such events are named, and
//! the log goes on with a `run_resumed` that says so.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_protocol::event::{ErrorReport, Event, EventBody, RunStatus, StopReason};
use core_protocol::{Completion, Message};

use super::{Journal, Known, NextTools, Verdict};
use crate::limits::LimitHit;
use crate::machine::{ContextCounts, ModelFailure, ModelReply, ToolReport};

/// How a re-driven run left its log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run departs from its log at event {seq}: the log has {expected}, the run now tells {found}")]
pub struct Departure {
    /// The number of the event in the log.
    pub seq: u64,
    /// The event there, shortened.
    pub expected: String,
    /// What the run tells instead, shortened.
    pub found: String,
}

/// The past of a run.
#[derive(Debug)]
pub struct Past {
    elapsed: Duration,
    held_back: Duration,
    calls: HashMap<(String, u64), Answer>,
    tools: HashMap<(String, String), ToolReport>,
    /// Tool calls that had begun.
    started: HashSet<(String, String)>,
    /// Events that the interruption left behind and that do not count.
    void: Vec<u64>,
    cursor: Mutex<Cursor>,
}

/// How a call to the model ended.
#[derive(Debug, Clone)]
enum Answer {
    Begun,
    Ended(Box<Result<ModelReply, ModelFailure>>, u64),
}

/// What of the past has not been told again yet.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// By agent, the events that its machine told, in order.
    pub(super) agents: HashMap<String, VecDeque<Event>>,
    /// Ends of tool calls, which come in any order.
    pub(super) finished: HashMap<(String, String), Event>,
    pub(super) departure: Option<Departure>,
}

impl Past {
    /// The past that the events of a log tell. They are in the order of the log and whole: no blobs, no gaps. The
    /// events numbered in `behind` do not count either.
    #[must_use]
    pub fn new(events: &[Event], behind: &[u64]) -> Self {
        let void = declared_void(events);
        let stopped = told_in_stopping(events, &void);
        let mut newly_void = behind.to_vec();
        newly_void.extend(&stopped);
        newly_void.extend(half_replies(events, |seq| !void.contains(&seq) && !stopped.contains(&seq)));
        newly_void.sort_unstable();
        newly_void.dedup();
        Self::read(events, void, newly_void)
    }

    /// The past with everything in it that is whole, also how the run was stopped: for a run that is not gone on with.
    #[must_use]
    pub fn whole(events: &[Event]) -> Self {
        let void = declared_void(events);
        let half = half_replies(events, |seq| !void.contains(&seq));
        Self::read(events, void, half)
    }

    fn read(events: &[Event], mut void: HashSet<u64>, newly_void: Vec<u64>) -> Self {
        void.extend(&newly_void);
        let mut past = Self {
            elapsed: elapsed(events),
            held_back: held_back(events),
            calls: HashMap::new(),
            tools: HashMap::new(),
            started: HashSet::new(),
            void: newly_void,
            cursor: Mutex::default(),
        };
        let mut cursor = Cursor::default();
        let mut messages: HashMap<(&str, &str), &Message> = HashMap::new();
        let mut asked: HashMap<(&str, u64), &str> = HashMap::new();
        for event in events.iter().filter(|event| !void.contains(&event.seq)) {
            let agent = event.agent.as_str();
            match &event.body {
                EventBody::RunStarted { .. }
                | EventBody::RunResumed { .. }
                | EventBody::RunFinished(_)
                | EventBody::LlmRetry { .. }
                | EventBody::LlmWaited { .. }
                | EventBody::ToolsWaited { .. }
                | EventBody::TextDelta { .. }
                | EventBody::ThinkingDelta { .. } => continue,
                EventBody::Message { id, message } => {
                    messages.insert((agent, id), message);
                }
                EventBody::LlmRequest { call, .. } => {
                    asked.insert((agent, *call), &event.ts);
                    past.calls.insert((agent.to_owned(), *call), Answer::Begun);
                }
                EventBody::LlmResponse {
                    call,
                    message_id,
                    finish_reason,
                    usage,
                    model,
                    ms,
                    retries,
                    discarded,
                } => {
                    if let Some(message) = messages.get(&(agent, message_id.as_str())) {
                        let reply = ModelReply {
                            call: *call,
                            completion: Completion {
                                message: (*message).clone(),
                                finish_reason: finish_reason.clone(),
                                usage: *usage,
                                model: model.clone(),
                            },
                            ms: *ms,
                            retries: *retries,
                            discarded: discarded.unwrap_or_default(),
                        };
                        past.ended(agent, *call, Ok(reply), *ms);
                    }
                }
                EventBody::LlmFailed { call, kind, message, class, hint } => {
                    let since = asked.get(&(agent, *call)).map_or(0, |asked| between(asked, &event.ts));
                    let report =
                        ErrorReport { kind: kind.clone(), message: message.clone(), hint: hint.clone() };
                    past.ended(agent, *call, Err(ModelFailure { call: *call, class: *class, report }), since);
                }
                EventBody::ToolCallStarted { call_id, .. } => {
                    past.started.insert((agent.to_owned(), call_id.clone()));
                }
                EventBody::ToolCallFinished { call_id, result, error_kind, curable, ms } => {
                    let key = (agent.to_owned(), call_id.clone());
                    let report = ToolReport {
                        result: result.clone(),
                        error_kind: error_kind.clone(),
                        curable: *curable,
                        ms: *ms,
                        sub_agent: None,
                    };
                    past.tools.insert(key.clone(), report);
                    cursor.finished.insert(key, event.clone());
                    continue;
                }
                _ => {}
            }
            cursor.agents.entry(agent.to_owned()).or_default().push_back(event.clone());
        }
        past.cursor = Mutex::new(cursor);
        past
    }

    /// Numbers of the events that the interruption left behind, for the `run_resumed` that follows.
    #[must_use]
    pub fn void(&self) -> &[u64] {
        &self.void
    }

    /// How the run left its log, where it did.
    #[must_use]
    pub fn departure(&self) -> Option<Departure> {
        self.cursor().departure.clone()
    }

    /// The number of the first event that was not told again, where there is one.
    #[must_use]
    pub fn untold(&self) -> Option<u64> {
        let cursor = self.cursor();
        let waiting = cursor.agents.values().flatten().chain(cursor.finished.values());
        waiting.map(|event| event.seq).min()
    }

    pub(super) fn cursor(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first end of a call is how it ended: an empty reply is a reply, and told as a failure after it.
    fn ended(&mut self, agent: &str, call: u64, answer: Result<ModelReply, ModelFailure>, ms: u64) {
        let known = self.calls.entry((agent.to_owned(), call)).or_insert(Answer::Begun);
        if matches!(known, Answer::Begun) {
            *known = Answer::Ended(Box::new(answer), ms);
        }
    }
}

impl Journal for Past {
    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn held_back(&self) -> Duration {
        self.held_back
    }

    fn verdict(&self, agent: &str) -> Verdict {
        let cursor = self.cursor();
        let Some(next) = cursor.agents.get(agent).and_then(|events| events.front()) else {
            return Verdict::Open;
        };
        match &next.body {
            EventBody::LimitReached { limit, spent, max } => match reason_of(limit) {
                Some((reason, name)) => Verdict::Limit(LimitHit { reason, name, spent: *spent, max: *max }),
                None => Verdict::WentOn,
            },
            EventBody::PassFinished { summary } if summary.stop_reason == StopReason::Cancelled => {
                Verdict::Cancelled
            }
            _ => Verdict::WentOn,
        }
    }

    fn model_call(&self, agent: &str, call: u64) -> Known<Result<ModelReply, ModelFailure>> {
        match self.calls.get(&(agent.to_owned(), call)) {
            None => Known::Nothing,
            Some(Answer::Ended(answer, ms)) => Known::Ended((**answer).clone(), *ms),
            Some(Answer::Begun) if self.verdict(agent) == Verdict::Open => Known::Begun,
            Some(Answer::Begun) => Known::GivenUp,
        }
    }

    fn tool_call(&self, agent: &str, call_id: &str) -> Known<ToolReport> {
        if matches!(self.verdict(agent), Verdict::Limit(_) | Verdict::Cancelled) {
            return Known::GivenUp;
        }
        let key = (agent.to_owned(), call_id.to_owned());
        match self.tools.get(&key) {
            Some(report) => Known::Ended(report.clone(), report.ms),
            None if !self.started.contains(&key) => Known::Nothing,
            None => Known::Begun,
        }
    }

    fn tools(&self, agent: &str) -> NextTools {
        let cursor = self.cursor();
        let Some(ahead) = cursor.agents.get(agent).filter(|ahead| !ahead.is_empty()) else {
            return NextTools::Open;
        };
        let before_next_request =
            ahead.iter().take_while(|event| !matches!(event.body, EventBody::LlmRequest { .. }));
        let mut changes = before_next_request.filter_map(|event| match &event.body {
            EventBody::ToolsChanged { tools } => Some(Arc::from(tools.as_slice())),
            _ => None,
        });
        changes.next().map_or(NextTools::Same, NextTools::Changed)
    }

    fn context(&self, agent: &str) -> Option<ContextCounts> {
        let cursor = self.cursor();
        match cursor.agents.get(agent)?.front()?.body {
            EventBody::ContextChecked { counts: Some([results, final_prompt, last_exchange]), .. } => {
                Some(ContextCounts { results, final_prompt, last_exchange })
            }
            _ => None,
        }
    }

    fn compression(&self, agent: &str) -> Option<[u64; 2]> {
        let cursor = self.cursor();
        match cursor.agents.get(agent)?.front()?.body {
            EventBody::Compressed { before, after, .. } => Some([before, after]),
            _ => None,
        }
    }
}

/// Numbers of the events that later parts of the run declared void.
fn declared_void(events: &[Event]) -> HashSet<u64> {
    let declared = events.iter().filter_map(|event| match &event.body {
        EventBody::RunResumed { void, .. } => Some(void),
        _ => None,
    });
    declared.flatten().copied().collect()
}

/// The limit of a run by its name in events.
fn reason_of(limit: &str) -> Option<(StopReason, &'static str)> {
    match limit {
        "wall" => Some((StopReason::LimitWall, "wall")),
        "working_time" => Some((StopReason::LimitWorkingTime, "working_time")),
        "tokens" => Some((StopReason::LimitTokens, "tokens")),
        "cost" => Some((StopReason::LimitCost, "cost")),
        _ => None,
    }
}

/// The events that agents told because the run was stopped.
fn told_in_stopping(events: &[Event], void: &HashSet<u64>) -> HashSet<u64> {
    let counted = || events.iter().filter(|event| !void.contains(&event.seq));
    let was_stopped = |event: &Event| match &event.body {
        EventBody::PassFinished { summary } => summary.stop_reason == StopReason::Cancelled,
        EventBody::RunFinished(summary) => summary.status == RunStatus::Cancelled,
        _ => false,
    };
    // A sub-agent may be stopped by a limit of the run, which then goes on.
    if !counted().any(|event| event.agent == MAIN && was_stopped(event)) {
        return HashSet::new();
    }
    let mut stopped: HashSet<&str> = HashSet::new();
    let mut told = HashSet::new();
    for event in counted() {
        let agent = event.agent.as_str();
        if was_stopped(event) || stopped.contains(agent) {
            stopped.insert(agent);
            told.insert(event.seq);
        }
    }
    told
}

/// Replies at the end of a log of which only the message was written, among the events that count.
fn half_replies(events: &[Event], counts: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut half: HashMap<&str, u64> = HashMap::new();
    for event in events.iter().filter(|event| counts(event.seq)) {
        let agent = event.agent.as_str();
        match &event.body {
            EventBody::Message { message, .. } if message.role == core_protocol::Role::Assistant => {
                half.insert(agent, event.seq);
            }
            _ => {
                half.remove(agent);
            }
        }
    }
    half.into_values().collect()
}

const MAIN: &str = "main";

/// The time that all parts of the run took: from the beginning of each to its last event.
fn elapsed(events: &[Event]) -> Duration {
    let mut total = 0;
    let mut first: Option<&str> = None;
    let mut last = "";
    for event in events {
        if matches!(event.body, EventBody::RunStarted { .. } | EventBody::RunResumed { .. }) {
            total += first.map_or(0, |first| between(first, last));
            first = Some(&event.ts);
        }
        last = &event.ts;
    }
    total += first.map_or(0, |first| between(first, last));
    Duration::from_millis(total)
}

/// The part of that in which calls to the model, of the agents or of their tools, waited for limiters. Waiting that had
/// not ended when a part of the run did is not in its time either.
fn held_back(events: &[Event]) -> Duration {
    let waited = events.iter().filter_map(|event| match event.body {
        EventBody::LlmWaited { ms, .. } | EventBody::ToolsWaited { ms } => Some(ms),
        _ => None,
    });
    Duration::from_millis(waited.sum()).min(elapsed(events))
}

/// Milliseconds between two times as events write them; 0 where they cannot be read or run backwards.
fn between(from: &str, to: &str) -> u64 {
    match (millis(from), millis(to)) {
        (Some(from), Some(to)) => to.saturating_sub(from),
        _ => 0,
    }
}

/// Milliseconds since 1970 of `2026-11-21T01:02:03.456Z`.
fn millis(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let fraction = if text.as_bytes().get(19) == Some(&b'.') { number(20..23).unwrap_or(0) } else { 0 };
    // Days since 1970-01-01 of a date in the Gregorian calendar, counted from March so that leap days come last.
    let (year, month) = if month <= 2 { (year.checked_sub(1)?, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let days = days.checked_sub(719_469)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("1970-01-02T00:00:01Z", Some(86_401_000)),
            ("2000-02-29T12:00:00.250Z", Some(951_825_600_250)),
            ("2026-11-22T01:29:32.000Z", Some(1_795_310_972_000)),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
        assert_eq!(between("1970-01-02T00:00:01Z", "1970-01-01T00:00:00Z"), 0);
    }
}
