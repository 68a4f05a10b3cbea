//! How a history is changed for the requests that end a pass: what a prompt replaces, and what is dropped
//! when the request does not fit.
//!
//! Decides shapes only; the prompts' texts and the ids come from the caller.

use std::sync::Arc;

use core_protocol::{Message, Role};
use serde::{Deserialize, Serialize};

/// A message with its id in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The id that the log knows it by.
    pub id: String,
    /// The message; shared with every request that shows it.
    pub message: Arc<Message>,
    /// Whether it is shown in full whatever else is left out, and does not count as a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl HistoryEntry {
    /// An ordinary message.
    #[must_use]
    pub const fn new(id: String, message: Arc<Message>) -> Self {
        Self { id, message, pinned: false }
    }

    /// Whether the entry is of the given role.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.message.role == role
    }
}

/// Removes a user message at the end, which a prompt is to replace: two user messages in a row break the
/// chat templates of some models. Tool messages stay, because every native call must keep its result.
pub fn drop_trailing_user(history: &mut Vec<HistoryEntry>) {
    if history.last().is_some_and(|entry| entry.is(Role::User)) {
        history.pop();
    }
}

/// Makes a request that did not fit smaller: the last assistant message goes, with the results after it, and
/// with a user message before it that the prompt (at the end, kept) would follow. False: nothing to drop.
pub fn drop_last_exchange(history: &mut Vec<HistoryEntry>) -> bool {
    let Some(prompt) = history.pop() else { return false };
    let Some(assistant) = history.iter().rposition(|entry| entry.is(Role::Assistant)) else {
        history.push(prompt);
        return false;
    };
    history.truncate(assistant);
    drop_trailing_user(history);
    history.push(prompt);
    true
}

/// Removes the last assistant message and everything after it. False: there is none.
pub fn drop_last_turn(history: &mut Vec<HistoryEntry>) -> bool {
    let Some(assistant) = history.iter().rposition(|entry| entry.is(Role::Assistant)) else {
        return false;
    };
    history.truncate(assistant);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(roles: &str) -> Vec<HistoryEntry> {
        roles
            .chars()
            .enumerate()
            .map(|(index, letter)| {
                let role = match letter {
                    'a' => Role::Assistant,
                    't' => Role::Tool,
                    _ => Role::User,
                };
                HistoryEntry::new(format!("{letter}{index}"), Arc::new(Message::text(role, "")))
            })
            .collect()
    }

    fn ids(history: &[HistoryEntry]) -> String {
        history.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shrinking_keeps_the_prompt_and_the_alternation() {
        for (roles, expected) in [
            ("uauap", Some("u0 a1 p4")),
            ("uap", Some("p2")),
            ("uattattp", Some("u0 a1 t2 t3 p7")),
            ("up", None),
            ("p", None),
        ] {
            let mut entries = history(roles);
            let before = ids(&entries);
            let shrunk = drop_last_exchange(&mut entries);
            assert_eq!(shrunk, expected.is_some(), "{roles}");
            assert_eq!(ids(&entries), expected.unwrap_or(&before), "{roles}");
        }
    }

    #[test]
    fn trailing_user_and_last_turn() {
        let mut entries = history("uau");
        drop_trailing_user(&mut entries);
        assert_eq!(ids(&entries), "u0 a1");
        drop_trailing_user(&mut entries);
        assert_eq!(ids(&entries), "u0 a1");
        let mut native = history("uatat");
        assert!(drop_last_turn(&mut native));
        assert_eq!(ids(&native), "u0 a1 t2");
        assert!(!drop_last_turn(&mut history("u")));
    }
}
