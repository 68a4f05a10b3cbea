//! What a reply of the model means: a turn with calls, an end, a rollback, or nothing usable.

use core_protocol::event::{ErrorReport, EventBody, RollbackReason, StopReason};
use core_protocol::{
    Completion, ContentBlock, Message, ParseOptions, ParsedReply, Usage, boxed_answer_of_reply,
    correct_server_names, last_boxed, parse_reply,
};
use llm_providers::ToolProtocol;

use super::state::{Phase, TurnCalls};
use super::{Machine, StampedEvent};
use crate::boundaries::{Verdict, format_error, refusal};
use crate::repair;

/// A reply with the figures of its call.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The request that it answers.
    pub call: u64,
    /// The reply.
    pub completion: Completion,
    /// From request to end, in milliseconds.
    pub ms: u64,
    /// Tries that failed before.
    pub retries: u32,
    /// Tokens of whole replies that were thrown away and asked for again.
    pub discarded: Usage,
}

/// A call without a usable reply, its retries spent.
#[derive(Debug, Clone)]
pub struct ModelFailure {
    /// The request that failed.
    pub call: u64,
    /// What can be done about it.
    pub class: ModelFailureClass,
    /// What happened, for users and the log.
    pub report: ErrorReport,
}

pub use core_protocol::event::LlmFailureClass as ModelFailureClass;

impl Machine {
    /// Takes the reply to the last [`super::Step::CallModel`].
    pub fn model_replied(&mut self, reply: ModelReply) {
        self.add_usage(reply.completion.usage);
        self.add_usage(Some(reply.discarded));
        match &self.state.phase {
            Phase::AskModel => self.turn_replied(reply),
            Phase::Compress(asked) => {
                let asked = asked.clone();
                self.summary_replied(asked, reply);
            }
            Phase::Ending(_) => self.ending_replied(reply),
            Phase::RunCalls(_) | Phase::CheckContext(_) | Phase::CheckCompressed(_) | Phase::Finished => {}
        }
    }

    /// Takes the failure of the last [`super::Step::CallModel`].
    pub fn model_failed(&mut self, failure: ModelFailure) {
        let (pass, turn) = self.position();
        let body = EventBody::LlmFailed {
            call: failure.call,
            kind: failure.report.kind.clone(),
            message: failure.report.message.clone(),
            class: failure.class,
            hint: failure.report.hint.clone(),
        };
        self.events.push(StampedEvent { pass, turn, body });
        match &self.state.phase {
            Phase::AskModel => self.turn_failed(failure.class, failure.report),
            Phase::Compress(asked) => {
                let asked = asked.clone();
                self.summary_failed(&asked, failure.class);
            }
            Phase::Ending(_) => self.ending_failed(failure.class, failure.report),
            Phase::RunCalls(_) | Phase::CheckContext(_) | Phase::CheckCompressed(_) | Phase::Finished => {}
        }
    }

    /// Takes note that the request in flight was given up. It counts as asked.
    pub const fn model_cut_off(&mut self) {
        if matches!(self.state.phase, Phase::AskModel) {
            self.state.pass.call_attempts += 1;
        }
    }

