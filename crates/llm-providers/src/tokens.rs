//! How many tokens a text, a message or a request has.
//!
//! Decides how counting is made safe and cheap: the o200k tables are loaded once, off the async threads
//! where the program says so early; text that the tokenizer cannot take counts as a quarter of its
//! bytes; a message is counted once however often it is sent. The tokenizer is OpenAI's; for other
//! models the count is an estimate that the server's own figures correct.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use core_protocol::{ContentBlock, MediaSource, Message, ToolDefinition};

use crate::{ChatRequest, Tokenizer};

/// Tokens that a chat template adds to a message (OpenAI's published figure is 3, others have up to 6).
const PER_MESSAGE: u64 = 4;
/// Tokens of a picture: the middle of what providers charge for one of about 1000 × 1000 pixels (765 to 1,600).
const PER_IMAGE: u64 = 1_200;
/// Tokens of a video: servers that are not told otherwise look at 16 to 32 pictures of it, of a few hundred tokens each.
const PER_VIDEO: u64 = 8_000;
/// Bytes of a recording for a token: 10 tokens a second at 128 kbit/s.
const AUDIO_BYTES_PER_TOKEN: u64 = 1_600;
/// Longest piece that is given to the tokenizer at once. Its regular expression gives up on runs of
/// about a million blanks, and cutting bounds the time of any text; the cut costs at most a token.
const PIECE: usize = 64 * 1024;
/// Smallest prompt that tells something about the ratio between the server's count and ours.
const CALIBRATION_MIN: u64 = 200;
/// Ratios outside this range come from something else than the tokenizer.
const CALIBRATION_RANGE: std::ops::RangeInclusive<f64> = 0.5..=3.0;

static READY: AtomicBool = AtomicBool::new(false);

/// Loads the tokenizer's tables (about 150 ms, 46 MiB) on a thread of its own, once for the process.
/// Returns at once.
pub fn warm_up() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // Without the thread the first count loads them.
        let _ = std::thread::Builder::new().name("tokenizer".to_owned()).spawn(|| count_text("warm up"));
    });
}

/// Whether counting needs no loading any more.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Relaxed)
}

/// Tokens of a text by o200k; text that looks like a special token is plain text.
pub(crate) fn count_text(text: &str) -> u64 {
    if text.is_empty() {
        return 0;
    }
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    READY.store(true, Ordering::Relaxed);
    let no_special = HashSet::new();
    let mut rest = text;
    let mut tokens = 0u64;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        tokens = tokens.saturating_add(match tokenizer.count(piece, &no_special) {
            Ok(count) => count as u64,
            Err(_) => (piece.len() as u64).div_ceil(4),
        });
        rest = after;
    }
    tokens
}

/// Sums up a message; `measure` says what a text comes to.
fn measure_message(message: &Message, measure: &dyn Fn(&str) -> u64) -> u64 {
    let mut sum = PER_MESSAGE;
    for block in &message.content {
        sum = sum.saturating_add(match block {
            ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => measure(text),
            ContentBlock::RedactedThinking { data } => measure(data),
            ContentBlock::File { uri, .. } => measure(uri),
            ContentBlock::Image { .. } => PER_IMAGE,
            ContentBlock::Audio { source: MediaSource::Base64 { data, .. } } => {
                (data.len() as u64 / 4 * 3).div_ceil(AUDIO_BYTES_PER_TOKEN)
            }
            ContentBlock::Audio { source: MediaSource::Url { .. } } => PER_IMAGE,
            ContentBlock::Video { .. } => PER_VIDEO,
        });
    }
    for call in &message.tool_calls {
        let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
        for text in [&call.id, &call.server, &call.tool, &arguments] {
            sum = sum.saturating_add(measure(text));
        }
        sum = sum.saturating_add(PER_MESSAGE);
    }
    sum
}

fn measure_tools(tools: &[ToolDefinition], measure: &dyn Fn(&str) -> u64) -> u64 {
    tools.iter().fold(0, |sum, tool| {
        let schema = tool.input_schema.to_string();
        [&tool.server, &tool.name, &tool.description, &schema]
            .into_iter()
            .fold(sum.saturating_add(PER_MESSAGE), |sum, text| sum.saturating_add(measure(text)))
    })
}

/// A number that no tokenizer exceeds for this request: no token is shorter than a byte. Costs no
/// counting.
pub(crate) fn upper_bound(request: &ChatRequest) -> u64 {
    let bytes = |text: &str| text.len() as u64;
    let messages = request
        .messages
        .iter()
        .fold(0u64, |sum, message| sum.saturating_add(measure_message(message, &bytes)));
    messages
        .saturating_add(bytes(&request.system))
        .saturating_add(measure_tools(&request.tools, &bytes))
        .saturating_add(2 * PER_MESSAGE)
}

