//! Decides how a pass ends once its loop has stopped: ask for the final answer, sum the failure up for a
//! next pass, or give up. Pure: replies go in, the next step comes out.
//!
//! What is sent for each step is left to [`crate::history`] and to the caller, who owns the history.

use core_protocol::event::AnswerSource;
use serde::{Deserialize, Serialize};

/// Times that a request which exceeds the context is made smaller and sent again.
pub const MAX_CONTEXT_DROPS: u32 = 3;

/// What a pass is known to be when its loop has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassFacts {
    /// Further passes are configured (`context_compress_limit` above 0).
    pub compress: bool,
    /// A bound cut the loop short.
    pub capped: bool,
    /// No further pass is possible: none is left, or a limit of the run was reached.
    pub last: bool,
}

/// How a pass is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// Ask; without a box take the last intermediate answer; the run ends here.
    AskWithFallback,
    /// Ask; without a box sum the failure up and begin the next pass.
    AskOrNextPass,
    /// Do not ask, the answer would be a guess: sum the failure up and begin the next pass.
    NextPass,
}

/// The fallback table.
///
/// | compress | capped | last | plan |
/// |---|---|---|---|
/// | off | any | any | ask, fall back to the last intermediate answer |
/// | on | no | no | ask, no fallback, next pass |
/// | on | yes | no | next pass without asking |
/// | on | any | yes | ask, fall back to the last intermediate answer |
#[must_use]
pub const fn plan(facts: PassFacts) -> Plan {
    match (facts.compress, facts.capped, facts.last) {
        (false, _, _) | (true, _, true) => Plan::AskWithFallback,
        (true, false, false) => Plan::AskOrNextPass,
        (true, true, false) => Plan::NextPass,
    }
}

/// How many replies may be asked for: a full history can be asked again, a trimmed one is asked once.
#[must_use]
pub const fn final_answer_tries(keep_tool_result: i64) -> u32 {
    if keep_tool_result < 0 { 3 } else { 1 }
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndingStep {
    /// Ask for the final answer.
    AskFinalAnswer,
    /// Ask for the failure summary.
    AskFailureSummary,
    /// The pass is over.
    Finished(EndingOutcome),
}

/// How a pass came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingOutcome {
    /// There is an answer.
    Answer {
        /// The short answer.
        answer: String,
        /// Where it was taken from.
        source: AnswerSource,
    },
    /// There is none, and the run ends.
    NoAnswer,
    /// There is none, and another pass begins.
    NextPass {
        /// What is to be told to it.
        summary: Option<String>,
    },
}

/// What came back for the last request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndingInput<'a> {
    /// A reply to the final-answer prompt, with its boxed answer, if it has one.
    FinalReply {
        /// The boxed answer.
        answer: Option<&'a str>,
    },
    /// A failure summary; empty where none could be read.
    Summary {
        /// Its text.
        text: &'a str,
    },
    /// The request was longer than the context. `shrunk` tells whether something could be dropped.
    ContextExceeded {
        /// Whether the history is smaller now.
        shrunk: bool,
    },
    /// No usable reply came. `permanent` tells that asking again cannot help.
    Failed {
        /// Whether retrying is pointless.
        permanent: bool,
    },
}

/// The end of one pass as a machine of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    plan: Plan,
    summarise: bool,
    stage: Stage,
    tries_left: u32,
    drops_left: u32,
    intermediate: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Answer,
    Summary,
    Finished(EndingOutcome),
}

impl Ending {
    /// Begins the end of a pass.
    ///
    /// `summarise` is the setting `retry_with_summary`; `intermediate` the last boxed answer that the loop
    /// noted; `tries` comes from [`final_answer_tries`].
    #[must_use]
    pub fn new(facts: PassFacts, summarise: bool, tries: u32, intermediate: Option<String>) -> Self {
        let plan = plan(facts);
        let mut ending = Self {
            plan,
            summarise,
            stage: Stage::Answer,
            tries_left: tries.max(1),
            drops_left: MAX_CONTEXT_DROPS,
            intermediate,
        };
        if plan == Plan::NextPass {
            ending.begin_summary();
        }
        ending
    }

