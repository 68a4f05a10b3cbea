//! Whether an error says that the request is longer than the model's window.

use super::WireError;

/// Words, in lower case, that servers use for it.
const PHRASES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "maximum context length",
    "maximum model length",
    "maximum prompt length",
    "longer than the model's context length",
    "exceeds the model's context length",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds maximum context length",
    "exceeds the context window",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "exceeds the maximum length",
    "exceeds the maximum allowed length",
    "exceeds max length",
    "exceed the configured limit",
    "exceeded model token limit",
    "prompt is too long",
    "input is too long",
    "is too long and exceeds limit",
    "input is too large to process",
    "prompt too long",
    "prompt token count of",
    "reduce the length of the messages",
    "reduce the length of the input",
    "range of input length should be",
    "tokens + `max_new_tokens` must be",
    "loaded with context length of only",
    "context window exceeds limit",
    "context size has been exceeded",
    "too large for model with",
];

/// What stands right before the number of prompt tokens.
const BEFORE_PROMPT: &[&str] = &[
    "messages resulted in ",
    "prompt is too long: ",
    "your request has ",
    "the input (",
    "prompt (length ",
    "prompt contains ",
    "request contains ",
    "input token count (",
    "exceed context limit: ",
    "prompt token count of ",
    "input prompt (",
    "the request (",
];

/// What stands right after the number of prompt tokens.
const AFTER_PROMPT: &[&str] = &[
    " in the messages",
    " tokens from the input messages",
    " input tokens",
    " of text input",
    " in your prompt",
];

/// What stands right before the number of tokens of the window.
const BEFORE_LIMIT: &[&str] = &[
    "context length is ",
    "context length of ",
    "context length of only ",
    "model's context length (",
    "maximum model length of ",
    "maximum prompt length is ",
    "tokens allowed (",
    "exceeds the limit of ",
    "exceeds limit of ",
    "available context size (",
    "token limit: ",
    "tokens > ",
    "should be [1, ",
];

/// Prompt tokens and window, where told; none where the error is about something else.
pub(super) fn exceeded(error: &WireError, words: &str) -> Option<(Option<u64>, Option<u64>)> {
    PHRASES.iter().any(|phrase| words.contains(phrase)).then(|| {
        let prompt = error
            .prompt_tokens
            .or_else(|| BEFORE_PROMPT.iter().find_map(|lead| number_after(words, lead)))
            .or_else(|| AFTER_PROMPT.iter().find_map(|trail| number_before(words, trail)));
        let limit = error.context.or_else(|| BEFORE_LIMIT.iter().find_map(|lead| number_after(words, lead)));
        (prompt, limit.or_else(|| sum_limit(words)))
    })
}

/// Anthropic's `190000 + 20000 > 200000`.
fn sum_limit(words: &str) -> Option<u64> {
    let rest = words.get(words.find("exceed context limit: ")?..)?;
    number_after(rest, " > ")
}

fn number_after(words: &str, lead: &str) -> Option<u64> {
    words.match_indices(lead).find_map(|(start, lead)| {
        let rest = words.get(start + lead.len()..)?;
        let digits: String =
            rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
        digits.parse().ok()
    })
}

fn number_before(words: &str, trail: &str) -> Option<u64> {
    words.match_indices(trail).find_map(|(end, _)| {
        let head = words.get(..end)?;
        let start = head.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
        head.get(start..)?.parse().ok()
    })
}
