//! Makes data of what servers send: no control characters, no tags of the tool protocol.
//!
//! Decides which characters never reach a model or a terminal. Everything here takes time linear in
//! the text, whatever the text is.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};

/// Removes terminal sequences, all control characters but newline and tab, and what is invisible and not part of any
/// script: marks that make text run the other way, so that it reads differently from what it says, and tag characters,
/// in which sentences can be hidden. Joiners and zero-width spaces stay, since scripts need them.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    // Most text holds nothing but these, which is quickly seen.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.as_bytes().iter().fold(true, |all, byte| all & is_plain(byte)) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(is_removed) else { return Cow::Borrowed(text) };
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(start) = next {
        cleaned.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[sequence_length(rest)..];
        next = rest.find(is_removed);
    }
    cleaned.push_str(rest);
    Cow::Owned(cleaned)
}

fn is_removed(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

/// Bytes of the terminal sequence that `text`, which starts with a control character, starts with;
/// of the character alone where it starts none that is complete.
///
/// No sequence reaches beyond the next control character, so that every byte is looked at twice at
/// most.
fn sequence_length(text: &str) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return 0 };
    let (kind, introducer) = match first {
        '\u{1b}' => match characters.next() {
            Some(kind) if kind.is_ascii() && !kind.is_ascii_control() => (kind, 2),
            _ => return 1,
        },
        '\u{9b}' => ('[', 2),
        '\u{9d}' => (']', 2),
        '\u{90}' => ('P', 2),
        other => return other.len_utf8(),
    };
    let body = &text[introducer..];
    match kind {
        '[' => control_sequence(body).map_or(introducer, |length| introducer + length),
        ']' | 'P' | 'X' | '^' | '_' => string_sequence(body).map_or(introducer, |length| introducer + length),
        // Intermediate bytes select a character set and the like; one final byte follows.
        ' '..='/' => {
            introducer + body.bytes().next().map_or(0, |byte| usize::from((b'0'..=b'~').contains(&byte)))
        }
        _ => introducer,
    }
}

/// Parameters, intermediates and the final byte of a CSI sequence.
fn control_sequence(body: &str) -> Option<usize> {
    let length = body.bytes().position(|byte| !(b' '..=b'?').contains(&byte))?;
    (b'@'..=b'~').contains(&body.as_bytes()[length]).then_some(length + 1)
}

/// The text of an OSC, DCS, SOS, PM or APC sequence and what ends it.
fn string_sequence(body: &str) -> Option<usize> {
    let end = body.find(char::is_control)?;
    let tail = &body[end..];
    [("\u{7}", 1), ("\u{1b}\\", 2), ("\u{9c}", 2)]
        .into_iter()
        .find_map(|(end_mark, length)| tail.starts_with(end_mark).then_some(end + length))
}

/// Turns the `<` of given tags into `&lt;`.
#[derive(Debug, Default)]
pub(crate) struct Neutraliser {
    tags: Option<AhoCorasick>,
    /// For each pattern, whether it is a bare name, which must not go on after the match.
    is_name: Vec<bool>,
}

impl Neutraliser {
    /// For tags as [`super::ManagerOptions::neutralise_tags`] describes them.
    pub(crate) fn new(tags: &[String]) -> Self {
        let mut patterns = Vec::new();
        let mut is_name = Vec::new();
        for tag in tags.iter().filter(|tag| !tag.is_empty() && *tag != "<") {
            if tag.starts_with('<') {
                patterns.push(tag.clone());
                is_name.push(false);
            } else {
                patterns.push(format!("<{tag}"));
                patterns.push(format!("</{tag}"));
                is_name.extend([true, true]);
            }
        }
        if patterns.is_empty() {
            return Self::default();
        }
        let tags = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .inspect_err(|error| tracing::error!(%error, "tags in tool output are not neutralised"))
            .ok();
        Self { tags, is_name }
    }

