//! Proofs of origin that are JSON.
//!
//! Decides how what a provider wants back beside its thinking (OpenRouter's `reasoning_details`, OpenAI's
//! reasoning items) is kept in the signature of a thinking block, next to Anthropic's, which are plain
//! text: as an object with one field that says whose it is. So each engine sends back its own and
//! nobody else's, however a history has travelled.

use core_protocol::ContentBlock;
use serde_json::{Map, Value};

/// OpenRouter's list of pieces of thinking.
pub(crate) const REASONING_DETAILS: &str = "reasoning_details";
/// An item of OpenAI's Responses.
pub(crate) const REASONING_ITEM: &str = "reasoning_item";

/// The signature that keeps a value.
pub(crate) fn seal(whose: &str, value: Value) -> String {
    Value::Object(Map::from_iter([(whose.to_owned(), value)])).to_string()
}

/// What [`seal`] kept in a block, if it is of that kind.
pub(crate) fn open(whose: &str, block: &ContentBlock) -> Option<Value> {
    let ContentBlock::Thinking { signature: Some(signature), .. } = block else { return None };
    if !is_sealed(signature) {
        return None;
    }
    serde_json::from_str::<Map<String, Value>>(signature).ok()?.shift_remove(whose)
}

/// Whether a signature is one of those made here; others are texts that mean something to their
/// provider only.
pub(crate) fn is_sealed(signature: &str) -> bool {
    signature.starts_with('{')
}

#[cfg(test)]
mod tests {
    use core_protocol::ContentBlock;
    use serde_json::json;

    use super::{REASONING_DETAILS, REASONING_ITEM, is_sealed, open, seal};

    #[test]
    fn each_engine_finds_its_own() {
        let block =
            |signature: &str| ContentBlock::Thinking { text: "t".into(), signature: Some(signature.into()) };
        let kept = json!([{"type": "reasoning.encrypted", "data": "b3BhcXVl"}]);
        let sealed = seal(REASONING_DETAILS, kept.clone());
        assert!(is_sealed(&sealed));
        assert_eq!(open(REASONING_DETAILS, &block(&sealed)), Some(kept));
        assert_eq!(open(REASONING_ITEM, &block(&sealed)), None);
        assert_eq!(open(REASONING_DETAILS, &block("c2lnbmF0dXJl")), None);
        assert_eq!(open(REASONING_DETAILS, &block("{broken")), None);
        assert_eq!(open(REASONING_DETAILS, &ContentBlock::text("{}")), None);
    }
}
