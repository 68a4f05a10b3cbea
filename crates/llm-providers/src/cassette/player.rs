//! Answers from a cassette. Decides which recorded exchange answers a request, and what is said where none does.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use core_protocol::ContentBlock;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::{Map, Value};

use super::difference::describe;
use super::reader::{Asked, Exchange, Recorded, read};
use super::{CassetteError, Header, MODEL, ModelRequest, ModelResponse, Scrub, canonical};
use crate::{Capabilities, ChatRequest, EventStream, LlmClient, LlmError, Provider, StreamEvent, Tokenizer};

/// A cassette that is being replayed. Each recorded exchange answers once.
pub struct Player {
    path: String,
    scrub: Scrub,
    recorded: Recorded,
    /// Exchanges by what they are about, in the order of recording.
    by_request: HashMap<Key, Vec<usize>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: Vec<bool>,
    /// Requests so far, by kind.
    asked: HashMap<String, usize>,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Model(ModelRequest),
    Other(String, String),
}

/// A request in terms of the cassette's parts; none for what it has no part for.
struct Parts {
    system: Part,
    messages: Vec<Part>,
    tools: Option<Part>,
    continue_final_message: bool,
}

struct Part {
    id: Option<usize>,
    value: Value,
}

impl Player {
    /// Reads a cassette. `scrub` must take out what it took out when recording, where that is there again.
    ///
    /// # Errors
    ///
    /// [`CassetteError::Read`], [`CassetteError::Format`].
    pub fn open(path: &Path, scrub: Scrub) -> Result<Self, CassetteError> {
        Ok(Self::new(read(path)?, path.display().to_string(), scrub))
    }

    pub(super) fn new(recorded: Recorded, path: String, scrub: Scrub) -> Self {
        let mut by_request: HashMap<Key, Vec<usize>> = HashMap::new();
        for (index, exchange) in recorded.exchanges.iter().enumerate() {
            let key = match &exchange.request {
                Asked::Model(request) => Key::Model(request.clone()),
                Asked::Other(request) => Key::Other(exchange.of.clone(), canonical(request)),
            };
            by_request.entry(key).or_default().push(index);
        }
        let state = State { used: vec![false; recorded.exchanges.len()], asked: HashMap::new() };
        Self { path, scrub, recorded, by_request, state: Mutex::new(state) }
    }

