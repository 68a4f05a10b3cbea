//! What the next pass is told of one that failed and could not be summed up: how it ended, in the form of a summary.

use core_protocol::event::{PassSummary, StopReason};

/// Failure type and what happened, by stop reason.
const ENDINGS: &[(StopReason, &str, &str)] = &[
    (
        StopReason::Completed,
        "format_missed",
        "it came to an end, and no answer could be read from its last reply",
    ),
    (StopReason::MaxTurns, "incomplete", "it used up all of its turns"),
    (StopReason::MaxCallAttempts, "incomplete", "too many of its replies had to be dropped"),
    (StopReason::FormatError, "format_missed", "its tool calls could not be read, several times in a row"),
    (StopReason::Refusal, "blocked", "it declined the task, several times in a row"),
    (StopReason::ContextLimit, "incomplete", "the conversation grew longer than the model's window"),
    (StopReason::LimitWall, "incomplete", "the time of the run was used up"),
    (StopReason::LimitTokens, "incomplete", "the tokens of the run were used up"),
    (StopReason::LimitCost, "incomplete", "the money of the run was used up"),
    (StopReason::Cancelled, "incomplete", "it was stopped"),
    (StopReason::Error, "blocked", "the model could not be used"),
];

/// A failure summary that is made without the model, for a pass of these figures.
#[must_use]
pub fn unreported_failure(pass: &PassSummary) -> String {
    let (kind, happened) = ENDINGS
        .iter()
        .find(|(reason, ..)| *reason == pass.stop_reason)
        .map_or(("incomplete", "it ended"), |(_, kind, happened)| (*kind, *happened));
    format!(
        "Failure type: {kind}\n\nWhat happened: after {} turns {happened}. No report of it could be written.\n\n\
         Useful findings: none were kept.",
        pass.turns
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_words() {
        for (reason, expected) in [
            (StopReason::Completed, "format_missed"),
            (StopReason::MaxTurns, "incomplete"),
            (StopReason::MaxCallAttempts, "incomplete"),
            (StopReason::FormatError, "format_missed"),
            (StopReason::Refusal, "blocked"),
            (StopReason::ContextLimit, "incomplete"),
            (StopReason::LimitWall, "incomplete"),
            (StopReason::LimitTokens, "incomplete"),
            (StopReason::LimitCost, "incomplete"),
            (StopReason::Cancelled, "incomplete"),
            (StopReason::Error, "blocked"),
        ] {
            let pass = PassSummary { stop_reason: reason, turns: 7, call_attempts: 9, rollbacks: 2 };
            let text = unreported_failure(&pass);
            assert!(text.starts_with(&format!("Failure type: {expected}\n")), "{text}");
            assert!(text.contains("after 7 turns") && !text.contains("it ended."), "{text}");
        }
    }
}
