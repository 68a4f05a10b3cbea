//! The documents that the history has shown.
//!
//! Decides how results, search hits and the reader's own notes come together to one document each.

use super::super::evidence::Document;
use super::super::history::Event;
use super::super::wording::Note;
use super::State;

impl State {
    /// Collects the documents: what was read, what searches showed, what notes kept of results that are gone.
    pub(super) fn gather(&mut self) {
        let mut pieces: Vec<(String, String, String, usize, bool)> = Vec::new();
        let add = |pieces: &mut Vec<(String, String, String, usize, bool)>,
                   place: &str,
                   title: &str,
                   text: &str,
                   rank: usize,
                   read: bool| {
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
}