    /// The text with the tags made harmless.
    pub(crate) fn neutralise<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        let Some(tags) = &self.tags else { return text };
        let mut changed = String::new();
        let mut copied = 0;
        for found in tags.find_iter(text.as_ref()) {
            let goes_on = text.as_bytes().get(found.end()).is_some_and(|byte| is_name_byte(*byte));
            if goes_on && self.is_name.get(found.pattern().as_usize()) == Some(&true) {
                continue;
            }
            changed.push_str(&text[copied..found.start()]);
            changed.push_str("&lt;");
            copied = found.start() + 1;
        }
        if copied == 0 {
            return text;
        }
        changed.push_str(&text[copied..]);
        Cow::Owned(changed)
    }

    /// Text of a server as it may be shown.
    pub(crate) fn data(&self, text: &str) -> String {
        self.neutralise(clean(text)).into_owned()
    }

    /// All text of a JSON value as it may be shown, keys included.
    pub(crate) fn data_of_json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::String(text) => *text = self.data(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.data_of_json(item)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    self.data_of_json(&mut value);
                    fields.insert(self.data(&key), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_terminal_sequences_go() {
        for (text, expected) in [
            ("plain\ttext\nline ä 漢", "plain\ttext\nline ä 漢"),
            ("a\r\nb\0c\u{7}d\u{7f}e", "a\nbcde"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}1mred\u{85}x", "redx"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Btext\u{1b}=x\u{1b}cy", "textxy"),
            ("\u{1b}Pdevice\u{9c}text", "text"),
            // What is not complete loses its introducer only.
            ("\u{1b}]0;never ended", "0;never ended"),
            ("\u{1b}]0;one\u{1b}[0mtwo", "0;onetwo"),
            ("\u{1b}[12", "12"),
            ("\u{1b}[ä", "ä"),
            ("\u{1b}", ""),
            ("\u{1b}ä", "ä"),
            ("\u{1b}\u{1b}[0mx", "x"),
            // Text that runs the other way, and text that nobody sees.
            ("a\u{202e}txt.exe\u{202c} \u{2066}b\u{2069}", "atxt.exe b"),
            ("x\u{e0041}\u{e007f}y", "xy"),
            ("می\u{200c}خواهم 👩\u{200d}🔬 ไทย\u{200b}คำ", "می\u{200c}خواهم 👩\u{200d}🔬 ไทย\u{200b}คำ"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn protocol_tags_become_harmless() {
        let tags = ["<use_mcp_tool>", "</use_mcp_tool>", "<function=", "think"].map(String::from);
        let neutraliser = Neutraliser::new(&tags);
        for (text, expected) in [
            ("a < b <p>", "a < b <p>"),
            ("<use_mcp_tool>x</use_mcp_tool>", "&lt;use_mcp_tool>x&lt;/use_mcp_tool>"),
            ("<USE_mcp_tool>", "&lt;USE_mcp_tool>"),
            ("<<function=f>", "<&lt;function=f>"),
            ("<think></think ><thinking>", "&lt;think>&lt;/think ><thinking>"),
            ("<think", "&lt;think"),
            ("<use_mcp\u{0}_tool>", "&lt;use_mcp_tool>"),
            ("<use_\u{1b}[0mmcp_tool>", "&lt;use_mcp_tool>"),
        ] {
            assert_eq!(neutraliser.data(text), expected, "{text:?}");
        }
        assert_eq!(Neutraliser::new(&[]).data("<use_mcp_tool>"), "<use_mcp_tool>");
    }

    #[test]
    fn hostile_text_takes_linear_time() {
        let neutraliser = Neutraliser::new(&["<use_mcp_tool>".to_owned()]);
        let length = |piece: &str| neutraliser.data(&piece.repeat(1_000_000 / piece.len())).len();
        // Each of these would take hours where the time is quadratic.
        for piece in ["\u{1b}]", "\u{1b}[", "\u{1b}[1;", "\u{1b}P0", "<use_mcp_tool", "\u{1b}"] {
            assert!(length(piece) <= 1_000_000, "{piece:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_unwanted_is_left(text in "[a<>\\x1b\\x07\\x00\\n\\]\\[;m0(\\\\\u{9b}\u{9c}\u{9d}ä]{0,40}") {
            let cleaned = clean(&text);
            proptest::prop_assert!(!cleaned.contains(is_removed), "{cleaned:?}");
            proptest::prop_assert_eq!(clean(&cleaned), cleaned.as_ref());
            let tags = ["<a>".to_owned(), "a".to_owned()];
            let data = Neutraliser::new(&tags).data(&text);
            proptest::prop_assert!(!data.contains("<a>"), "{data:?}");
        }
    }
}
