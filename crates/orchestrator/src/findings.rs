//! The store of findings: facts that the model notes with their source, kept apart from the history, so that neither
//! retention nor a summary nor a new pass loses them.
//!
//! Decides the two tools that write and read it, and what a fact must have. When it is shown is left to the machine.

use core_protocol::{ToolCall, ToolDefinition, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::machine::ToolReport;

/// The server that the tools belong to.
pub const SERVER: &str = "findings";
/// The tool that notes a fact.
pub const RECORD: &str = "record_finding";
/// The tool that lists them.
pub const LIST: &str = "list_findings";

/// Facts of one run at most; more are refused, so that the list can always be shown.
pub const MAX_FINDINGS: usize = 200;
/// Characters of one field at most.
pub const MAX_FIELD_CHARACTERS: usize = 2_000;

/// A fact with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is called; another fact of the same name takes its place.
    pub name: String,
    /// The fact.
    pub text: String,
    /// Where it was read.
    pub source: String,
    /// The words of the source; empty where none were given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

/// What a call did to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) name: String,
    pub(crate) replaced: bool,
}

/// The tools as the model is told them.
#[must_use]
pub fn definitions() -> [ToolDefinition; 2] {
    let text = |description: &str| json!({ "type": "string", "description": description });
    [
        ToolDefinition {
            server: SERVER.to_owned(),
            name: RECORD.to_owned(),
            description: "Note an established fact with its source. Older tool results drop out of this conversation; \
                          what is noted here stays, and it is before you when the final answer is asked for. Note \
                          facts that the answer may rest on as soon as you have them, also candidates that were \
                          ruled out."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "name": text("A short name for the fact; noting another one by the same name replaces it."),
                    "text": text("The fact itself, in one or two sentences."),
                    "source": text("Where it was read: the address or the document, exactly as the tool gave it."),
                    "quote": text("The words of the source that say so."),
                },
                "required": ["name", "text", "source"],
            }),
        },
        ToolDefinition {
            server: SERVER.to_owned(),
            name: LIST.to_owned(),
            description: "List all facts that were noted so far, with their sources and quotes.".to_owned(),
            input_schema: json!({ "type": "object", "properties": {} }),
        },
    ]
}

/// Puts a fact into the store; true where one of the same name was there.
pub(crate) fn note(store: &mut Vec<Finding>, finding: Finding) -> bool {
    match store.iter_mut().find(|known| known.name == finding.name) {
        Some(known) => {
            *known = finding;
            true
        }
        None => {
            store.push(finding);
            false
        }
    }
}

/// Carries out a call to one of the tools.
pub(crate) fn run(call: &ToolCall, store: &mut Vec<Finding>) -> (ToolReport, Option<Noted>) {
    match call.tool.as_str() {
        RECORD => match finding_of(call) {
            Ok(finding)
                if store.len() >= MAX_FINDINGS && !store.iter().any(|known| known.name == finding.name) =>
            {
                let text = format!(
                    "There are {MAX_FINDINGS} findings already. Note this one under the name of one that it replaces."
                );
                (report(ToolResult::error(text), Some("tool_error"), false), None)
            }
            Ok(finding) => {
                let name = finding.name.clone();
                let replaced = note(store, finding);
                let text = if replaced { "Noted in place of the earlier one: " } else { "Noted: " };
                let result = ToolResult::text(format!("{text}{name} ({} in all)", store.len()));
                (report(result, None, false), Some(Noted { name, replaced }))
            }
            Err(problem) => (report(ToolResult::error(problem), Some("invalid_arguments"), true), None),
        },
        LIST => {
            let result = if store.is_empty() {
                ToolResult::text("Nothing has been noted yet.")
            } else {
                ToolResult::text(listed(store))
            };
            (report(result, None, false), None)
        }
        other => {
            let text =
                format!("Unknown tool: {other}. The server `{SERVER}` offers the tools {RECORD} and {LIST}.");
            (report(ToolResult::error(text), Some("unknown_tool"), true), None)
        }
    }
}