    /// The first line.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.recorded.header
    }

    /// How many exchanges were recorded.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        self.recorded.exchanges.len()
    }

    /// The model of the cassette, with the retries of the recorded one and none of its pauses.
    #[must_use]
    pub fn client(self: &Arc<Self>) -> LlmClient {
        let profile = &self.header().model;
        let provider = Arc::new(Replay { player: Arc::clone(self) });
        LlmClient::with_provider(provider, &profile.config)
            .as_recorded(profile.max_context_length, profile.facts.clone())
    }

    /// The response to a request of the caller's own kind.
    ///
    /// # Errors
    ///
    /// [`CassetteError::Mismatch`] where nothing like it was recorded, or not as often.
    pub fn answer(&self, of: &str, name: &str, request: &Value) -> Result<Value, CassetteError> {
        let asked = self.scrubbed(request);
        let key = Key::Other(of.to_owned(), canonical(&asked));
        self.take(of, &key).map(|exchange| exchange.response.clone()).map_err(|number| {
            let what = words(of, name, number);
            let detail = self.nearest(of, name).map_or_else(
                || self.nothing_left(&what, of),
                |exchange| {
                    let Asked::Other(recorded) = &exchange.request else { return what.clone() };
                    let nearest = words(&exchange.of, &exchange.name, 0);
                    if *recorded == asked {
                        return self.too_often(&what, exchange);
                    }
                    format!(
                        "{what}. The nearest recorded one, {nearest} on line {}, differs{}",
                        exchange.line,
                        describe(recorded, &asked)
                    )
                },
            );
            CassetteError::Mismatch { path: self.path.clone(), detail }
        })
    }

    /// What was recorded and never asked for, in words, in the order of recording.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = self.recorded.exchanges.iter().zip(&state.used).filter(|(_, used)| !**used);
        unused
            .map(|(exchange, _)| {
                let what = words(&exchange.of, &exchange.name, 0);
                format!("{what} ({}:{})", self.path, exchange.line)
            })
            .collect()
    }

    fn model(&self, request: &ChatRequest) -> Result<ModelResponse, CassetteError> {
        let parts = self.parts(request);
        let key = parts.known().map(Key::Model);
        let taken = match &key {
            Some(key) => self.take(MODEL, key),
            None => Err(self.count(MODEL)),
        };
        match taken {
            Ok(exchange) => {
                serde_json::from_value(exchange.response.clone()).map_err(|error| CassetteError::Format {
                    path: self.path.clone(),
                    line: exchange.line,
                    detail: error.to_string(),
                })
            }
            Err(number) => {
                Err(CassetteError::Mismatch { path: self.path.clone(), detail: self.explain(&parts, number) })
            }
        }
    }

    /// The first unused exchange about a request; otherwise the number of the request among its kind.
    fn take(&self, of: &str, key: &Key) -> Result<&Exchange, usize> {
        let number = self.count(of);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.by_request.get(key).map(Vec::as_slice).unwrap_or_default();
        let free =
            known.iter().copied().find(|index| state.used.get(*index) == Some(&false)).ok_or(number)?;
        if let Some(used) = state.used.get_mut(free) {
            *used = true;
        }
        self.recorded.exchanges.get(free).ok_or(number)
    }

    fn count(&self, of: &str) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.asked.entry(of.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// The exchanges of a kind that have not answered yet.
    fn left(&self, of: &str) -> Vec<&Exchange> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.recorded.exchanges.iter().zip(&state.used);
        all.filter(|(exchange, used)| exchange.of == of && !**used).map(|(exchange, _)| exchange).collect()
    }

    /// What a request of the caller's own kind is compared with: one of the same name that is left, else one that is
    /// left, else one of the same name.
    fn nearest(&self, of: &str, name: &str) -> Option<&Exchange> {
        let left = self.left(of);
        let same_name = left.iter().find(|exchange| exchange.name == name).or(left.first());
        let all = || self.recorded.exchanges.iter().find(|known| known.of == of && known.name == name);
        same_name.copied().or_else(all)
    }

    fn parts(&self, request: &ChatRequest) -> Parts {
        Parts {
            system: self.part(&*request.system),
            messages: request.messages.iter().map(|message| self.part(&**message)).collect(),
            tools: (!request.tools.is_empty()).then(|| self.part(&*request.tools)),
            continue_final_message: request.continue_final_message,
        }
    }

    fn part(&self, value: &(impl Serialize + ?Sized)) -> Part {
        // What cannot be written as JSON was not recorded either.
        let value = self.scrubbed(&serde_json::to_value(value).unwrap_or_default());
        Part { id: self.recorded.ids.get(&canonical(&value)).copied(), value }
    }

    /// Compares a request to a model with the unused one that has most in common with it.
    fn explain(&self, asked: &Parts, number: usize) -> String {
        let what = words(MODEL, "", number);
        let left = self.left(MODEL);
        let in_common = |exchange: &Exchange| match &exchange.request {
            Asked::Model(recorded) => {
                let same = recorded.messages.iter().zip(&asked.messages);
                let messages = same.take_while(|(id, part)| Some(**id) == part.id).count();
                // Messages weigh more: a system prompt that changed is in every request.
                (messages, usize::from(asked.system.id == Some(recorded.system)))
            }
            Asked::Other(_) => (0, 0),
        };
        // The first of those with most in common.
        let nearest = left.iter().rev().max_by_key(|exchange| in_common(exchange));
        let Some(exchange) = nearest else {
            let same =
                asked.known().and_then(|known| self.by_request.get(&Key::Model(known))?.first().copied());
            return match same.and_then(|index| self.recorded.exchanges.get(index)) {
                Some(exchange) => self.too_often(&what, exchange),
                None => self.nothing_left(&what, MODEL),
            };
        };
        let Asked::Model(recorded) = &exchange.request else { return what };
        let place = self.recorded.exchanges.iter().filter(|known| known.of == MODEL);
        let recorded_number = place.take_while(|known| known.line <= exchange.line).count();
        format!(
            "{what}. The nearest recorded one, {} on line {}, differs in {}",
            words(MODEL, "", recorded_number),
            exchange.line,
            self.first_difference(recorded, asked)
        )
    }

    fn first_difference(&self, recorded: &ModelRequest, asked: &Parts) -> String {
        let value = |id: usize| self.recorded.parts.get(id).cloned().unwrap_or(Value::Null);
        if asked.system.id != Some(recorded.system) {
            return format!("the system prompt{}", describe(&value(recorded.system), &asked.system.value));
        }
        for (index, part) in asked.messages.iter().enumerate() {
            let number = index + 1;
            let role = part.value["role"].as_str().unwrap_or("?").to_owned();
            match recorded.messages.get(index) {
                Some(id) if part.id == Some(*id) => {}
                Some(id) => {
                    return format!("message {number} ({role}){}", describe(&value(*id), &part.value));
                }
                None => {
                    return format!(
                        "length: it has {} messages, and {} are asked; message {number} ({role}) is new{}",
                        recorded.messages.len(),
                        asked.messages.len(),
                        describe(&Value::Null, &part.value)
                    );
                }
            }
        }
        if let Some(id) = recorded.messages.get(asked.messages.len()) {
            return format!(
                "length: it has {} messages, and {} are asked; the next recorded one is {}",
                recorded.messages.len(),
                asked.messages.len(),
                describe(&value(*id), &Value::Null).trim_start_matches([':', ' ', '\n'])
            );
        }
        let tools = asked.tools.as_ref().map_or(Value::Null, |part| part.value.clone());
        let recorded_tools = recorded.tools.map_or(Value::Null, value);
        if canonical(&tools) != canonical(&recorded_tools) {
            return format!("the tools{}", describe(&recorded_tools, &tools));
        }
        format!(
            "continue_final_message: recorded {}, asked {}",
            recorded.continue_final_message, asked.continue_final_message
        )
    }

    fn too_often(&self, what: &str, exchange: &Exchange) -> String {
        format!("{what}: the same was recorded (line {}) and has been used up", exchange.line)
    }

    fn nothing_left(&self, what: &str, of: &str) -> String {
        let recorded = self.recorded.exchanges.iter().filter(|exchange| exchange.of == of).count();
        match recorded {
            0 => format!("{what}, and no {} was recorded", words(of, "", 0)),
            count => format!("{what}: all {count} recorded ones have been used; the recording ends here"),
        }
    }

    fn scrubbed(&self, value: &Value) -> Value {
        let text = value.to_string();
        let scrubbed = (self.scrub)(text.clone());
        if scrubbed == text {
            return value.clone();
        }
        serde_json::from_str(&scrubbed).unwrap_or_else(|_| value.clone())
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Player")
            .field("path", &self.path)
            .field("exchanges", &self.recorded.exchanges.len())
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// The request in terms of recorded parts, where all of it was recorded.
    fn known(&self) -> Option<ModelRequest> {
        Some(ModelRequest {
            system: self.system.id?,
            messages: self.messages.iter().map(|part| part.id).collect::<Option<_>>()?,
            tools: match &self.tools {
                Some(part) => Some(part.id?),
                None => None,
            },
            continue_final_message: self.continue_final_message,
        })
    }
}

