//! Which query a call makes, so that the same one is not made twice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Arguments that identify a query, by tool. Several names in one group: whichever is there.
const IDENTIFYING: &[(&str, &[&[&str]])] = &[
    ("search_and_browse", &[&["subtask"]]),
    ("google_search", &[&["q"]]),
    ("sogou_search", &[&["q", "Query"]]),
    ("scrape_website", &[&["url"]]),
    ("scrape_and_extract_info", &[&["url"], &["info_to_extract"]]),
];

/// The identity of a call's query within one agent: server, tool and identifying arguments.
///
/// None where the tool has no identifying arguments or the call gives none of them: then nothing is checked.
#[must_use]
pub fn key(
    server: &str,
    tool: &str,
    arguments: &Map<String, Value>,
    configured: &BTreeMap<String, Vec<String>>,
) -> Option<String> {
    let mut values = Vec::new();
    if let Some(names) = configured.get(tool) {
        values.extend(names.iter().map(|name| arguments.get(name)));
    } else {
        let (_, groups) = IDENTIFYING.iter().find(|(name, _)| *name == tool)?;
        values.extend(groups.iter().map(|group| group.iter().find_map(|name| arguments.get(*name))));
    }
    if values.iter().all(Option::is_none) {
        return None;
    }
    let mut key = format!("{server}/{tool}");
    for value in values {
        key.push(' ');
        key.push_str(&value.unwrap_or(&Value::Null).to_string());
    }
    Some(key)
}

/// Which of a reply's queries were made before, or stand earlier in the same reply; by position.
#[must_use]
pub fn repeated<'a>(
    queries: impl IntoIterator<Item = Option<&'a str>>,
    used: &BTreeMap<String, u32>,
) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    queries
        .into_iter()
        .enumerate()
        .filter_map(|(index, query)| {
            let query = query?;
            (used.contains_key(query) || !seen.insert(query)).then_some(index)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(tool: &str, arguments: Value, expected: Option<&str>) {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let configured = BTreeMap::from([("lookup".to_owned(), vec!["term".to_owned()])]);
        assert_eq!(key("s", tool, &arguments, &configured).as_deref(), expected);
    }

    #[test]
    fn keys() {
        check("google_search", json!({"q": "a", "num": 10}), Some("s/google_search \"a\""));
        check("google_search", json!({"num": 10}), None);
        check("sogou_search", json!({"q": "a"}), Some("s/sogou_search \"a\""));
        check("sogou_search", json!({"Query": "a"}), Some("s/sogou_search \"a\""));
        check("scrape_website", json!({"url": "u"}), Some("s/scrape_website \"u\""));
        check(
            "scrape_and_extract_info",
            json!({"url": "u", "info_to_extract": "i"}),
            Some("s/scrape_and_extract_info \"u\" \"i\""),
        );
        check("scrape_and_extract_info", json!({"url": "u"}), Some("s/scrape_and_extract_info \"u\" null"));
        check("search_and_browse", json!({"subtask": "t"}), Some("s/search_and_browse \"t\""));
        check("run_python_code", json!({"code_block": "1"}), None);
        check("lookup", json!({"term": 3}), Some("s/lookup 3"));
    }

    #[test]
    fn values_cannot_be_confused() {
        let configured = BTreeMap::new();
        let call = |url: &str, info: &str| {
            let Value::Object(arguments) = json!({"url": url, "info_to_extract": info}) else {
                unreachable!()
            };
            key("s", "scrape_and_extract_info", &arguments, &configured)
        };
        assert_ne!(call("a b", "c"), call("a", "b c"));
    }

    #[test]
    fn repeats() {
        let used = BTreeMap::from([("x".to_owned(), 1)]);
        assert_eq!(repeated([Some("x")], &used), [0]);
        assert_eq!(repeated([Some("y"), None, Some("y"), Some("x")], &used), [2, 3]);
        assert_eq!(repeated([Some("y"), None, None, Some("z")], &used), [0; 0]);
    }
}