/// All facts, one paragraph each.
fn listed(store: &[Finding]) -> String {
    let paragraphs: Vec<String> = store
        .iter()
        .map(|finding| {
            let mut text = format!("{}: {}\nSource: {}", finding.name, finding.text, finding.source);
            if !finding.quote.is_empty() {
                text.push_str(&format!("\nQuote: {}", finding.quote));
            }
            text
        })
        .collect();
    paragraphs.join("\n\n")
}

fn finding_of(call: &ToolCall) -> Result<Finding, String> {
    let field = |name: &str| match call.arguments.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => {
            let length = text.chars().count();
            if length > MAX_FIELD_CHARACTERS {
                return Err(format!(
                    "`{name}` has {length} characters; give the essence in at most {MAX_FIELD_CHARACTERS}."
                ));
            }
            Ok(text.trim().to_owned())
        }
        Some(Value::String(_)) | None => {
            Err(format!("`{name}` is missing. {RECORD} needs name, text and source."))
        }
        Some(_) => Err(format!("`{name}` must be a text.")),
    };
    let quote = match call.arguments.get("quote") {
        Some(Value::String(text)) if text.trim().is_empty() => String::new(),
        Some(_) => field("quote")?,
        None => String::new(),
    };
    Ok(Finding { name: field("name")?, text: field("text")?, source: field("source")?, quote })
}

fn report(result: ToolResult, error_kind: Option<&str>, curable: bool) -> ToolReport {
    ToolReport { result, error_kind: error_kind.map(str::to_owned), curable, ms: 0, sub_agent: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(store: &mut Vec<Finding>, tool: &str, arguments: Value, expected: &str, error: Option<&str>) {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let (report, _) = run(&ToolCall::new(SERVER, tool, arguments), store);
        let text = report.result.joined_text();
        assert!(text.contains(expected), "{text}");
        assert_eq!(report.error_kind.as_deref(), error, "{text}");
        assert_eq!(report.result.is_error, error.is_some());
    }

    #[test]
    fn facts_are_noted_replaced_and_listed() {
        let mut store = Vec::new();
        let fact = |name: &str, text: &str| json!({"name": name, "text": text, "source": "https://a.org"});
        check(&mut store, LIST, json!({}), "Nothing has been noted", None);
        check(&mut store, RECORD, fact("birth", "1570"), "Noted: birth (1 in all)", None);
        check(
            &mut store,
            RECORD,
            fact(" birth ", "1571"),
            "in place of the earlier one: birth (1 in all)",
            None,
        );
        let quoted = json!({"name": "place", "text": "Weil", "source": "b", "quote": "in Weil der Stadt"});
        check(&mut store, RECORD, quoted, "(2 in all)", None);
        check(&mut store, LIST, json!({}), "birth: 1571\nSource: https://a.org\n\nplace: Weil", None);
        check(&mut store, LIST, json!({}), "Quote: in Weil der Stadt", None);
    }

    #[test]
    fn what_cannot_be_noted_is_said() {
        let mut store = Vec::new();
        let invalid = Some("invalid_arguments");
        check(&mut store, RECORD, json!({"name": "a", "text": "b"}), "`source` is missing", invalid);
        check(
            &mut store,
            RECORD,
            json!({"name": " ", "text": "b", "source": "c"}),
            "`name` is missing",
            invalid,
        );
        check(&mut store, RECORD, json!({"name": 3, "text": "b", "source": "c"}), "must be a text", invalid);
        let long = "x".repeat(MAX_FIELD_CHARACTERS + 1);
        check(
            &mut store,
            RECORD,
            json!({"name": "a", "text": long, "source": "c"}),
            "2001 characters",
            invalid,
        );
        check(&mut store, "forget", json!({}), "Unknown tool: forget", Some("unknown_tool"));
        assert!(store.is_empty());
        for index in 0..MAX_FINDINGS {
            let fact = json!({"name": index.to_string(), "text": "t", "source": "s"});
            check(&mut store, RECORD, fact, "Noted", None);
        }
        let one_more = json!({"name": "more", "text": "t", "source": "s"});
        check(&mut store, RECORD, one_more, "200 findings already", Some("tool_error"));
        let again = json!({"name": "7", "text": "t", "source": "s"});
        check(&mut store, RECORD, again, "in place of the earlier one: 7", None);
    }
}