/// Counts for one client: remembers messages and learns from the server's figures.
#[derive(Debug, Default)]
pub(crate) struct TokenCounter {
    tokenizer: Tokenizer,
    messages: CountCache<Message>,
    systems: CountCache<str>,
    tools: CountCache<[ToolDefinition]>,
    /// Bits of the ratio server/ours; 0 stands for "nothing learnt".
    ratio: AtomicU64,
    /// What the server counted while the tables were loading, to be learnt from before anything is counted.
    unlearnt: Mutex<Vec<(ChatRequest, u64)>>,
}

impl TokenCounter {
    /// A counter; one that needs tables begins to load them.
    pub(crate) fn new(tokenizer: Tokenizer) -> Self {
        if tokenizer == Tokenizer::O200k {
            warm_up();
        }
        Self { tokenizer, ..Self::default() }
    }

    /// Tokens of a text, corrected.
    pub(crate) fn text(&self, text: &str) -> u64 {
        self.correct(self.raw_text(text))
    }

    fn raw_text(&self, text: &str) -> u64 {
        match self.tokenizer {
            Tokenizer::O200k => count_text(text),
            Tokenizer::QuarterOfBytes => (text.len() as u64).div_ceil(4),
        }
    }

    /// Tokens of a message, corrected.
    pub(crate) fn message(&self, message: &Arc<Message>) -> u64 {
        self.correct(self.raw_message(message))
    }

    /// Tokens of a whole request, corrected.
    pub(crate) fn request(&self, request: &ChatRequest) -> u64 {
        self.correct(self.raw_request(request))
    }

    /// Whether a count must wait for the tables.
    fn is_loading(&self) -> bool {
        self.tokenizer == Tokenizer::O200k && !is_ready()
    }

    /// Notes the prompt tokens that the server counted for a request, where learning from them would have to wait
    /// for the tables. Whether it did; what is noted is learnt from before the next count, so that an estimate does
    /// not depend on how long loading took.
    pub(crate) fn put_off(&self, request: &ChatRequest, prompt_tokens: u64) -> bool {
        let loading = self.is_loading();
        if loading {
            self.unlearnt().push((request.clone(), prompt_tokens));
        }
        loading
    }

    fn unlearnt(&self) -> MutexGuard<'_, Vec<(ChatRequest, u64)>> {
        self.unlearnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from the prompt tokens that the server counted for a request.
    pub(crate) fn learn(&self, request: &ChatRequest, prompt_tokens: u64) {
        if prompt_tokens < CALIBRATION_MIN {
            return;
        }
        let ours = self.raw_request(request);
        if ours < CALIBRATION_MIN {
            return;
        }
        let sample = prompt_tokens as f64 / ours as f64;
        if CALIBRATION_RANGE.contains(&sample) {
            let learnt = self.ratio().map_or(sample, |ratio| ratio.midpoint(sample));
            self.ratio.store(learnt.to_bits(), Ordering::Relaxed);
        }
    }

    /// The ratio between the server's count and ours, where it is known.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ratio.load(Ordering::Relaxed)).filter(|bits| *bits != 0).map(f64::from_bits)
    }

    fn correct(&self, tokens: u64) -> u64 {
        let put_off = std::mem::take(&mut *self.unlearnt());
        for (request, prompt_tokens) in put_off {
            self.learn(&request, prompt_tokens);
        }
        match self.ratio() {
            Some(ratio) => (tokens as f64 * ratio).ceil() as u64,
            None => tokens,
        }
    }

    fn raw_message(&self, message: &Arc<Message>) -> u64 {
        self.messages.get(message, |message| measure_message(message, &|text| self.raw_text(text)))
    }

    fn raw_request(&self, request: &ChatRequest) -> u64 {
        let messages =
            request.messages.iter().fold(0u64, |sum, message| sum.saturating_add(self.raw_message(message)));
        messages
            .saturating_add(self.systems.get(&request.system, |system| self.raw_text(system) + PER_MESSAGE))
            .saturating_add(
                self.tools.get(&request.tools, |tools| measure_tools(tools, &|text| self.raw_text(text))),
            )
            .saturating_add(PER_MESSAGE)
    }
}

/// Remembers a number for shared values, by their address and as long as they live.
#[derive(Debug)]
struct CountCache<T: ?Sized> {
    entries: Mutex<HashMap<usize, (Weak<T>, u64)>>,
}

/// Entries below which dead ones are not looked for.
const CACHE_FLOOR: usize = 1_024;

