//! What to do next: search, read, work out the question inside the question, or answer.
//!
//! Decides from the history alone, so that the same request always gives the same reply. The words of the reply
//! are left to `wording`.

mod calls;
mod conclusion;
mod documents;

use core_protocol::{ToolCall, render_call};
use serde_json::{Map, Value};

use super::answer::{Answer, ENOUGH, SURE, answers};
use super::decompose::{Nested, nested};
use super::evidence::Document;
use super::history::{Event, History, Wanted};
use super::question::analyse;
use super::toolbox::{Protocol, Tool, Toolbox};
use super::wording::{Note, note_line};
use crate::ChatRequest;

/// Calls for a question of one step.
const CALLS: usize = 6;
/// Calls for each step of a nested question.
const CALLS_PER_STEP: usize = 4;
/// Calls of a pass altogether.
const MOST_CALLS: usize = 7;
/// Documents that are opened for one query before another query is tried.
const READS_PER_SEARCH: usize = 2;
/// Questions inside questions are followed this deep.
const DEPTH: usize = 3;
/// Sentences that are noted in one reply.
const NOTES: usize = 3;

/// A reply, ready to be sent.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// The text, calls of text protocols included.
    pub(super) text: String,
    /// Native calls.
    pub(super) calls: Vec<ToolCall>,
}

/// The reply to a request.
pub(super) fn reply(request: &ChatRequest) -> Reply {
    let tools = Toolbox::of(request);
    let history = History::of(request, &tools);
    let mut state = State::new(history, tools);
    match state.history.wanted {
        Wanted::Step => state.step(),
        // An answer that was given is repeated, not worked out anew: its evidence may be out of view by now.
        Wanted::FinalAnswer => {
            let text = state.history.concluded.take().unwrap_or_else(|| state.final_text());
            Reply { text, ..Reply::default() }
        }
        Wanted::FailureSummary => Reply { text: state.failure_text(), ..Reply::default() },
    }
}

/// What a line of inquiry has come to.
enum Finding {
    Found(Box<Answer>),
    Nothing(Option<Box<Answer>>),
    Call,
}

struct State {
    history: History,
    tools: Toolbox,
    documents: Vec<Document>,
    /// Places of documents that were opened, with the number of the call.
    opened: Vec<String>,
    searched: Vec<String>,
    new_notes: Vec<Note>,
}

impl State {
    fn new(history: History, tools: Toolbox) -> Self {
        let mut state = Self {
            history,
            tools,
            documents: Vec::new(),
            opened: Vec::new(),
            searched: Vec::new(),
            new_notes: Vec::new(),
        };
        state.gather();
        state
    }

    fn step(&mut self) -> Reply {
        let question = self.history.task.question.clone();
        let direct = self.prefers_direct();
        let mut call = None;
        if self.delegated().is_none() {
            self.resolve(&question, if direct { DEPTH } else { 0 }, &mut call);
        }
        if let Some(call) = call {
            return self.call_reply(&call);
        }
        Reply { text: self.final_text(), ..Reply::default() }
    }

    /// After a failed attempt that worked in steps, the question is tried as a whole.
    fn prefers_direct(&self) -> bool {
        self.attempts() % 2 == 1
    }

    fn attempts(&self) -> usize {
        let failures = &self.history.task.failures;
        failures.matches("Failure type:").count().max(usize::from(!failures.trim().is_empty()))
    }

    fn calls_made(&self) -> usize {
        self.opened.len() + self.searched.len()
    }

    /// The answer to a step that was worked out before.
    fn step_answer(&self, inner: &str) -> Option<Option<String>> {
        let old = self.history.events.iter().filter_map(|event| match event {
            Event::Noted(note) => Some(note),
            _ => None,
        });
        old.chain(&self.new_notes).find_map(|note| match note {
            Note::Step { question, answer } if question == inner => Some(Some(answer.clone())),
            Note::NoStep { question } if question == inner => Some(None),
            _ => None,
        })
    }

    /// Works on a question, steps first. Sets `call` where something must be fetched before it can go on.
    fn resolve(&mut self, text: &str, depth: usize, call: &mut Option<OwnedCall>) -> Finding {
        if depth < DEPTH
            && let Some(parts) = nested(text)
        {
            match self.resolve_inner(&parts, depth, call) {
                Finding::Call => return Finding::Call,
                Finding::Found(inner) => {
                    let outer = parts.outer(&inner.text);
                    return self.resolve(&outer, depth + 1, call);
                }
                Finding::Nothing(_) => {}
            }
        }
        let is_step = depth > 0 && depth < DEPTH || self.steps_taken() > 0;
        self.inquire(text, if is_step { CALLS_PER_STEP } else { CALLS }, call)
    }

