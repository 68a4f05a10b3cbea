//! The arguments of calls: who judges them, and against what.
//!
//! Decides that servers of this process judge for themselves, whoever calls them: what a model has written is brought
//! into the types that a tool's schema names, and what does not fit then is refused before the handler sees it.
//! Servers of others get the arguments as they were written, and are spared only what is certain to be wrong.

mod fitting;
mod misfits;
mod schema;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::Value;

use fitting::fitted;
pub(crate) use misfits::misfits;
use misfits::strict_misfits;
pub(crate) use schema::{judged, shown};

/// The key of a result's `_meta` below which stand the misfits of arguments that were refused.
const MISFITS: &str = "fathom/misfits";

/// The arguments as a handler of this process gets them.
///
/// # Errors
/// What does not fit, a sentence each.
pub(crate) fn taken(schema: &JsonObject, arguments: JsonObject) -> Result<JsonObject, Vec<String>> {
    let arguments = fitted(schema, arguments);
    let misfits = strict_misfits(schema, &arguments);
    if misfits.is_empty() { Ok(arguments) } else { Err(misfits) }
}

/// What a server of this process answers to a call that it does not make.
pub(crate) fn refusal(tool: &str, misfits: Vec<String>) -> CallToolResult {
    let text = format!("The arguments of `{tool}` do not fit: {}.", misfits.join("; "));
    let meta = JsonObject::from_iter([(MISFITS.to_owned(), misfits.into())]);
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.meta = Some(MetaObject(meta));
    result
}

/// The misfits for which a call was refused; none where it was made.
pub(crate) fn refused(result: &CallToolResult) -> Option<Vec<String>> {
    let misfits = result.meta.as_ref()?.0.get(MISFITS)?.as_array()?;
    Some(misfits.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_meant_is_taken_and_the_rest_refused() {
        let schema = json!({
            "type": "object",
            "properties": {"q": {"type": "string"}, "num": {"type": "integer", "minimum": 0}, "ids": {"type": "array"}, "place": {"type": "object"}},
            "required": ["q"]
        });
        let Value::Object(schema) = schema else { panic!("an object") };
        for (arguments, expected) in [
            (json!({"q": 7}), Ok(json!({"q": "7"}))),
            (json!({"q": "x", "num": " 7 "}), Ok(json!({"q": "x", "num": 7}))),
            (json!({"q": "x", "num": 3.0}), Ok(json!({"q": "x", "num": 3}))),
            (json!({"q": "x", "num": null}), Ok(json!({"q": "x", "num": null}))),
            (json!({"q": "x", "num": -1}), Err("`num` is to be a number of 0 or more, not -1")),
            (json!({"q": "x", "num": "-1"}), Err("`num` is to be a number of 0 or more, not -1")),
            (json!({"q": "x", "num": ""}), Err("`num` is to be a whole number, not the string \"\"")),
            (json!({"q": "x", "num": [1]}), Err("`num` is to be a whole number, not a list")),
            (json!({"q": "x", "num": "7.0"}), Ok(json!({"q": "x", "num": 7}))),
            (json!({"q": "x", "num": 1e20}), Err("`num` is to be a whole number, not 1e+20")),
            (json!({"q": "x", "ids": "[a"}), Err("`ids` is to be a list, not the string \"[a\"")),
            (json!({"q": "x", "place": "{"}), Err("`place` is to be an object, not the string \"{\"")),
            (json!({"num": 1}), Err("`q` is missing; it is to be a string")),
        ] {
            let Value::Object(arguments) = arguments else { panic!("an object") };
            let expected = expected.map_err(|misfit| vec![misfit.to_owned()]);
            assert_eq!(taken(&schema, arguments).map(Value::Object), expected);
        }
    }

    #[test]
    fn a_refusal_is_told_from_other_results() {
        let misfits = vec!["`a` is missing".to_owned(), "`b` is no argument".to_owned()];
        let result = refusal("t", misfits.clone());
        let text = &result.content[0].as_text().expect("a text").text;
        assert_eq!(text, "The arguments of `t` do not fit: `a` is missing; `b` is no argument.");
        assert_eq!(refused(&result), Some(misfits));
        assert_eq!(refused(&CallToolResult::error(result.content)), None);
    }
}