/// An exchange for people; `number` counts requests of its kind, 0 leaves it out.
fn words(of: &str, name: &str, number: usize) -> String {
    let kind = if of == MODEL { "request to the model".to_owned() } else { format!("{of} call") };
    match (number, name) {
        (0, "") => kind,
        (0, name) => format!("{kind} {name}"),
        (number, "") => format!("{kind} {number}"),
        (number, name) => format!("{kind} {number} ({name})"),
    }
}

/// Plays the part of the recorded provider.
struct Replay {
    player: Arc<Player>,
}

#[async_trait]
impl Provider for Replay {
    fn name(&self) -> &str {
        &self.player.header().model.provider
    }

    fn model(&self) -> &str {
        &self.player.header().model.model
    }

    fn capabilities(&self) -> Capabilities {
        self.player.header().model.capabilities
    }

    fn tokenizer(&self) -> Tokenizer {
        self.player.header().model.tokenizer
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let response = self.player.model(request).map_err(|error| LlmError::Cassette(Box::new(error)))?;
        let completion = match response {
            ModelResponse::Completion(completion) => completion,
            ModelResponse::Error(error) => return Err(error),
        };
        let deltas = completion.message.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(StreamEvent::TextDelta(text.clone())),
            ContentBlock::Thinking { text, .. } => Some(StreamEvent::ThinkingDelta(text.clone())),
            _ => None,
        });
        let mut events: Vec<_> = deltas.map(Ok).collect();
        events.push(Ok(StreamEvent::Done(completion)));
        Ok(futures_util::stream::iter(events).boxed())
    }

    fn describe(&self) -> Map<String, Value> {
        self.player.header().model.facts.clone()
    }
}
