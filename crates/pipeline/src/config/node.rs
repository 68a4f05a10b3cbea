//! A configuration value before it has a type: text, lists and maps, each with the place it was written at.
//!
//! Decides how a scalar reads where nobody asks for a type (YAML 1.2 core schema). What type a key has is left to
//! the typed reader, which sees the text as it was written: a model called `1.10` stays `1.10`.

use serde_json::Number;

/// Where something was written: a layer, and the line and column in it, both from 1 (0: the layer has no lines).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) layer: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// One value with its place. There is no `Debug`: the text may be a secret.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) mark: Mark,
    pub(crate) value: NodeValue,
}

#[derive(Clone)]
pub(crate) enum NodeValue {
    Scalar(Scalar),
    List(List),
    Map(Vec<Entry>),
}

/// Text, a number, true, false or nothing: which of them is for the reader to say.
#[derive(Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Quoted text is text and nothing else.
    pub(crate) quoted: bool,
    /// The environment variables that the text was made from.
    pub(crate) variables: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct List {
    pub(crate) items: Vec<Node>,
    /// The text that the list was read from, where a reader may want that instead (environment variables).
    pub(crate) text: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) mark: Mark,
    pub(crate) node: Node,
}

/// What a scalar without an expected type is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Number(Number),
    Text,
}

/// A step from a value to one of its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// `agent.main_agent.tools[1]`; a key with a dot or a blank in it is quoted.
pub(crate) fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                if key.is_empty() || key.chars().any(|c| c == '.' || c == '[' || c.is_whitespace()) {
                    text.push_str(&format!("{key:?}"));
                } else {
                    text.push_str(key);
                }
            }
        }
    }
    text
}

impl Node {
    pub(crate) fn scalar(text: impl Into<String>, quoted: bool, mark: Mark) -> Self {
        let scalar = Scalar { text: text.into(), quoted, variables: Vec::new() };
        Self { mark, value: NodeValue::Scalar(scalar) }
    }

    pub(crate) fn null(mark: Mark) -> Self {
        Self::scalar("", false, mark)
    }

    pub(crate) fn map(entries: Vec<Entry>, mark: Mark) -> Self {
        Self { mark, value: NodeValue::Map(entries) }
    }

    /// The value wrapped into maps, one for each key.
    pub(crate) fn nested(self, keys: &[String]) -> Self {
        keys.iter().rev().fold(self, |node, key| {
            let mark = node.mark;
            Self::map(vec![Entry { key: key.clone(), mark, node }], mark)
        })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The part that a path leads to.
    pub(crate) fn find(&self, path: &[Step]) -> Option<&Self> {
        path.iter().try_fold(self, |node, step| match (step, &node.value) {
            (Step::Key(key), NodeValue::Map(_)) => node.get(key).map(|entry| &entry.node),
            (Step::Index(index), NodeValue::List(list)) => list.items.get(*index),
            _ => None,
        })
    }

    /// Takes the part out that a path leads to.
    pub(crate) fn remove(&mut self, path: &[Step]) -> Option<Entry> {
        let (last, parents) = path.split_last()?;
        let mut node = self;
        for step in parents {
            node = match (step, &mut node.value) {
                (Step::Key(key), NodeValue::Map(entries)) => {
                    &mut entries.iter_mut().find(|entry| entry.key == *key)?.node
                }
                (Step::Index(index), NodeValue::List(list)) => list.items.get_mut(*index)?,
                _ => return None,
            };
        }
        match (last, &mut node.value) {
            (Step::Key(key), NodeValue::Map(entries)) => {
                let at = entries.iter().position(|entry| entry.key == *key)?;
                Some(entries.remove(at))
            }
            (Step::Index(index), NodeValue::List(list)) if *index < list.items.len() => {
                let node = list.items.remove(*index);
                Some(Entry { key: index.to_string(), mark: node.mark, node })
            }
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, NodeValue::Scalar(scalar) if scalar.plain() == Plain::Null)
    }

    /// The text of a scalar that is not null.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar(scalar) if scalar.plain() != Plain::Null => Some(&scalar.text),
            _ => None,
        }
    }

    /// `a list`, `a map`, `the text …`: for messages. Never used where the value may be a secret.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Map(_) => "keys and values".to_owned(),
            NodeValue::List(_) => "a list".to_owned(),
            NodeValue::Scalar(scalar) => match scalar.plain() {
                Plain::Null => "nothing".to_owned(),
                Plain::Bool(_) | Plain::Number(_) => format!("`{}`", scalar.text),
                Plain::Text if scalar.quoted => format!("the quoted text \"{}\"", shortened(&scalar.text)),
                Plain::Text => format!("the text `{}`", shortened(&scalar.text)),
            },
        }
    }

    /// Puts every mark of the value into one layer.
    pub(crate) fn set_layer(&mut self, layer: u32) {
        self.mark.layer = layer;
        match &mut self.value {
            NodeValue::Scalar(_) => {}
            NodeValue::List(list) => list.items.iter_mut().for_each(|item| item.set_layer(layer)),
            NodeValue::Map(entries) => {
                for entry in entries {
                    entry.mark.layer = layer;
                    entry.node.set_layer(layer);
                }
            }
        }
    }
}

