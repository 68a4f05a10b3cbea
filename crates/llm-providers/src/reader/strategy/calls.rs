//! Which calls could be made next, and what is noted before one is made.
//!
//! Decides the order of reading and searching. Whether a call is made at all is left to `strategy`.

use super::super::answer::Answer;
use super::super::evidence::{Document, rank};
use super::super::history::Event;
use super::super::question::Question;
use super::super::search::{promise, queries, same_query};
use super::super::toolbox::Tool;
use super::super::wording::{self, Note, note_line};
use super::{NOTES, OwnedCall, READS_PER_SEARCH, State};

impl State {
    /// Calls that could be made now, best first.
    pub(super) fn candidates(
        &self,
        question: &Question,
        searches: usize,
        reads: usize,
        best: Option<&Answer>,
    ) -> Vec<OwnedCall> {
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
            if let Some(document) = best
                .filter(|answer| answer.confidence >= 0.5)
                .and_then(|answer| self.documents.get(answer.document))
            {
                // The document of the best sentence so far is worth opening above others.
                if let Some(entry) = unread.iter_mut().find(|(_, other)| other.id == document.id) {
                    entry.0 += 0.3;
                }
            }
            unread.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (worth, document) in unread.into_iter().take(4) {
                if worth > 0.35 {
                    reading.push(OwnedCall {
                        tool: tool.clone(),
                        arguments: tool.arguments(&document.id, &question.text),
                        say: format!(
                            "I read “{}”.",
                            wording::safe(if document.title.is_empty() {
                                &document.id
                            } else {
                                &document.title
                            })
                        ),
                    });
                }
            }
            reading.extend(self.further(tool, question));
        }
        if let Some(tool) = &self.tools.search {
            let mut list: Vec<String> =
                if tool.is_agent() { vec![question.text.clone()] } else { queries(question) };
            let turn = self.attempts() % list.len().max(1);
            list.rotate_left(turn);
            for query in list {
                if !self.searched.iter().any(|old| same_query(old, &query)) {
                    let say = format!("I search for “{}”.", wording::safe(&query));
                    searching.push(OwnedCall {
                        tool: tool.clone(),
                        arguments: tool.arguments(&query, &question.text),
                        say,
                    });
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
    pub(super) fn further(&self, tool: &Tool, question: &Question) -> Option<OwnedCall> {
        let last = self.history.events.iter().rev().find_map(|event| match event {
            Event::Opened { place, next: Some(next), title, .. } => Some((place, *next, title)),
            _ => None,
        })?;
        let arguments = tool.arguments_from(last.0, &question.text, last.1)?;
        Some(OwnedCall {
            tool: tool.clone(),
            arguments,
            say: format!("I read on in “{}”.", wording::safe(last.2)),
        })
    }

    /// Notes the best sentences that are not noted yet, and what is still to be read.
    pub(super) fn note_evidence(&mut self, question: &Question) {
        let mut added = 0;
        for passage in rank(question, &self.documents) {
            if added == NOTES || passage.coverage < 0.6 {
                break;
            }
            let Some(document) = self.documents.get(passage.document) else { continue };
            let Some(sentence) = document.sentences.get(passage.sentence) else { continue };
            let note = Note::Sentence {
                title: document.title.clone(),
                place: document.id.clone(),
                text: sentence.text.clone(),
            };
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
        self.new_notes
            .extend(unread.into_iter().take(2).filter(|(worth, _)| *worth > 0.5).map(|(_, note)| note));
    }

    pub(super) fn is_noted(&self, note: &Note) -> bool {
        let line = note_line(note);
        self.history.events.iter().any(|event| matches!(event, Event::Noted(old) if note_line(old) == line))
            || self.new_notes.iter().any(|old| note_line(old) == line)
    }
}
