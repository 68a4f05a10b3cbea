//! Whether another reply may be asked for: the turns of a pass, and its call attempts.

use core_protocol::event::StopReason;

/// Why the loop may not ask again; none where it may.
///
/// `max_turns` bounds the turns that are kept; `max_turns + extra_call_attempts` bounds the replies asked for,
/// kept or not, so that rollbacks cannot go on for ever.
#[must_use]
pub const fn exhausted(
    turn: u32,
    call_attempts: u32,
    max_turns: u32,
    extra_call_attempts: u32,
) -> Option<StopReason> {
    if turn >= max_turns {
        Some(StopReason::MaxTurns)
    } else if call_attempts >= max_turns.saturating_add(extra_call_attempts) {
        Some(StopReason::MaxCallAttempts)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (turn, attempts, expected) in [
            (0, 0, None),
            (19, 19, None),
            (20, 20, Some(StopReason::MaxTurns)),
            (5, 219, None),
            (5, 220, Some(StopReason::MaxCallAttempts)),
            (20, 220, Some(StopReason::MaxTurns)),
        ] {
            assert_eq!(exhausted(turn, attempts, 20, 200), expected, "{turn} {attempts}");
        }
        assert_eq!(exhausted(0, 0, 0, 200), Some(StopReason::MaxTurns));
        assert_eq!(exhausted(0, u32::MAX, u32::MAX, 200), Some(StopReason::MaxCallAttempts));
    }
}
