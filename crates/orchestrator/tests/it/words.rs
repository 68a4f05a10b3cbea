//! The words for how a pass ends: which of them mean that a bound cut it short, and which that the run is over.

use core_protocol::event::StopReason::{
    self, Cancelled, Completed, ContextLimit, Error, FormatError, LimitCost, LimitTokens, LimitWall,
    LimitWorkingTime, MaxCallAttempts, MaxTurns, Refusal,
};

#[test]
fn stop_reasons() {
    for (reason, word, capped, ends_the_run) in [
        (Completed, "completed", false, false),
        (MaxTurns, "max_turns", true, false),
        (MaxCallAttempts, "max_call_attempts", true, false),
        (FormatError, "format_error", false, false),
        (Refusal, "refusal", false, false),
        (ContextLimit, "context_limit", true, false),
        (LimitWall, "limit_wall", true, true),
        (LimitWorkingTime, "limit_working_time", true, true),
        (LimitTokens, "limit_tokens", true, true),
        (LimitCost, "limit_cost", true, true),
        (Cancelled, "cancelled", false, false),
        (Error, "error", false, false),
    ] {
        assert_eq!(
            (reason.as_str(), reason.is_capped(), reason.is_run_limit()),
            (word, capped, ends_the_run)
        );
        let written = serde_json::to_value(reason).expect("a word");
        assert_eq!(written, word);
        assert_eq!(serde_json::from_value::<StopReason>(written).expect("a reason"), reason);
    }
}