impl<T: ?Sized> CountCache<T> {
    fn get(&self, value: &Arc<T>, count: impl FnOnce(&T) -> u64) -> u64 {
        let address = Arc::as_ptr(value).cast::<()>() as usize;
        let known = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            // A dead entry's address may be in use again: the same address counts only for the same value.
            entries
                .get(&address)
                .filter(|(weak, _)| weak.upgrade().is_some_and(|live| Arc::ptr_eq(&live, value)))
                .map(|(_, count)| *count)
        };
        if let Some(known) = known {
            return known;
        }
        let counted = count(value);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CACHE_FLOOR && entries.len() == entries.capacity() {
            entries.retain(|_, (weak, _)| weak.strong_count() > 0);
        }
        entries.insert(address, (Arc::downgrade(value), counted));
        counted
    }
}

impl<T: ?Sized> Default for CountCache<T> {
    fn default() -> Self {
        Self { entries: Mutex::new(HashMap::new()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use core_protocol::{Message, Role, ToolDefinition};
    use serde_json::json;

    use super::{CountCache, TokenCounter, count_text, upper_bound};
    use crate::ChatRequest;

    #[test]
    fn counts_text() {
        let check = |text: &str, expected: u64| assert_eq!(count_text(text), expected, "{text:.40}");
        check("", 0);
        check("hello world", 2);
        check("x <|endoftext|> y", 9);
        check("深度研究", 3);
    }

    #[test]
    fn text_that_the_tokenizer_cannot_take_is_estimated() {
        let blanks = " ".repeat(1_200_000);
        let tokens = count_text(&blanks);
        assert!((100..=300_000).contains(&tokens), "{tokens}");
        let letters = "a".repeat(300_000);
        assert!(count_text(&letters) > 1_000);
    }

    #[test]
    fn no_request_exceeds_its_upper_bound() {
        let check = |text: &str| {
            let mut request = ChatRequest::new(text, vec![Arc::new(Message::user(text))]);
            request.tools = Arc::from([ToolDefinition {
                server: "s".into(),
                name: "t".into(),
                description: text.into(),
                input_schema: json!({"type": "object", "properties": {"q": {"type": "string"}}}),
            }]);
            let counter = TokenCounter::default();
            assert!(counter.request(&request) <= upper_bound(&request), "{text:.40}");
        };
        check("");
        check("!@#$%^&*()");
        check("深度研究 🦀🦀🦀 \u{200d}\u{301}");
        check("An ordinary sentence of English prose.");
    }

    #[test]
    fn learns_from_the_server_and_ignores_what_cannot_be() {
        let text = "Every claim is checked against a second source. ".repeat(60);
        let request = ChatRequest::new("", vec![Arc::new(Message::user(text.as_str()))]);
        let counter = TokenCounter::default();
        let plain = counter.request(&request);
        counter.learn(&request, plain * 50);
        counter.learn(&request, 10);
        assert_eq!(counter.ratio(), None);
        counter.learn(&request, plain * 5 / 4);
        let ratio = counter.ratio().unwrap();
        assert!((ratio - 1.25).abs() < 0.01, "{ratio}");
        assert_eq!(counter.request(&request), (plain as f64 * ratio).ceil() as u64);
        assert!(counter.text(&text) > count_text(&text));
    }

    #[test]
    fn what_was_told_while_the_tables_loaded_is_learnt_before_the_next_count() {
        let text = "Every claim is checked against a second source. ".repeat(60);
        let request = ChatRequest::new("", vec![Arc::new(Message::user(text.as_str()))]);
        let counter = TokenCounter::default();
        let plain = counter.request(&request);
        counter.unlearnt().push((request.clone(), plain * 2));
        assert_eq!(counter.ratio(), None);
        assert_eq!(counter.request(&request), plain * 2);
        assert!(counter.unlearnt().is_empty() && counter.ratio().is_some());
        // The tables are there: nothing is put off, and what needs no tables never is.
        assert!(!counter.put_off(&request, 1));
        assert!(!TokenCounter::new(crate::Tokenizer::QuarterOfBytes).put_off(&request, 1));
    }

    #[test]
    fn a_value_is_counted_once_while_it_lives() {
        let cache = CountCache::<Message>::default();
        let message = Arc::new(Message::user("x"));
        assert_eq!(cache.get(&message, |_| 7), 7);
        assert_eq!(cache.get(&message, |_| panic!("counted twice")), 7);
        assert_eq!(cache.get(&Arc::clone(&message), |_| panic!("counted twice")), 7);
        assert_eq!(cache.get(&Arc::new(Message::text(Role::User, "y")), |_| 9), 9);
        for _ in 0..10_000 {
            cache.get(&Arc::new(Message::user("short-lived")), |_| 1);
        }
        assert!(cache.entries.lock().unwrap().len() < 4_096);
    }
}
