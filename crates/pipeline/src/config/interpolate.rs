//! `${…}` inside values, and `???`.
//!
//! Decides what can stand in a value: `${env:NAME}`, `${env:NAME,default}` and Hydra's `${oc.env:…}`, which mean the
//! same; `\${` is the two characters. A variable that is empty counts as not set. Only the values that hold in the
//! end are resolved, so a file may name variables that nobody needs.

use std::collections::BTreeMap;

use super::node::{Mark, Node, NodeValue, Scalar, Step};

/// Defaults within defaults.
const MAX_DEPTH: usize = 8;
/// Bytes that one value may grow to.
const MAX_LENGTH: usize = 1024 * 1024;

/// A value that cannot be resolved.
pub(crate) struct Unresolved {
    pub(crate) path: Vec<Step>,
    pub(crate) mark: Mark,
    pub(crate) problem: Trouble,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Trouble {
    /// `???`: to be given by the user.
    Mandatory,
    /// The variable is not set, or (true) is set and empty.
    NotSet { variable: String, empty: bool },
    /// Not an interpolation that is known here.
    Malformed { message: String },
}

/// Resolves every value of a tree in place.
pub(crate) fn resolve(node: &mut Node, environment: &BTreeMap<String, String>) -> Vec<Unresolved> {
    let mut unresolved = Vec::new();
    walk(node, environment, &mut Vec::new(), &mut unresolved);
    unresolved
}

/// Whether a scalar has to be resolved before it can be read.
pub(crate) fn is_open(scalar: &Scalar) -> bool {
    scalar.text.contains("${") || scalar.text == "???"
}

fn walk(
    node: &mut Node,
    environment: &BTreeMap<String, String>,
    path: &mut Vec<Step>,
    unresolved: &mut Vec<Unresolved>,
) {
    match &mut node.value {
        NodeValue::Scalar(scalar) if is_open(scalar) => match expand(scalar, environment) {
            Ok(expanded) => *scalar = expanded,
            Err(problem) => unresolved.push(Unresolved { path: path.clone(), mark: node.mark, problem }),
        },
        NodeValue::Scalar(_) => {}
        NodeValue::List(list) => {
            for (index, item) in list.items.iter_mut().enumerate() {
                path.push(Step::Index(index));
                walk(item, environment, path, unresolved);
                path.pop();
            }
        }
        NodeValue::Map(entries) => {
            for entry in entries {
                path.push(Step::Key(entry.key.clone()));
                walk(&mut entry.node, environment, path, unresolved);
                path.pop();
            }
        }
    }
}

fn expand(scalar: &Scalar, environment: &BTreeMap<String, String>) -> Result<Scalar, Trouble> {
    if scalar.text == "???" {
        return Err(Trouble::Mandatory);
    }
    let mut expander = Expander { environment, variables: Vec::new() };
    let text = expander.text(&scalar.text, 0)?;
    // `"${env:TURNS}"` is quoted for YAML's sake and still may be a number.
    let quoted = scalar.quoted && expander.variables.is_empty();
    Ok(Scalar { text, quoted, variables: expander.variables })
}

struct Expander<'a> {
    environment: &'a BTreeMap<String, String>,
    variables: Vec<String>,
}

impl Expander<'_> {
    fn text(&mut self, text: &str, depth: usize) -> Result<String, Trouble> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('\\') {
                out.push_str(&rest[..at - 1]);
                out.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            out.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let Some(end) = closing(inner) else {
                return Err(malformed("a `${` is not closed with `}`"));
            };
            out.push_str(&self.one(&inner[..end], depth)?);
            if out.len() > MAX_LENGTH {
                return Err(malformed("the value grows without end"));
            }
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// What stands between the braces.
    fn one(&mut self, inner: &str, depth: usize) -> Result<String, Trouble> {
        if depth >= MAX_DEPTH {
            return Err(malformed(&format!("defaults stand within defaults more than {MAX_DEPTH} deep")));
        }
        let arguments = match inner.split_once(':') {
            Some(("env" | "oc.env", arguments)) => arguments,
            Some((other, _)) => {
                return Err(malformed(&format!(
                    "`{}` is no source of values; `env` is the only one",
                    other.trim()
                )));
            }
            None => {
                return Err(malformed(&format!(
                    "`${{{inner}}}` names no source; values of other keys cannot be used"
                )));
            }
        };
        let (variable, default) = match arguments.split_once(',') {
            Some((variable, default)) => (variable.trim(), Some(default.trim())),
            None => (arguments.trim(), None),
        };
        if variable.is_empty() || variable.contains(['$', '{', '}', '=', ' ']) {
            return Err(malformed("the name of the variable is missing or is none"));
        }
        self.variables.push(variable.to_owned());
        match (self.environment.get(variable).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(default)) => self.text(default, depth + 1).map(|text| unquoted(&text)),
            (None, None) => {
                let empty = self.environment.contains_key(variable);
                Err(Trouble::NotSet { variable: variable.to_owned(), empty })
            }
        }
    }
}

/// The byte of the `}` that closes an open `${`.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A default may stand in quotes.
fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

fn malformed(message: &str) -> Trouble {
    Trouble::Malformed { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Scalar, Trouble> {
        let environment = [("NAME", "value"), ("TURNS", "12"), ("EMPTY", ""), ("ODD", "${env:NAME}")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        expand(&Scalar { text: text.to_owned(), quoted: true, variables: Vec::new() }, &environment)
    }

    #[test]
    fn values_are_filled_in() {
        for (text, expected) in [
            ("${env:NAME}", "value"),
            ("${oc.env:NAME}", "value"),
            ("http://${env:NAME}:80/${env:TURNS}", "http://value:80/12"),
            ("${env:NONE,fallback}", "fallback"),
            ("${env:NONE, \"quoted\"}", "quoted"),
            ("${oc.env:NONE,''}", ""),
            ("${env:NONE,}", ""),
            ("${env:EMPTY,fallback}", "fallback"),
            ("${env:NONE,${env:NAME}}", "value"),
            ("${env:NONE,${env:NEITHER,\"\"}}", ""),
            ("${env:NONE,http://a:1/b,c}", "http://a:1/b,c"),
            ("\\${env:NAME}", "${env:NAME}"),
            ("${env:ODD}", "${env:NAME}"),
            ("$NAME {}", "$NAME {}"),
        ] {
            assert_eq!(expanded(text).map(|scalar| scalar.text).ok().as_deref(), Some(expected), "{text}");
        }
        assert!(!expanded("${env:TURNS}").is_ok_and(|scalar| scalar.quoted));
    }

    #[test]
    fn what_cannot_be_filled_in() {
        let trouble = |text: &str| expanded(text).map(|scalar| scalar.text).unwrap_err();
        assert_eq!(trouble("${env:NONE}"), Trouble::NotSet { variable: "NONE".to_owned(), empty: false });
        assert_eq!(trouble("a${env:EMPTY}"), Trouble::NotSet { variable: "EMPTY".to_owned(), empty: true });
        assert_eq!(trouble("???"), Trouble::Mandatory);
        for (text, words) in [
            ("${env:NAME", "not closed"),
            ("${llm.model_name}", "names no source"),
            ("${file:/etc/passwd}", "`file` is no source"),
            ("${env:}", "missing"),
            ("${env:a b}", "missing"),
            (&"${env:N,".repeat(20), "not closed"),
            (&format!("{}{}", "${env:N,".repeat(20), "}".repeat(20)), "deep"),
        ] {
            let Trouble::Malformed { message } = trouble(text) else { panic!("{text}") };
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
