//! Sums up the older history: when that is due, what is asked, and whether the summary is worth using.
//!
//! The task and the newest round stay as they are; everything between them, an earlier summary included, becomes one
//! new summary. A summary that cannot be had is no reason to end the run.

use std::sync::Arc;
use std::time::Duration;

use answer_generator::HistoryEntry;
use core_protocol::event::{EventBody, LlmPurpose};
use core_protocol::{Message, Role, Usage, parse_reply};

use super::replies::{ModelFailureClass, ModelReply};
use super::state::{Compressed, Compressing, Drafted, Phase};
use super::{CompressionQuestion, Machine, ModelCall};
use crate::boundaries::turn_budget;
use crate::retention;

/// Times that a summary is asked for: the second time because the first one was too long.
const MAX_ROUNDS: u32 = 2;
/// Words that a summary may have: this share of the token limit, and less when it is asked for again.
const TOKENS_A_WORD: u64 = 8;
const SHORTER: u64 = 4;
const LEAST_WORDS: u64 = 60;
const MOST_WORDS: u64 = 1_500;

impl Machine {
    /// What is to be summed up before the next turn, if anything. `size` is about what the next request sends, in
    /// tokens.
    pub(super) fn compression_due(&self, size: u64) -> Option<Compressing> {
        let config = &self.setup.config;
        let pass = &self.state.pass;
        let since = pass.turn.saturating_sub(pass.compressed_at);
        let is_time = config.summarize_every > 0 && since >= config.summarize_every;
        let is_full = config.summarize_every > 0 && size > config.token_limit && !pass.compression_failed;
        let another_turn = turn_budget::exhausted(
            pass.turn,
            pass.call_attempts,
            self.setup.role.max_turns,
            config.extra_call_attempts,
        );
        if !(is_time || is_full) || another_turn.is_some() {
            return None;
        }
        let newest = pass.history.iter().rposition(|entry| entry.is(Role::Assistant))?;
        let summed_up = pass.compressed.as_ref().map_or(1, |compressed| compressed.through);
        (newest > summed_up).then_some(Compressing { through: newest, in_full: true, round: 1 })
    }

    pub(super) fn ask_for_summary(&mut self, asked: &Compressing) -> ModelCall {
        let keep = if asked.in_full { -1 } else { self.setup.config.keep_tool_result };
        let view = retention::view(&self.history(asked.through), keep, false);
        let mut words = (self.setup.config.token_limit / TOKENS_A_WORD).min(MOST_WORDS);
        if asked.round > 1 {
            words /= SHORTER;
        }
        let prompt = self.setup.prompts.compression(words.max(LEAST_WORDS));
        self.request_with(LlmPurpose::Compression, view, Some(prompt), None, Duration::ZERO)
    }

    pub(super) fn summary_replied(&mut self, asked: Compressing, reply: ModelReply) {
        let ModelReply { call, completion, ms, retries, discarded } = reply;
        let text = completion.message.joined_text();
        let message_id = self.tell_message(&completion.message);
        self.tell(EventBody::LlmResponse {
            call,
            message_id,
            finish_reason: completion.finish_reason,
            usage: completion.usage,
            model: completion.model,
            ms,
            retries,
            discarded: (discarded != Usage::default()).then_some(discarded),
        });
        let summary = parse_reply(&text, &self.parse_options()).text(&text);
        if summary.trim().is_empty() {
            let problem = "the reply to the request for a summary holds no text";
            self.tell(EventBody::LlmFailed {
                call,
                kind: "empty_reply".into(),
                message: problem.into(),
                class: ModelFailureClass::Transient,
                hint: None,
            });
            self.give_up_summary();
            return;
        }
        let prompts = &self.setup.prompts;
        let shown = Message::assistant(prompts.compressed(summary.trim()));
        let note = self.with_findings(&Arc::new(Message::user(prompts.compressed_go_on())));
        let entries = [Arc::new(shown), note].map(|message| {
            let id = self.tell_message(&message);
            HistoryEntry { id, message, pinned: true }
        });
        let compressed = Compressed { through: asked.through, entries: entries.to_vec() };
        self.state.phase = Phase::CheckCompressed(Box::new(Drafted { asked, call, compressed }));
    }

    pub(super) fn summary_failed(&mut self, asked: &Compressing, class: ModelFailureClass) {
        if class == ModelFailureClass::ContextExceeded
            && asked.in_full
            && self.setup.config.keep_tool_result >= 0
        {
            self.state.phase = Phase::Compress(Compressing { in_full: false, ..asked.clone() });
        } else {
            self.give_up_summary();
        }
    }

    /// Goes on without a summary; the next one waits for its turn.
    fn give_up_summary(&mut self) {
        self.state.pass.compressed_at = self.state.pass.turn;
        self.state.pass.compression_failed = true;
        self.state.phase = Phase::AskModel;
    }

    pub(super) fn compression_question(&mut self, drafted: &Compressed) -> CompressionQuestion {
        let keep = self.setup.config.keep_tool_result;
        let before = self.view(false).messages;
        let history = &self.state.pass.history;
        let with_summary: Vec<&HistoryEntry> =
            history.iter().take(1).chain(&drafted.entries).chain(&history[drafted.through..]).collect();
        let after = retention::view(&with_summary, keep, false).messages;
        CompressionQuestion { system: self.system_prompt(), before, after }
    }

    /// Takes the counts of [`super::Step::CountCompression`]: tokens without and with the summary.
    pub fn compression_counted(&mut self, before: u64, after: u64) {
        let Phase::CheckCompressed(drafted) = &self.state.phase else { return };
        let Drafted { asked, call, compressed } = (**drafted).clone();
        let limit = self.setup.config.token_limit;
        let under_limit = after <= limit;
        let again = !under_limit && asked.round < MAX_ROUNDS;
        let adopted = after < before && !again;
        let summed_up = self.state.pass.compressed.as_ref();
        let first = summed_up.map_or(1, |compressed| compressed.through).min(asked.through);
        let earlier = summed_up.map_or(&[][..], |compressed| &compressed.entries);
        let replaced = earlier
            .iter()
            .chain(&self.state.pass.history[first..asked.through])
            .map(|entry| entry.id.clone())
            .collect();
        let message_id = compressed.entries.first().map(|entry| entry.id.clone()).unwrap_or_default();
        self.tell(EventBody::Compressed {
            call,
            message_id,
            replaced,
            before,
            after,
            limit,
            under_limit,
            adopted,
        });
        if again {
            self.state.phase = Phase::Compress(Compressing { round: asked.round + 1, ..asked });
            return;
        }
        let pass = &mut self.state.pass;
        pass.compressed_at = pass.turn;
        pass.compression_failed = !(adopted && under_limit);
        if adopted {
            pass.compressed = Some(compressed);
        }
        self.state.phase = Phase::AskModel;
    }
}