    fn resolve_inner(&mut self, parts: &Nested, depth: usize, call: &mut Option<OwnedCall>) -> Finding {
        let known = self.step_answer(&parts.inner);
        if let Some(None) = known {
            return Finding::Nothing(None);
        }
        if let Some(Some(answer)) = known {
            let question = analyse(&parts.inner);
            let mut found =
                answers(&question, &self.documents).into_iter().find(|candidate| candidate.text == answer);
            if found.is_none() {
                found = Some(Answer::bare(&answer));
            }
            return found.map_or(Finding::Nothing(None), |answer| Finding::Found(Box::new(answer)));
        }
        let found = match self.resolve(&parts.inner, depth + 1, call) {
            // A step may be a little less sure than an answer: the outer question still has to fit.
            Finding::Nothing(Some(near)) if near.confidence >= ENOUGH - 0.1 => Finding::Found(near),
            other => other,
        };
        match found {
            Finding::Found(answer) => {
                self.new_notes
                    .push(Note::Step { question: parts.inner.clone(), answer: answer.text.clone() });
                Finding::Found(answer)
            }
            Finding::Nothing(near) => {
                self.new_notes.push(Note::NoStep { question: parts.inner.clone() });
                Finding::Nothing(near)
            }
            Finding::Call => Finding::Call,
        }
    }

    fn steps_taken(&self) -> usize {
        let old = self
            .history
            .events
            .iter()
            .filter(|event| matches!(event, Event::Noted(Note::Step { .. } | Note::NoStep { .. })))
            .count();
        old + self
            .new_notes
            .iter()
            .filter(|note| matches!(note, Note::Step { .. } | Note::NoStep { .. }))
            .count()
    }

    /// Calls made since the last step was worked out; a step worked out just now starts afresh.
    fn spent(&self) -> (usize, usize, usize) {
        if self.new_notes.iter().any(|note| matches!(note, Note::Step { .. } | Note::NoStep { .. })) {
            return (0, 0, 0);
        }
        let (mut calls, mut searches, mut reads_since) = (0, 0, 0);
        for event in &self.history.events {
            match event {
                Event::Noted(Note::Step { .. } | Note::NoStep { .. }) => {
                    (calls, searches, reads_since) = (0, 0, 0)
                }
                Event::Searched { .. } => {
                    calls += 1;
                    searches += 1;
                    reads_since = 0;
                }
                Event::Opened { .. } => {
                    calls += 1;
                    reads_since += 1;
                }
                Event::Noted(_) => {}
            }
        }
        (calls, searches, reads_since)
    }

    /// One line of inquiry without steps.
    fn inquire(&mut self, text: &str, budget: usize, call: &mut Option<OwnedCall>) -> Finding {
        let question = analyse(text);
        let found = answers(&question, &self.documents);
        let best = found.into_iter().next();
        let (calls, searches, reads) = self.spent();
        let is_read = |answer: &Answer| {
            self.tools.read.is_none()
                || self
                    .documents
                    .get(answer.document)
                    .is_some_and(|document| document.id.is_empty() || self.opened.contains(&document.id))
        };
        let sure = best.as_ref().is_some_and(|answer| answer.confidence >= SURE && is_read(answer));
        let may_call =
            self.history.wanted == Wanted::Step && calls < budget && self.calls_made() < MOST_CALLS;
        if may_call && !sure {
            let skip = usize::from(self.history.discarded);
            if let Some(next) =
                self.candidates(&question, searches, reads, best.as_ref()).into_iter().nth(skip)
            {
                self.note_evidence(&question);
                *call = Some(next);
                return Finding::Call;
            }
        }
        match best {
            Some(answer) if answer.confidence >= ENOUGH => Finding::Found(Box::new(answer)),
            other => Finding::Nothing(other.map(Box::new)),
        }
    }

    fn call_reply(&self, call: &OwnedCall) -> Reply {
        let mut lines: Vec<String> = self.new_notes.iter().map(note_line).collect();
        lines.push(call.say.clone());
        let made = ToolCall {
            id: format!("call_{}", self.calls_made()),
            server: call.tool.server.clone(),
            tool: call.tool.name.clone(),
            arguments: call.arguments.clone(),
            span: None,
            server_span: None,
            repaired: None,
            provider_data: None,
        };
        match self.tools.protocol {
            Protocol::Native => Reply { text: lines.join("\n"), calls: vec![made] },
            Protocol::Text(name) => {
                lines.push(String::new());
                lines.push(render_call(name.dialect(), &made));
                Reply { text: lines.join("\n"), calls: Vec::new() }
            }
        }
    }
}

/// A call that owns its parts.
#[derive(Debug, Clone)]
struct OwnedCall {
    tool: Tool,
    arguments: Map<String, Value>,
    say: String,
}
