//! The arguments of a call: text in, a JSON object out.
//!
//! Decides the order in which readings are tried: strict JSON, then JSON5, then the repairer, and the
//! first that succeeds wins. Every step is bounded in depth and takes time linear in the text.
//!
//! Numbers: integers from −2⁶³ to 2⁶⁴−1 are kept exactly; larger integers and all fractions become the
//! nearest 64-bit float. A number beyond the range of those (`1e999`) is kept as a string, by the
//! repairer. Of duplicate keys the last one wins.

mod json5_step;
mod repair;
mod strings;

use serde_json::{Map, Value};

use crate::ArgumentRepair;

pub(crate) use repair::repair_value;

/// Longest text that is read as arguments, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of arguments; the limit of `serde_json`, and so of everyone who reads them later.
pub const MAX_ARGUMENT_DEPTH: usize = 127;

/// Arguments, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedArguments {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// What it took to read them; none for strict JSON.
    pub repaired: Option<ArgumentRepair>,
}

/// Why a text cannot be read as arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// It is JSON, or can be mended to be, but not an object.
    #[error("the arguments are {found}, not a JSON object: write them as {{\"name\": value, …}}")]
    NotAnObject {
        /// What they are, with its article.
        found: &'static str,
        /// The text.
        raw: String,
    },
    /// It is not JSON and cannot be mended.
    #[error("the arguments are not JSON ({problem} at line {line}, column {column}) and cannot be mended")]
    Unreadable {
        /// What the strict reader says.
        problem: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// The text.
        raw: String,
    },
    /// Brackets are nested too deep.
    #[error("the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels: flatten them")]
    TooDeep {
        /// The text.
        raw: String,
    },
    /// It is too long.
    #[error("the arguments are {bytes} bytes long, more than the {MAX_ARGUMENT_BYTES} allowed")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
}

impl ArgumentError {
    /// A short name for logs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotAnObject { .. } => "not_an_object",
            Self::Unreadable { .. } => "unreadable",
            Self::TooDeep { .. } => "too_deep",
            Self::TooLarge { .. } => "too_large",
        }
    }

    /// Whether reading the same text again may succeed: never. The model may be asked again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::NotAnObject { .. }
            | Self::Unreadable { .. }
            | Self::TooDeep { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// The text that could not be read; empty where it was too long to keep.
    #[must_use]
    pub fn raw(&self) -> &str {
        match self {
            Self::NotAnObject { raw, .. } | Self::Unreadable { raw, .. } | Self::TooDeep { raw } => raw,
            Self::TooLarge { .. } => "",
        }
    }
}

/// Reads the arguments of a call.
///
/// Nothing, `null` and `""` are no arguments: an empty object. A JSON string that holds an object is
/// opened. Closing brackets that are missing are added, so this is for the arguments of a call that is
/// known to be whole.
///
/// ```
/// use core_protocol::{ArgumentRepair, parse_arguments};
///
/// let read = parse_arguments(r#"{"path": "C:\Windows", "deep": True,}"#)?;
/// assert_eq!(read.arguments["path"], r"C:\Windows");
/// assert_eq!(read.repaired, Some(ArgumentRepair::Repaired));
/// # Ok::<(), core_protocol::ArgumentError>(())
/// ```
///
/// # Errors
/// [`ArgumentError`], with the text, where it is no object and cannot be mended to one.
pub fn parse_arguments(raw: &str) -> Result<ParsedArguments, ArgumentError> {
    if raw.len() > MAX_ARGUMENT_BYTES {
        return Err(ArgumentError::TooLarge { bytes: raw.len() });
    }
    let text = raw.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Ok(ParsedArguments { arguments: Map::new(), repaired: None });
    }
    let (value, repaired) = read_value(text)?;
    match value {
        Value::String(inner) => open_string(&inner, text, repaired),
        value => into_object(value, text, repaired),
    }
}

/// One JSON value of any kind, by the same steps.
pub(crate) fn read_value(text: &str) -> Result<(Value, Option<ArgumentRepair>), ArgumentError> {
    let error = match serde_json::from_str::<Value>(text) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    if error.to_string().starts_with("recursion limit exceeded") {
        return Err(ArgumentError::TooDeep { raw: text.to_owned() });
    }
    if let Some(value) = json5_step::read(text) {
        return Ok((value, Some(ArgumentRepair::Json5)));
    }
    match repair_value(text) {
        Ok(value) => Ok((value, Some(ArgumentRepair::Repaired))),
        Err(repair::Hopeless::TooDeep) => Err(ArgumentError::TooDeep { raw: text.to_owned() }),
        Err(repair::Hopeless::NoValue) => Err(unreadable(&error, text)),
    }
}

fn into_object(
    value: Value,
    raw: &str,
    repaired: Option<ArgumentRepair>,
) -> Result<ParsedArguments, ArgumentError> {
    let found = match value {
        Value::Object(arguments) => return Ok(ParsedArguments { arguments, repaired }),
        Value::Null => return Ok(ParsedArguments { arguments: Map::new(), repaired }),
        Value::Array(_) => "a list",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
    };
    Err(ArgumentError::NotAnObject { found, raw: raw.to_owned() })
}

/// A string that holds an object, as some models write the arguments.
fn open_string(
    inner: &str,
    raw: &str,
    outer: Option<ArgumentRepair>,
) -> Result<ParsedArguments, ArgumentError> {
    let text = inner.trim();
    if text.is_empty() {
        return Ok(ParsedArguments { arguments: Map::new(), repaired: outer });
    }
    match read_value(text) {
        Ok((Value::Object(arguments), repaired)) => {
            Ok(ParsedArguments { arguments, repaired: repaired.max(outer) })
        }
        Err(error @ ArgumentError::TooDeep { .. }) => Err(error),
        _ => Err(ArgumentError::NotAnObject { found: "a string", raw: raw.to_owned() }),
    }
}

fn unreadable(error: &serde_json::Error, raw: &str) -> ArgumentError {
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
    ArgumentError::Unreadable {
        problem,
        line: error.line().max(1),
        column: error.column().max(1),
        raw: raw.to_owned(),
    }
}
