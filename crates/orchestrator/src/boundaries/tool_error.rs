//! Whether a result says that the call should be written again rather than read.

use core_protocol::ToolResult;
use serde_json::Value;

/// What is wrong, in words; none where the result is to be kept.
///
/// `curable` is the tool layer's word that rewriting the call can cure the error. A `google_search` without
/// organic entries is no error to the server, yet another query is worth more than an empty page.
#[must_use]
pub fn detect(tool: &str, result: &ToolResult, curable: bool) -> Option<String> {
    if curable {
        return Some(first_line(&result.joined_text()));
    }
    (tool == "google_search" && is_empty_search(result)).then(|| "the search found nothing".to_owned())
}

fn is_empty_search(result: &ToolResult) -> bool {
    if result.is_error {
        return false;
    }
    let Ok(Value::Object(page)) = serde_json::from_str::<Value>(&result.joined_text()) else { return false };
    match page.get("organic") {
        Some(Value::Array(entries)) => entries.is_empty(),
        Some(_) => false,
        None => !page.contains_key("error"),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (tool, result, curable, expected) in [
            ("any", ToolResult::error("Unknown tool: x\nmore"), true, Some("Unknown tool: x")),
            ("any", ToolResult::error("HTTP 500"), false, None),
            (
                "google_search",
                ToolResult::text(r#"{"organic": []}"#),
                false,
                Some("the search found nothing"),
            ),
            (
                "google_search",
                ToolResult::text(r#"{"searchParameters": {}}"#),
                false,
                Some("the search found nothing"),
            ),
            ("google_search", ToolResult::text(r#"{"organic": [{"title": "x"}]}"#), false, None),
            ("google_search", ToolResult::text(r#"{"error": "no key"}"#), false, None),
            ("google_search", ToolResult::text("plain text"), false, None),
            ("google_search", ToolResult::error(r#"{"organic": []}"#), false, None),
            ("search_library", ToolResult::text(r#"{"organic": []}"#), false, None),
        ] {
            assert_eq!(detect(tool, &result, curable).as_deref(), expected, "{tool} {result:?}");
        }
    }
}