    pub(super) fn parse_options<'a>(&'a self) -> ParseOptions<'a> {
        ParseOptions {
            starts_in_thinking: self.setup.starts_in_thinking,
            known_tools: &self.offered,
            ..ParseOptions::new(self.setup.dialect)
        }
    }

    fn turn_replied(&mut self, reply: ModelReply) {
        self.state.pass.call_attempts += 1;
        self.state.pass.turn += 1;
        let ModelReply { call, completion, ms, retries, discarded } = reply;
        let discarded = (discarded != Usage::default()).then_some(discarded);
        let Completion { mut message, finish_reason, usage, model } = completion;
        let text = message.joined_text();
        if text.trim().is_empty() && message.tool_calls.is_empty() {
            let report = ErrorReport {
                kind: "empty_reply".into(),
                message: format!("the model's reply holds no text and no tool call (it ended with {finish_reason:?})"),
                hint: Some("Check the model's chat template and max_tokens; a reasoning model may spend all of its tokens on thinking.".into()),
            };
            let message_id = self.tell_message(&message);
            self.tell(EventBody::LlmResponse {
                call,
                message_id,
                finish_reason,
                usage,
                model,
                ms,
                retries,
                discarded,
            });
            self.tell(EventBody::LlmFailed {
                call,
                kind: report.kind.clone(),
                message: report.message.clone(),
                class: ModelFailureClass::Transient,
                hint: report.hint.clone(),
            });
            self.state.pass.turn -= 1;
            self.unusable(report);
            return;
        }
        let parsed = parse_reply(&text, &self.parse_options());
        let (turn, corrected) = self.plan_calls(&message, &parsed, &text);
        if let Some(corrected) = corrected {
            replace_text(&mut message, corrected);
        }
        if self.setup.protocol == ToolProtocol::Native {
            message.tool_calls.truncate(turn.calls.len());
            for (written, planned) in message.tool_calls.iter_mut().zip(&turn.calls) {
                written.server.clone_from(&planned.call.server);
                written.id.clone_from(&planned.model_id);
            }
        }

        // Only an answer that is to be boxed is noted on the way.
        let boxed = if self.wants_report() { None } else { boxed_answer(&message, &text, &parsed) };
        let message_id = self.push(message);
        self.tell(EventBody::LlmResponse {
            call,
            message_id: message_id.clone(),
            finish_reason,
            usage,
            model,
            ms,
            retries,
            discarded,
        });
        let pass = &mut self.state.pass;
        pass.llm_failures = 0;
        pass.last_error = None;
        pass.hint = None;
        pass.last_usage = usage;
        pass.last_reply_boxed = boxed.is_some();
        if let Some(answer) = boxed {
            pass.boxed = Some((answer.clone(), message_id.clone()));
            self.tell(EventBody::IntermediateAnswer { answer, message_id: message_id.clone() });
        }

        if turn.calls.is_empty() {
            let verdict = self.without_calls(&parsed, &text);
            if verdict == Verdict::Stop(StopReason::Completed) {
                self.state.pass.last_text = Some((message_id, text));
            }
            self.carry_out(verdict);
        } else {
            let verdict = self.check_duplicates(&turn);
            self.state.phase = Phase::RunCalls(turn);
            if verdict == Verdict::Continue {
                self.name_sub_agents();
            }
            self.carry_out(verdict);
        }
    }

    /// What follows from a reply without calls.
    fn without_calls(&self, parsed: &ParsedReply, text: &str) -> Verdict {
        let calls_are_text = self.setup.protocol == ToolProtocol::Text;
        if let Some(problem) = format_error::detect(parsed, calls_are_text) {
            return self.roll_back_or(RollbackReason::FormatError, problem, StopReason::FormatError);
        }
        let said = parsed.text(text);
        if let Some(phrase) = refusal::detect(&said, &self.setup.config.refusal_phrases) {
            let detail = format!("the reply says “{phrase}”");
            return self.roll_back_or(RollbackReason::Refusal, detail, StopReason::Refusal);
        }
        Verdict::Stop(StopReason::Completed)
    }

    fn roll_back_or(&self, reason: RollbackReason, detail: String, stop: StopReason) -> Verdict {
        if self.can_roll_back() { Verdict::Rollback(reason, detail) } else { Verdict::Stop(stop) }
    }

    /// The calls of a reply, mended, and the reply's text with corrected server names where any was wrong.
    fn plan_calls(
        &mut self,
        message: &Message,
        parsed: &ParsedReply,
        text: &str,
    ) -> (TurnCalls, Option<String>) {
        let native = self.setup.protocol == ToolProtocol::Native;
        let written = if native { &message.tool_calls } else { &parsed.calls };
        let mut turn = TurnCalls::default();
        let mut replacements = vec![None; written.len()];
        for (index, call) in written.iter().enumerate() {
            let mut call = call.clone();
            let server = call.server.clone();
            let repairs = repair::repair(&mut call, &self.offered);
            if call.server != server {
                replacements[index] = Some(call.server.clone());
            }
            turn.calls.push(self.plan_call(call, repairs));
        }
        if self.setup.config.tool_calls_per_turn == crate::config::ToolCallsPerTurn::First {
            turn.calls.truncate(1);
        }
        if !turn.calls.is_empty() && !native {
            turn.notes.extend(parsed.malformed.iter().map(|block| {
                format!(
                    "A tool call at line {} of your last message could not be read and was not run: {}. It began: {}",
                    block.line, block.problem, block.excerpt
                )
            }));
        }
        let corrected = (!native && replacements.iter().any(Option::is_some))
            .then(|| correct_server_names(text, parsed, &replacements));
        (turn, corrected)
    }

    fn turn_failed(&mut self, class: ModelFailureClass, report: ErrorReport) {
        self.state.pass.call_attempts += 1;
        match class {
            ModelFailureClass::Permanent => {
                self.state.pass.last_error = Some(report);
                self.stop(StopReason::Error);
            }
            ModelFailureClass::ContextExceeded => {
                self.drop_turn();
                self.state.pass.last_error = Some(report);
                self.stop(StopReason::ContextLimit);
            }
            ModelFailureClass::Transient => self.unusable(report),
        }
    }

    /// A reply that cannot be used: the turn does not count, and too many in a row end the pass.
    fn unusable(&mut self, report: ErrorReport) {
        let pass = &mut self.state.pass;
        pass.llm_failures += 1;
        pass.last_error = Some(report);
        if pass.llm_failures >= self.setup.config.max_llm_failures {
            self.stop(StopReason::Error);
        }
    }
}

/// The boxed answer of a reply: outside thinking; without a box there, in the thinking, whether that stands in the
/// text or was reported apart.
pub(super) fn boxed_answer(message: &Message, text: &str, parsed: &ParsedReply) -> Option<String> {
    boxed_answer_of_reply(text, parsed).or_else(|| {
        let in_text =
            last_boxed(&parsed.text(text)).is_some() || last_boxed(&parsed.thinking(text)).is_some();
        if in_text { None } else { core_protocol::boxed_answer(&message.joined_thinking()) }
    })
}

/// Puts a corrected text in place of a message's text blocks; thinking and media stay where they are.
fn replace_text(message: &mut Message, corrected: String) {
    let mut corrected = Some(corrected);
    message.content.retain_mut(|block| match block {
        ContentBlock::Text { text } => match corrected.take() {
            Some(corrected) => {
                *text = corrected;
                true
            }
            None => false,
        },
        _ => true,
    });
}
