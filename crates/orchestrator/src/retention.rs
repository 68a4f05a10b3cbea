//! Which messages a request shows in full. The stored history is never changed: the view is made anew for each
//! request, shares every message it shows, and lists the ids of those it leaves out, so that it can be rebuilt.

use std::sync::{Arc, LazyLock};

use answer_generator::HistoryEntry;
use core_protocol::{ContentBlock, Message, Role};

/// What stands in place of a result that is not sent.
pub const OMISSION_NOTICE: &str = "Tool result is omitted to save tokens.";

static OMITTED_USER: LazyLock<Arc<Message>> = LazyLock::new(|| Arc::new(Message::user(OMISSION_NOTICE)));

/// The messages of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// What is sent, in order.
    pub messages: Vec<Arc<Message>>,
    /// Ids of those messages.
    pub ids: Vec<String>,
    /// Ids among them whose content is the omission notice.
    pub omitted: Vec<String>,
}

/// The view of a history that keeps the newest `keep` results; negative keeps all.
///
/// Results are the user messages after the first and, with native calls, the tool messages of a turn taken together.
/// A prompt at the end (`prompt_last`) is one of them and counts, but is shown whatever `keep` is.
#[must_use]
pub fn view(history: &[&HistoryEntry], keep: i64, prompt_last: bool) -> View {
    let shown_from = usize::try_from(keep).ok().map(|keep| first_shown(history, keep));
    let mut view = View::default();
    view.messages.reserve(history.len());
    view.ids.reserve(history.len());
    for (index, entry) in history.iter().enumerate() {
        let is_prompt = prompt_last && index + 1 == history.len();
        let omit = !is_prompt && is_result(history, index) && shown_from.is_some_and(|first| index < first);
        view.ids.push(entry.id.clone());
        if omit {
            view.omitted.push(entry.id.clone());
            view.messages.push(omitted(&entry.message));
        } else {
            view.messages.push(Arc::clone(&entry.message));
        }
    }
    view
}

/// A message that may be omitted: a user message other than the first message and those that are pinned, or a tool
/// message.
fn is_result(history: &[&HistoryEntry], index: usize) -> bool {
    match history[index].message.role {
        Role::Tool => true,
        Role::User => index > 0 && !history[index].pinned,
        Role::System | Role::Assistant => false,
    }
}

/// The index from which results are shown: `keep` results back from the end, a user message and the tool messages of
/// one turn counting as one each.
fn first_shown(history: &[&HistoryEntry], keep: usize) -> usize {
    let mut first = history.len();
    let mut count = 0;
    for index in (1..history.len()).rev() {
        let continues_a_turn =
            history[index].is(Role::Tool) && history.get(index + 1).is_some_and(|next| next.is(Role::Tool));
        if is_result(history, index) && !continues_a_turn {
            count += 1;
        }
        if count > keep {
            break;
        }
        first = index;
    }
    first
}

/// Adds a hint to the last message where that is the user's, so that roles still alternate.
pub fn append_hint(messages: &mut Vec<Arc<Message>>, hint: &str) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            let mut message = (**last).clone();
            message.content.push(ContentBlock::text(hint));
            *last = Arc::new(message);
        }
        _ => messages.push(Arc::new(Message::user(hint))),
    }
}

/// A message as it is sent where its content is omitted.
#[must_use]
pub fn omitted(message: &Message) -> Arc<Message> {
    if message.role == Role::User {
        return Arc::clone(&OMITTED_USER);
    }
    Arc::new(Message {
        role: message.role,
        content: vec![ContentBlock::text(OMISSION_NOTICE)],
        tool_calls: Vec::new(),
        tool_call_id: message.tool_call_id.clone(),
        name: message.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u` user, `n` a pinned note, `a` assistant, `t` tool; the answer marks what is omitted by a dot.
    fn check(roles: &str, keep: i64, prompt_last: bool, expected: &str) {
        let history: Vec<HistoryEntry> = roles
            .chars()
            .enumerate()
            .map(|(index, letter)| {
                let role = match letter {
                    'a' => Role::Assistant,
                    't' => Role::Tool,
                    _ => Role::User,
                };
                let mut message = Message::text(role, "content");
                message.tool_call_id = (role == Role::Tool).then(|| format!("call_{index}"));
                let mut entry = HistoryEntry::new(index.to_string(), Arc::new(message));
                entry.pinned = letter == 'n';
                entry
            })
            .collect();
        let view = view(&history.iter().collect::<Vec<_>>(), keep, prompt_last);
        let shown: String = roles
            .chars()
            .zip(&view.messages)
            .map(|(letter, message)| if message.joined_text() == OMISSION_NOTICE { '.' } else { letter })
            .collect();
        assert_eq!(shown, expected, "{roles} keep {keep}");
        assert_eq!(view.ids.len(), history.len());
        assert_eq!(view.omitted.len(), expected.matches('.').count());
        for (entry, message) in history.iter().zip(&view.messages) {
            assert_eq!(entry.message.tool_call_id, message.tool_call_id);
        }
    }

    #[test]
    fn text_protocol() {
        check("uauauau", -1, false, "uauauau");
        check("uauauau", 5, false, "uauauau");
        check("uauauau", 2, false, "ua.auau");
        check("uauauau", 1, false, "ua.a.au");
        check("uauauau", 0, false, "ua.a.a.");
        check("u", 0, false, "u");
        check("", 3, false, "");
    }

    #[test]
    fn the_prompt_counts_and_is_shown() {
        check("uauaup", 2, true, "ua.aup");
        check("uauauap", 1, true, "ua.a.ap");
        check("uauauap", 0, true, "ua.a.ap");
        check("uauauap", 2, true, "ua.auap");
        check("p", 0, true, "p");
    }

    #[test]
    fn native_protocol_counts_turns() {
        check("uattatatt", 2, false, "ua..atatt");
        check("uattatatt", 1, false, "ua..a.att");
        check("uattatatt", 0, false, "ua..a.a..");
        check("uattatattp", 1, true, "ua..a.a..p");
        check("uattatattp", 2, true, "ua..a.attp");
        check("uattatattp", 0, true, "ua..a.a..p");
    }

    #[test]
    fn notes_are_neither_counted_nor_omitted() {
        check("uanauau", 1, false, "uana.au");
        check("uanau", 0, false, "uana.");
        check("uanatt", 0, false, "uana..");
        check("uanaup", 1, true, "uana.p");
    }

    #[test]
    fn shown_messages_are_shared() {
        let message = Arc::new(Message::user("task"));
        let entry = HistoryEntry::new("m1".into(), Arc::clone(&message));
        assert!(Arc::ptr_eq(&view(&[&entry], 5, false).messages[0], &message));
    }
}
