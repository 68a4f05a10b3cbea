//! Carries out how a pass ends: prepares the history for the final answer or the failure summary, reads what
//! came back, opens the next pass or closes the run.

use std::sync::Arc;
use std::time::Duration;

use answer_generator::history::{drop_last_exchange, drop_trailing_user};
use answer_generator::{
    Ending, EndingInput, EndingOutcome, EndingStep, HistoryEntry, PassFacts, final_answer_tries, fold_prefix,
};
use core_protocol::event::{AnswerSource, ErrorReport, EventBody, LlmPurpose, RunStatus, StopReason};
use core_protocol::{Message, ParseOptions, Role, failure_summary_text, parse_reply};

use super::replies::{ModelFailureClass, ModelReply, boxed_answer};
use super::state::{Phase, RunOutcome};
use super::{Machine, ModelCall};

impl Machine {
    /// Ends the loop of the pass and decides how the pass ends.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.state.pass.stop_reason = Some(reason);
        if matches!(reason, StopReason::Error | StopReason::Cancelled) {
            let error = self.state.pass.last_error.take();
            let status = if reason == StopReason::Error { RunStatus::Failed } else { RunStatus::Cancelled };
            self.abort(reason, status, error);
            return;
        }
        let config = &self.setup.config;
        let boxed = self.state.pass.boxed.as_ref().map(|(answer, _)| answer.clone());
        if config.skip_final_call
            && reason == StopReason::Completed
            && self.state.pass.last_reply_boxed
            && let Some(answer) = boxed
        {
            self.state.phase = Phase::Ending(Ending::answered(answer));
            return;
        }
        let facts = PassFacts {
            compress: config.context_compress_limit > 0,
            capped: reason.is_capped(),
            last: self.state.pass_number > config.context_compress_limit || reason.is_run_limit(),
        };
        let tries = final_answer_tries(config.keep_tool_result);
        self.state.phase = Phase::Ending(Ending::new(facts, config.retry_with_summary, tries, boxed));
    }

    /// Does one step of the pass's end; the request that it needs, if it needs one.
    pub(super) fn end_pass(&mut self, step: &EndingStep) -> Option<ModelCall> {
        match step {
            EndingStep::AskFinalAnswer => {
                self.prepare(LlmPurpose::FinalAnswer);
                Some(self.ending_request(LlmPurpose::FinalAnswer, None))
            }
            EndingStep::AskFailureSummary => {
                self.prepare(LlmPurpose::FailureSummary);
                let prefix =
                    self.setup.model.assistant_prefix.then(|| self.setup.prompts.failure_summary_prefix());
                Some(self.ending_request(LlmPurpose::FailureSummary, prefix))
            }
            EndingStep::Finished(outcome) => {
                self.close_pass(outcome.clone());
                None
            }
        }
    }

    fn ending_request(&mut self, purpose: LlmPurpose, prefix: Option<String>) -> ModelCall {
        // The tools stay: servers refuse a history with calls in it and no tools, and their caches begin with them.
        self.request(purpose, None, prefix, Duration::ZERO)
    }

    /// Puts the prompt for `purpose` at the end of the history, once.
    fn prepare(&mut self, purpose: LlmPurpose) {
        if self.state.pass.prepared_for == Some(purpose) {
            return;
        }
        self.state.pass.prepared_for = Some(purpose);
        let prompt = match purpose {
            LlmPurpose::FailureSummary => {
                let prompts = &self.setup.prompts;
                let text = prompts.failure_summary();
                Arc::new(Message::user(if self.setup.model.assistant_prefix {
                    text
                } else {
                    fold_prefix(&text, &prompts.failure_summary_prefix())
                }))
            }
            LlmPurpose::FinalAnswer | LlmPurpose::Turn => Arc::clone(&self.final_prompt),
        };
        let history = &mut self.state.pass.history;
        let message = match history.as_slice() {
            // Only the task is there: the prompt joins it, so that files given with it are not lost.
            [task] if task.is(Role::User) => {
                let mut joined = (*task.message).clone();
                joined.content.extend(prompt.content.iter().cloned());
                Arc::new(joined)
            }
            _ => prompt,
        };
        drop_trailing_user(history);
        let id = self.tell_message(&message);
        self.state.pass.history.push(HistoryEntry { id, message });
    }

    pub(super) fn ending_replied(&mut self, reply: ModelReply) {
        let ModelReply { call, completion, ms, retries, discarded: _ } = reply;
        let text = completion.message.joined_text();
        let message_id = self.tell_message(&completion.message);
        self.tell(EventBody::LlmResponse {
            call,
            message_id: message_id.clone(),
            finish_reason: completion.finish_reason,
            usage: completion.usage,
            model: completion.model,
            ms,
            retries,
        });
        self.state.pass.last_error = None;
        let Phase::Ending(mut ending) = self.state.phase.clone() else { return };
        if ending.step() == EndingStep::AskFailureSummary {
            // A prefix has closed the thinking already.
            let starts_in_thinking = self.setup.starts_in_thinking && !self.setup.model.assistant_prefix;
            let options = ParseOptions { starts_in_thinking, ..self.parse_options() };
            let mut summary = failure_summary_text(&text, &options);
            if summary.trim().is_empty() {
                summary = completion.message.joined_thinking();
            }
            ending.observe(EndingInput::Summary { text: &summary });
            let summary = summary.trim().to_owned();
            if !summary.is_empty() {
                self.tell(EventBody::FailureSummary { message_id: Some(message_id), text: summary });
            }
        } else {
            let parsed = parse_reply(&text, &self.parse_options());
            let answer = boxed_answer(&completion.message, &text, &parsed);
            if !text.trim().is_empty() {
                self.state.pass.last_text = Some((message_id, text));
            }
            ending.observe(EndingInput::FinalReply { answer: answer.as_deref() });
        }
        self.state.phase = Phase::Ending(ending);
    }

    pub(super) fn ending_failed(&mut self, class: ModelFailureClass, report: ErrorReport) {
        self.state.pass.last_error = Some(report);
        let input = match class {
            ModelFailureClass::ContextExceeded => {
                EndingInput::ContextExceeded { shrunk: drop_last_exchange(&mut self.state.pass.history) }
            }
            ModelFailureClass::Permanent => EndingInput::Failed { permanent: true },
            ModelFailureClass::Transient => EndingInput::Failed { permanent: false },
        };
        if let Phase::Ending(ending) = &mut self.state.phase {
            ending.observe(input);
        }
    }

    fn close_pass(&mut self, outcome: EndingOutcome) {
        let reason = self.state.pass.stop_reason.unwrap_or(StopReason::Completed);
        self.tell_pass(reason);
        match outcome {
            EndingOutcome::Answer { answer, source } => {
                self.finish(RunStatus::Answered, Some(answer), source, None);
            }
            EndingOutcome::NoAnswer => match self.state.pass.last_error.take() {
                Some(error) => self.finish(RunStatus::Failed, None, AnswerSource::None, Some(error)),
                None => self.finish(RunStatus::NoAnswer, None, AnswerSource::None, None),
            },
            EndingOutcome::NextPass { summary } => {
                self.state.failures.extend(summary);
                self.open_pass();
            }
        }
    }

    fn tell_pass(&mut self, reason: StopReason) {
        let summary = self.pass_summary(reason);
        self.state.passes.push(summary.clone());
        self.tell(EventBody::PassFinished { summary });
    }

    /// Ends the run without asking for an answer; what it had noted is kept.
    pub(super) fn abort(&mut self, reason: StopReason, status: RunStatus, error: Option<ErrorReport>) {
        if self.state.phase == Phase::Finished {
            return;
        }
        self.state.pass.stop_reason = Some(reason);
        self.tell_pass(reason);
        // What the loop had noted is not lost with the run.
        let noted = self.state.pass.boxed.as_ref().map(|(answer, _)| answer.clone());
        let source = if noted.is_some() { AnswerSource::Intermediate } else { AnswerSource::None };
        self.finish(status, noted, source, error);
    }

    fn finish(
        &mut self,
        status: RunStatus,
        answer: Option<String>,
        source: AnswerSource,
        error: Option<ErrorReport>,
    ) {
        let (message_id, final_text) = match self.state.pass.last_text.take() {
            Some((id, text)) => (Some(id), Some(text)),
            None => (None, None),
        };
        let message_id = match source {
            AnswerSource::Intermediate => self.state.pass.boxed.as_ref().map(|(_, id)| id.clone()),
            AnswerSource::FinalReply | AnswerSource::None => message_id,
        };
        self.tell(EventBody::FinalAnswer { message_id, answer: answer.clone(), source });
        self.state.outcome = Some(RunOutcome {
            status,
            answer,
            source,
            final_text,
            stop_reason: self.state.pass.stop_reason,
            error,
        });
        self.state.phase = Phase::Finished;
    }
}