    /// The end of a pass whose last reply already held the answer.
    #[must_use]
    pub fn answered(answer: String) -> Self {
        Self {
            plan: Plan::AskWithFallback,
            summarise: false,
            stage: Stage::Finished(EndingOutcome::Answer { answer, source: AnswerSource::FinalReply }),
            tries_left: 0,
            drops_left: 0,
            intermediate: None,
        }
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> EndingStep {
        match &self.stage {
            Stage::Answer => EndingStep::AskFinalAnswer,
            Stage::Summary => EndingStep::AskFailureSummary,
            Stage::Finished(outcome) => EndingStep::Finished(outcome.clone()),
        }
    }

    /// Takes what came back.
    pub fn observe(&mut self, input: EndingInput<'_>) {
        match (&self.stage, input) {
            (Stage::Finished(_), _) => {}
            (Stage::Answer, EndingInput::FinalReply { answer: Some(answer) }) => {
                self.stage = Stage::Finished(EndingOutcome::Answer {
                    answer: answer.to_owned(),
                    source: AnswerSource::FinalReply,
                });
            }
            (Stage::Summary, EndingInput::Summary { text }) => {
                let text = text.trim();
                self.next_pass((!text.is_empty()).then(|| text.to_owned()));
            }
            (Stage::Answer, EndingInput::ContextExceeded { shrunk }) => {
                if shrunk && self.drops_left > 0 {
                    self.drops_left -= 1;
                } else {
                    self.no_box();
                }
            }
            (Stage::Summary, EndingInput::ContextExceeded { shrunk }) => {
                if shrunk && self.drops_left > 0 {
                    self.drops_left -= 1;
                } else {
                    self.next_pass(None);
                }
            }
            (Stage::Answer, EndingInput::Failed { permanent: true }) => self.no_box(),
            (
                Stage::Answer,
                EndingInput::FinalReply { answer: None }
                | EndingInput::Failed { .. }
                | EndingInput::Summary { .. },
            ) => {
                self.tries_left = self.tries_left.saturating_sub(1);
                if self.tries_left == 0 {
                    self.no_box();
                }
            }
            (Stage::Summary, EndingInput::Failed { .. } | EndingInput::FinalReply { .. }) => {
                self.next_pass(None);
            }
        }
    }

    fn no_box(&mut self) {
        match self.plan {
            Plan::AskWithFallback => {
                let outcome = self.intermediate.take().map_or(EndingOutcome::NoAnswer, |answer| {
                    EndingOutcome::Answer { answer, source: AnswerSource::Intermediate }
                });
                self.stage = Stage::Finished(outcome);
            }
            Plan::AskOrNextPass | Plan::NextPass => self.begin_summary(),
        }
    }

    fn begin_summary(&mut self) {
        self.drops_left = MAX_CONTEXT_DROPS;
        if self.summarise {
            self.stage = Stage::Summary;
        } else {
            self.next_pass(None);
        }
    }

    fn next_pass(&mut self, summary: Option<String>) {
        self.stage = Stage::Finished(EndingOutcome::NextPass { summary });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn facts(compress: bool, capped: bool, last: bool) -> PassFacts {
        PassFacts { compress, capped, last }
    }

    #[test]
    fn fallback_table() {
        use Plan::{AskOrNextPass, AskWithFallback, NextPass};
        for (compress, capped, last, expected) in [
            (false, false, false, AskWithFallback),
            (false, true, false, AskWithFallback),
            (false, false, true, AskWithFallback),
            (false, true, true, AskWithFallback),
            (true, false, false, AskOrNextPass),
            (true, true, false, NextPass),
            (true, false, true, AskWithFallback),
            (true, true, true, AskWithFallback),
        ] {
            assert_eq!(plan(facts(compress, capped, last)), expected, "{compress} {capped} {last}");
        }
    }

    fn check(mut ending: Ending, inputs: &[EndingInput<'_>], expected: &[EndingStep]) {
        let mut steps = vec![ending.step()];
        for input in inputs {
            ending.observe(input.clone());
            steps.push(ending.step());
        }
        assert_eq!(steps, expected);
    }

    fn answer(text: &str, source: AnswerSource) -> EndingStep {
        EndingStep::Finished(EndingOutcome::Answer { answer: text.to_owned(), source })
    }

    const NO_BOX: EndingInput<'static> = EndingInput::FinalReply { answer: None };
    const ASK: EndingStep = EndingStep::AskFinalAnswer;

    #[test]
    fn a_box_ends_it() {
        let ending = Ending::new(facts(false, false, true), true, 3, None);
        check(
            ending,
            &[EndingInput::FinalReply { answer: Some("42") }],
            &[ASK, answer("42", AnswerSource::FinalReply)],
        );
    }

    #[test]
    fn three_replies_without_a_box_fall_back() {
        let ending = Ending::new(facts(false, true, true), true, 3, Some("17".into()));
        check(ending, &[NO_BOX, NO_BOX, NO_BOX], &[ASK, ASK, ASK, answer("17", AnswerSource::Intermediate)]);
    }

    #[test]
    fn nothing_to_fall_back_to() {
        let ending = Ending::new(facts(false, false, true), true, 1, None);
        check(ending, &[NO_BOX], &[ASK, EndingStep::Finished(EndingOutcome::NoAnswer)]);
    }

    #[test]
    fn no_fallback_while_passes_remain() {
        let ending = Ending::new(facts(true, false, false), true, 1, Some("17".into()));
        check(
            ending,
            &[NO_BOX, EndingInput::Summary { text: " blocked \n" }],
            &[
                ASK,
                EndingStep::AskFailureSummary,
                EndingStep::Finished(EndingOutcome::NextPass { summary: Some("blocked".into()) }),
            ],
        );
    }

    #[test]
    fn a_capped_pass_is_not_asked() {
        let ending = Ending::new(facts(true, true, false), true, 3, Some("17".into()));
        check(
            ending,
            &[EndingInput::Failed { permanent: false }],
            &[EndingStep::AskFailureSummary, EndingStep::Finished(EndingOutcome::NextPass { summary: None })],
        );
        let silent = Ending::new(facts(true, true, false), false, 3, None);
        check(silent, &[], &[EndingStep::Finished(EndingOutcome::NextPass { summary: None })]);
    }

    #[test]
    fn context_is_shrunk_three_times_at_most() {
        let ending = Ending::new(facts(false, true, true), true, 3, Some("17".into()));
        let exceeded = EndingInput::ContextExceeded { shrunk: true };
        check(
            ending.clone(),
            &[exceeded.clone(), exceeded.clone(), exceeded.clone(), exceeded],
            &[ASK, ASK, ASK, ASK, answer("17", AnswerSource::Intermediate)],
        );
        check(
            ending,
            &[EndingInput::ContextExceeded { shrunk: false }],
            &[ASK, answer("17", AnswerSource::Intermediate)],
        );
    }

    #[test]
    fn a_permanent_failure_is_not_asked_again() {
        let ending = Ending::new(facts(false, false, true), true, 3, None);
        check(
            ending,
            &[EndingInput::Failed { permanent: true }],
            &[ASK, EndingStep::Finished(EndingOutcome::NoAnswer)],
        );
    }
}
