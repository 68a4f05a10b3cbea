//! What to do next: search, read, work out the question inside the question, or answer.
//!
//! Decides from the history alone, so that the same request always gives the same reply. The words of the reply
//! are left to `wording`.

use core_protocol::{ToolCall, render_call};
use serde_json::{Map, Value};

use super::answer::{Answer, ENOUGH, SURE, answers};
use super::decompose::{Nested, nested};
use super::evidence::Document;
use super::history::{Event, History, Wanted};
use super::question::{Question, analyse};
use super::search::{promise, queries, same_query};
use super::toolbox::{Protocol, Tool, Toolbox};
use super::wording::{self, Failure, Note, Source, note_line};
use crate::ChatRequest;

/// Calls for a question of one step.
const CALLS: usize = 6;
/// Calls for each step of a nested question.
const CALLS_PER_STEP: usize = 4;
/// Calls of a pass altogether.
const MOST_CALLS: usize = 8;
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
        Wanted::FinalAnswer => Reply { text: state.final_text(), ..Reply::default() },
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
        let mut state =
            Self { history, tools, documents: Vec::new(), opened: Vec::new(), searched: Vec::new(), new_notes: Vec::new() };
        state.gather();
        state
    }

    /// Collects the documents: what was read, what searches showed, what notes kept of results that are gone.
    fn gather(&mut self) {
        let mut pieces: Vec<(String, String, String, usize, bool)> = Vec::new();
        let add = |pieces: &mut Vec<(String, String, String, usize, bool)>, place: &str, title: &str, text: &str, rank: usize, read: bool| {
            if let Some(known) = pieces.iter_mut().find(|piece| piece.0 == place && !place.is_empty()) {
                if known.1.is_empty() {
                    title.clone_into(&mut known.1);
                }
                known.3 = known.3.min(rank);
                if read && !known.4 {
                    text.clone_into(&mut known.2);
                    known.4 = true;
                } else if read == known.4 && !known.2.contains(text) {
                    known.2.push_str("\n\n");
                    known.2.push_str(text);
                }
            } else {
                pieces.push((place.to_owned(), title.to_owned(), text.to_owned(), rank, read));
            }
        };
        if !self.history.task.attached.trim().is_empty() {
            add(&mut pieces, "", "", &self.history.task.attached, 0, true);
        }
        for event in &self.history.events {
            match event {
                Event::Searched { query, hits, text, .. } => {
                    self.searched.push(query.clone());
                    for (rank, hit) in hits.iter().enumerate() {
                        add(&mut pieces, &hit.place, &hit.title, &hit.snippet, rank, false);
                    }
                    if !text.is_empty() {
                        add(&mut pieces, "", "", text, 0, true);
                    }
                }
                Event::Opened { place, title, text, .. } => {
                    self.opened.push(place.clone());
                    let text_known = !text.is_empty();
                    add(&mut pieces, place, title, text, 50, text_known);
                }
                Event::Noted(Note::Sentence { title, place, text }) => {
                    // Only where the result itself is gone; `contains` keeps it from standing twice.
                    add(&mut pieces, place, title, text, 50, false);
                }
                Event::Noted(Note::Unread { title, place }) => add(&mut pieces, place, title, "", 20, false),
                Event::Noted(_) => {}
            }
        }
        self.documents = pieces
            .iter()
            .map(|(place, title, text, rank, _)| {
                let heading = text.trim_start().strip_prefix("# ").and_then(|rest| rest.lines().next());
                let title = if title.is_empty() { heading.unwrap_or_default() } else { title };
                Document::new(place, title, text, *rank)
            })
            .collect();
    }

    fn step(&mut self) -> Reply {
        let question = self.history.task.question.clone();
        let direct = self.prefers_direct();
        let mut call = None;
        let outcome = self.resolve(&question, if direct { DEPTH } else { 0 }, &mut call);
        if let Some(call) = call {
            return self.call_reply(&question, &call);
        }
        let _ = outcome;
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
            let mut found = answers(&question, &self.documents).into_iter().find(|candidate| candidate.text == answer);
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
                self.new_notes.push(Note::Step { question: parts.inner.clone(), answer: answer.text.clone() });
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
        let old = self.history.events.iter().filter(|event| matches!(event, Event::Noted(Note::Step { .. } | Note::NoStep { .. }))).count();
        old + self.new_notes.iter().filter(|note| matches!(note, Note::Step { .. } | Note::NoStep { .. })).count()
    }

    /// Calls made since the last step was worked out; a step worked out just now starts afresh.
    fn spent(&self) -> (usize, usize, usize) {
        if self.new_notes.iter().any(|note| matches!(note, Note::Step { .. } | Note::NoStep { .. })) {
            return (0, 0, 0);
        }
        let (mut calls, mut searches, mut reads_since) = (0, 0, 0);
        for event in &self.history.events {
            match event {
                Event::Noted(Note::Step { .. } | Note::NoStep { .. }) => (calls, searches, reads_since) = (0, 0, 0),
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
                || self.documents.get(answer.document).is_some_and(|document| document.id.is_empty() || self.opened.contains(&document.id))
        };
        let sure = best.as_ref().is_some_and(|answer| answer.confidence >= SURE && is_read(answer));
        let may_call = self.history.wanted == Wanted::Step && calls < budget && self.calls_made() < MOST_CALLS;
        if may_call && !sure {
            let skip = usize::from(self.history.discarded);
            if let Some(next) = self.candidates(&question, searches, reads, best.as_ref()).into_iter().nth(skip) {
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

    /// Calls that could be made now, best first.
    fn candidates(&self, question: &Question, searches: usize, reads: usize, best: Option<&Answer>) -> Vec<OwnedCall> {
        let mut reading = Vec::new();
        let mut searching = Vec::new();
        if let Some(tool) = &self.tools.read {
            let mut unread: Vec<(f32, &Document)> = self
                .documents
                .iter()
                .zip(promise(question, &self.documents))
                .filter(|(document, _)| !document.id.is_empty() && !self.opened.contains(&document.id))
                .map(|(document, worth)| (worth, document))
                .collect();
            if let Some(document) =
                best.filter(|answer| answer.confidence >= 0.5).and_then(|answer| self.documents.get(answer.document))
            {
                // The document of the best sentence so far is worth opening above others.
                if let Some(entry) = unread.iter_mut().find(|(_, other)| other.id == document.id) {
                    entry.0 += 0.3;
                }
            }
            unread.sort_by(|a, b| b.0.total_cmp(&a.0));
            if std::env::var("DBG").is_ok() { for (w,d) in unread.iter().take(4) { eprintln!("{w} {} {:?}", d.title, d.rank); } if let Some(b)=best { eprintln!("best {} conf {} fit {} {:?} {}", b.text,b.confidence,b.fit,b.passage,b.sentence);} }
            for (worth, document) in unread.into_iter().take(4) {
                if worth > 0.35 {
                    reading.push(OwnedCall {
                        tool: tool.clone(),
                        arguments: tool.arguments(&document.id, &question.text),
                        say: format!("I read “{}”.", wording::safe(if document.title.is_empty() { &document.id } else { &document.title })),
                    });
                }
            }
            reading.extend(self.further(tool, question));
        }
        if let Some(tool) = &self.tools.search {
            let mut list: Vec<String> = if matches!(tool.main.as_str(), "subtask" | "task") {
                vec![question.text.clone()]
            } else {
                queries(question)
            };
            let turn = self.attempts() % list.len().max(1);
            list.rotate_left(turn);
            for query in list {
                if !self.searched.iter().any(|old| same_query(old, &query)) {
                    let say = format!("I search for “{}”.", wording::safe(&query));
                    searching.push(OwnedCall { tool: tool.clone(), arguments: tool.arguments(&query, &question.text), say });
                }
            }
        }
        let search_first = searches == 0 || reads >= READS_PER_SEARCH * searches.min(2);
        if search_first {
            searching.extend(reading);
            searching
        } else {
            reading.extend(searching);
            reading
        }
    }

    /// Going on in a long document that was opened and holds the question's subject.
    fn further(&self, tool: &Tool, question: &Question) -> Option<OwnedCall> {
        let last = self.history.events.iter().rev().find_map(|event| match event {
            Event::Opened { place, next: Some(next), title, .. } => Some((place, *next, title)),
            _ => None,
        })?;
        let arguments = tool.arguments_from(last.0, &question.text, last.1)?;
        Some(OwnedCall { tool: tool.clone(), arguments, say: format!("I read on in “{}”.", wording::safe(last.2)) })
    }

    /// Notes the best sentences that are not noted yet, and what is still to be read.
    fn note_evidence(&mut self, question: &Question) {
        let mut added = 0;
        for passage in super::evidence::rank(question, &self.documents) {
            if added == NOTES || passage.coverage < 0.6 {
                break;
            }
            let Some(document) = self.documents.get(passage.document) else { continue };
            let Some(sentence) = document.sentences.get(passage.sentence) else { continue };
            let note = Note::Sentence { title: document.title.clone(), place: document.id.clone(), text: sentence.text.clone() };
            if document.id.is_empty() || self.is_noted(&note) {
                continue;
            }
            self.new_notes.push(note);
            added += 1;
        }
        let mut unread: Vec<(f32, Note)> = Vec::new();
        for (document, worth) in self.documents.iter().zip(promise(question, &self.documents)) {
            if document.id.is_empty() || self.opened.contains(&document.id) {
                continue;
            }
            let note = Note::Unread { title: document.title.clone(), place: document.id.clone() };
            if !self.is_noted(&note) {
                unread.push((worth, note));
            }
        }
        unread.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.new_notes.extend(unread.into_iter().take(2).filter(|(worth, _)| *worth > 0.5).map(|(_, note)| note));
    }

    fn is_noted(&self, note: &Note) -> bool {
        let line = note_line(note);
        self.history.events.iter().any(|event| matches!(event, Event::Noted(old) if note_line(old) == line))
            || self.new_notes.iter().any(|old| note_line(old) == line)
    }

    fn call_reply(&self, question: &str, call: &OwnedCall) -> Reply {
        let mut lines: Vec<String> = self.new_notes.iter().map(note_line).collect();
        lines.push(call.say.clone());
        let _ = question;
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

    /// The answer from what is known, without further calls: steps first, else the question as a whole.
    fn conclude(&mut self) -> (Vec<Source>, Option<Answer>, Option<Answer>) {
        let text = self.history.task.question.clone();
        let mut sources = Vec::new();
        let stepped = if self.prefers_direct() { None } else { self.conclude_steps(&text, 0, &mut sources) };
        let direct = answers(&analyse(&text), &self.documents).into_iter().next();
        if let Some(answer) = stepped.filter(|answer| answer.confidence >= ENOUGH) {
            sources.push(self.source(&answer));
            return (sources, Some(answer), direct);
        }
        match direct {
            Some(answer) if answer.confidence >= self.direct_floor(&text) => {
                let source = self.source(&answer);
                (vec![source], Some(answer), None)
            }
            other => (Vec::new(), None, other),
        }
    }

    /// A nested question answered as a whole needs a sentence that covers nearly all of it.
    fn direct_floor(&self, text: &str) -> f32 {
        if nested(text).is_some() { ENOUGH + 0.1 } else { ENOUGH }
    }

    fn conclude_steps(&self, text: &str, depth: usize, sources: &mut Vec<Source>) -> Option<Answer> {
        let parts = nested(text).filter(|_| depth < DEPTH);
        let Some(parts) = parts else {
            return if depth == 0 { None } else { answers(&analyse(text), &self.documents).into_iter().next() };
        };
        let inner = match self.step_answer(&parts.inner) {
            Some(Some(answer)) => {
                let question = analyse(&parts.inner);
                let found = answers(&question, &self.documents).into_iter().find(|candidate| candidate.text == answer);
                found.unwrap_or_else(|| Answer::bare(&answer))
            }
            Some(None) => return None,
            None => {
                let question = analyse(&parts.inner);
                answers(&question, &self.documents).into_iter().next().filter(|answer| answer.confidence >= ENOUGH)?
            }
        };
        if !inner.sentence.is_empty() {
            sources.push(self.source(&inner));
        }
        let outer = parts.outer(&inner.text);
        self.conclude_steps(&outer, depth + 1, sources)
    }

    fn source(&self, answer: &Answer) -> Source {
        let document = self.documents.get(answer.document);
        Source {
            sentence: answer.sentence.clone(),
            title: document.map(|document| document.title.clone()).unwrap_or_default(),
            place: document.map(|document| document.id.clone()).unwrap_or_default(),
        }
    }

    fn final_text(&mut self) -> String {
        let (sources, answer, near) = self.conclude();
        match answer {
            Some(answer) => wording::answer(&sources, &answer.text),
            None => {
                let nearest = near.filter(|answer| answer.passage.coverage > 0.4).map(|answer| self.source(&answer));
                wording::no_answer(&self.titles_read(), nearest.as_ref())
            }
        }
    }

    fn titles_read(&self) -> Vec<String> {
        let mut titles: Vec<String> = Vec::new();
        for document in &self.documents {
            if self.opened.contains(&document.id) || document.id.is_empty() && !document.title.is_empty() {
                titles.push(if document.title.is_empty() { document.id.clone() } else { document.title.clone() });
            }
        }
        titles
    }

    fn failure_text(&mut self) -> String {
        let (sources, answer, near) = self.conclude();
        let errors = self
            .history
            .events
            .iter()
            .filter(|event| matches!(event, Event::Searched { failed: true, .. } | Event::Opened { failed: true, .. }))
            .count();
        let mut findings = sources;
        findings.extend(near.filter(|answer| answer.passage.coverage > 0.4).map(|answer| self.source(&answer)));
        wording::failure(&Failure {
            queries: &self.searched,
            read: &self.titles_read(),
            errors,
            findings: &findings,
            candidate: answer.as_ref().map(|answer| answer.text.as_str()),
        })
    }
}

/// A call that owns its parts.
#[derive(Debug, Clone)]
struct OwnedCall {
    tool: Tool,
    arguments: Map<String, Value>,
    say: String,
}
