//! Carries out how a pass ends: prepares the history for the final answer or the failure summary, reads what
//! came back, opens the next pass or closes the run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use answer_generator::history::{drop_last_exchange, drop_trailing_user};
use answer_generator::{
    Ending, EndingInput, EndingOutcome, EndingStep, HistoryEntry, PassFacts, citations, final_answer_tries,
    fold_prefix, unreported_failure,
};
use core_protocol::event::{AnswerSource, ErrorReport, EventBody, LlmPurpose, RunStatus, StopReason};
use core_protocol::{Message, ParseOptions, Role, failure_summary_text, parse_reply};

use super::replies::{ModelFailureClass, ModelReply, boxed_answer};
use super::state::{Phase, RunOutcome};
use super::{Agent, Machine, ModelCall};
use crate::config::AnswerFormat;

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
        let boxed = if self.wants_report() {
            self.noted_report()
        } else {
            self.state.pass.boxed.as_ref().map(|(answer, _)| answer.clone())
        };
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

    /// Whether the pass ends in a text rather than in a box.
    pub(super) fn wants_report(&self) -> bool {
        self.setup.agent != Agent::Main || self.setup.config.answer_format == AnswerFormat::Report
    }

    /// What the loop said at its end, where that can stand for the report that cannot be had.
    fn noted_report(&self) -> Option<String> {
        let (_, text) = self.state.pass.last_text.as_ref()?;
        self.report_of(text)
    }

    /// A reply without its thinking and its calls; none where nothing is left.
    fn report_of(&self, text: &str) -> Option<String> {
        let said = parse_reply(text, &self.parse_options()).text(text).trim().to_owned();
        (!said.is_empty()).then_some(said)
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
            LlmPurpose::FinalAnswer | LlmPurpose::Turn | LlmPurpose::Compression => {
                Arc::clone(&self.final_prompt)
            }
        };
        let prompt = self.with_findings(&prompt);
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
        self.state.pass.history.push(HistoryEntry::new(id, message));
    }

    pub(super) fn ending_replied(&mut self, reply: ModelReply) {
        let ModelReply { call, completion, ms, retries, discarded } = reply;
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
            discarded: (discarded != core_protocol::Usage::default()).then_some(discarded),
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
            let answer = if self.wants_report() {
                self.report_of(&text)
            } else {
                let parsed = parse_reply(&text, &self.parse_options());
                boxed_answer(&completion.message, &text, &parsed)
            };
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
                let shrunk =
                    self.last_exchange_is_shown() && drop_last_exchange(&mut self.state.pass.history);
                EndingInput::ContextExceeded { shrunk }
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
                let told = match (summary, self.state.passes.last()) {
                    (None, Some(pass)) if self.setup.config.retry_with_summary => {
                        let text = unreported_failure(pass);
                        self.tell(EventBody::FailureSummary { message_id: None, text: text.clone() });
                        Some(text)
                    }
                    (summary, _) => summary,
                };
                self.state.failures.extend(told);
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
            AnswerSource::Intermediate if !self.wants_report() => {
                self.state.pass.boxed.as_ref().map(|(_, id)| id.clone())
            }
            AnswerSource::Intermediate | AnswerSource::FinalReply | AnswerSource::None => message_id,
        };
        let (answer, citations) = match answer {
            Some(report) if self.setup.agent == Agent::Main && self.wants_report() => {
                let (checked, counts) = citations::check(&report, &self.known_sources());
                (Some(checked), Some(counts))
            }
            answer => (answer, None),
        };
        self.tell(EventBody::FinalAnswer {
            message_id,
            answer: answer.clone(),
            source,
            citations: citations.clone(),
        });
        self.state.outcome = Some(RunOutcome {
            status,
            answer,
            source,
            final_text,
            stop_reason: self.state.pass.stop_reason,
            citations,
            error,
        });
        self.state.phase = Phase::Finished;
    }

    /// What a report may cite: what tools named, and what came with the question.
    fn known_sources(&self) -> BTreeSet<String> {
        let mut sources = self.state.sources.clone();
        let task = &self.state.task;
        citations::collect(&task.question, &mut sources);
        citations::collect(&task.attached_text, &mut sources);
        task.files.iter().for_each(|file| citations::add(file, &mut sources));
        sources
    }
}