impl Scalar {
    /// What the text is by itself: null, true or false, a number, or text.
    pub(crate) fn plain(&self) -> Plain {
        if self.quoted {
            return Plain::Text;
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
            "true" | "True" | "TRUE" => Plain::Bool(true),
            "false" | "False" | "FALSE" => Plain::Bool(false),
            text => match number(text) {
                Some(number) => Plain::Number(number),
                None => Plain::Text,
            },
        }
    }

    /// The text as a truth value, where one is expected: YAML 1.1's words, too, as Python's readers take them.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        if self.quoted {
            return None;
        }
        match self.text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// The text as a whole number, where one is expected.
    pub(crate) fn as_integer(&self) -> Option<i128> {
        if self.quoted { None } else { integer(&self.text) }
    }

    /// The text as a finite number, where one is expected.
    pub(crate) fn as_float(&self) -> Option<f64> {
        if self.quoted {
            return None;
        }
        if let Some(integer) = integer(&self.text) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a decimal text would be rounded in the same way"
            )]
            return Some(integer as f64);
        }
        float(&self.text)
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(integer) = integer(text) {
        return i64::try_from(integer)
            .map(Number::from)
            .or_else(|_| u64::try_from(integer).map(Number::from))
            .ok();
    }
    float(text).and_then(Number::from_f64)
}

/// Decimal (`1_000` too), `0x` and `0o`.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        _ => (10, digits),
    };
    let well_formed = digits.starts_with(|c: char| c.is_digit(radix))
        && digits.ends_with(|c: char| c.is_digit(radix))
        && digits.chars().all(|c| c == '_' || c.is_digit(radix));
    if !well_formed || digits.len() > 40 {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -value } else { value })
}

/// `1.5`, `.5`, `1e-3`; neither infinities nor `nan`, which no key here has a use for.
fn float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let well_formed = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().any(|c| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+'));
    if !well_formed {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The first 60 characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let scalar = Scalar { text: text.to_owned(), quoted: false, variables: Vec::new() };
        assert_eq!(format!("{:?}", scalar.plain()), expected, "{text}");
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for text in ["", "~", "null", "NULL"] {
            check(text, "Null");
        }
        check("true", "Bool(true)");
        check("False", "Bool(false)");
        for (text, number) in [("1", "1"), ("-3", "-3"), ("0x1f", "31"), ("0o17", "15"), ("1_000", "1000")] {
            check(text, &format!("Number(Number({number}))"));
        }
        check("1.10", "Number(Number(1.1))");
        check("1e3", "Number(Number(1000.0))");
        check("18446744073709551615", "Number(Number(18446744073709551615))");
        for text in
            ["yes", "1.2.3", "1_", "_1", "0x", "-", ".", "e5", "nan", ".inf", "1e999", "12 monkeys", "é1"]
        {
            check(text, "Text");
        }
    }

    #[test]
    fn paths_are_written_as_they_are_set() {
        let key = |key: &str| Step::Key(key.to_owned());
        assert_eq!(path_text(&[key("a"), key("b-c"), Step::Index(2)]), "a.b-c[2]");
        assert_eq!(path_text(&[key("a.b"), key("c d")]), "\"a.b\".\"c d\"");
    }
}
