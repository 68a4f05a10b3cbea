//! What is said at the end: the answer with its sources, that there is none, or why an attempt failed.
//!
//! Decides from what is known, without further calls.

use core_protocol::boxed_answer;

use super::super::answer::{Answer, ENOUGH, answers};
use super::super::decompose::nested;
use super::super::history::Event;
use super::super::question::analyse;
use super::super::toolbox::Tool;
use super::super::wording::{self, Failure, Source};
use super::{DEPTH, State};

impl State {
    /// The answer from what is known, without further calls: steps first, else the question as a whole.
    pub(super) fn conclude(&mut self) -> (Vec<Source>, Option<Answer>, Option<Answer>) {
        if let Some((answer, report)) = self.delegated() {
            let quoted =
                report.lines().map(str::trim).find(|line| !line.is_empty() && !line.contains("\\boxed"));
            let source = Source {
                sentence: quoted.unwrap_or_default().to_owned(),
                title: "report of the agent that was asked".to_owned(),
                place: String::new(),
            };
            return (vec![source], Some(Answer::bare(&answer)), None);
        }
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

    /// The answer in the last report of an agent that works by itself, with the report.
    pub(super) fn delegated(&self) -> Option<(String, &str)> {
        if !self.tools.search.as_ref().is_some_and(Tool::is_agent) {
            return None;
        }
        self.history.events.iter().rev().find_map(|event| match event {
            Event::Searched { text, .. } => boxed_answer(text).map(|answer| (answer, text.as_str())),
            _ => None,
        })
    }

    /// A nested question answered as a whole needs a little more than a plain one.
    pub(super) fn direct_floor(&self, text: &str) -> f32 {
        if nested(text).is_some() { ENOUGH + 0.02 } else { ENOUGH }
    }

    pub(super) fn conclude_steps(
        &self,
        text: &str,
        depth: usize,
        sources: &mut Vec<Source>,
    ) -> Option<Answer> {
        let parts = nested(text).filter(|_| depth < DEPTH);
        let Some(parts) = parts else {
            return if depth == 0 {
                None
            } else {
                answers(&analyse(text), &self.documents).into_iter().next()
            };
        };
        let inner = match self.step_answer(&parts.inner) {
            Some(Some(answer)) => {
                let question = analyse(&parts.inner);
                let found = answers(&question, &self.documents)
                    .into_iter()
                    .find(|candidate| candidate.text == answer);
                found.unwrap_or_else(|| Answer::bare(&answer))
            }
            Some(None) => return None,
            None => {
                let question = analyse(&parts.inner);
                answers(&question, &self.documents)
                    .into_iter()
                    .next()
                    .filter(|answer| answer.confidence >= ENOUGH)?
            }
        };
        if !inner.sentence.is_empty() {
            sources.push(self.source(&inner));
        }
        let outer = parts.outer(&inner.text);
        self.conclude_steps(&outer, depth + 1, sources)
    }

    pub(super) fn source(&self, answer: &Answer) -> Source {
        let document = self.documents.get(answer.document);
        Source {
            sentence: answer.sentence.clone(),
            title: document.map(|document| document.title.clone()).unwrap_or_default(),
            place: document.map(|document| document.id.clone()).unwrap_or_default(),
        }
    }

    pub(super) fn final_text(&mut self) -> String {
        let (sources, answer, near) = self.conclude();
        match answer {
            Some(answer) => wording::answer(&sources, &answer.text),
            None => {
                let nearest = near.filter(is_worth_quoting).map(|answer| self.source(&answer));
                wording::no_answer(&self.titles_read(), nearest.as_ref())
            }
        }
    }

    pub(super) fn titles_read(&self) -> Vec<String> {
        let mut titles: Vec<String> = Vec::new();
        for document in &self.documents {
            if self.opened.contains(&document.id) || document.id.is_empty() && !document.title.is_empty() {
                titles.push(if document.title.is_empty() {
                    document.id.clone()
                } else {
                    document.title.clone()
                });
            }
        }
        titles
    }

    pub(super) fn failure_text(&mut self) -> String {
        let (sources, answer, near) = self.conclude();
        let errors = self
            .history
            .events
            .iter()
            .filter(|event| {
                matches!(event, Event::Searched { failed: true, .. } | Event::Opened { failed: true, .. })
            })
            .count();
        let mut findings = sources;
        findings.extend(near.filter(is_worth_quoting).map(|answer| self.source(&answer)));
        wording::failure(&Failure {
            queries: &self.searched,
            read: &self.titles_read(),
            errors,
            findings: &findings,
            candidate: answer.as_ref().map(|answer| answer.text.as_str()),
        })
    }
}

/// Whether a sentence that is no answer is shown all the same: it covers the question, or stands in the right document.
fn is_worth_quoting(answer: &Answer) -> bool {
    let passage = &answer.passage;
    passage.coverage > 0.4 || passage.topic >= 0.4 && passage.lead >= 0.0
}
