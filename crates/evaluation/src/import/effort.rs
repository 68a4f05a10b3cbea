//! What a task took, as far as its log says. Decides where turns, calls, tokens and dollars stand in each generation of
//! logs; what stands nowhere is unknown, and no zero.

use core_protocol::event::UsageTotals;
use serde_json::Value;

use super::log::TaskLog;
use crate::sample::Figure;

/// What one try at a task took, or all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Effort {
    pub(super) turns: Option<u32>,
    pub(super) rollbacks: Option<u32>,
    pub(super) tool_calls: Option<u32>,
    pub(super) tokens: Option<UsageTotals>,
    pub(super) cost_usd: Option<f64>,
    pub(super) wall_ms: Option<u64>,
    /// What ended it, where that was a bound.
    pub(super) limit: Option<&'static str>,
}

impl Effort {
    /// This and a later try. What is not known of one of them is not known of both.
    pub(super) fn and(self, later: Self) -> Self {
        let sum = |a: Option<u32>, b: Option<u32>| Some(a?.saturating_add(b?));
        let tokens = self.tokens.zip(later.tokens).map(|(a, b)| UsageTotals {
            input: a.input.saturating_add(b.input),
            output: a.output.saturating_add(b.output),
            cache_read: a.cache_read.saturating_add(b.cache_read),
            cache_write: a.cache_write.saturating_add(b.cache_write),
        });
        Self {
            turns: sum(self.turns, later.turns),
            rollbacks: sum(self.rollbacks, later.rollbacks),
            tool_calls: sum(self.tool_calls, later.tool_calls),
            tokens,
            cost_usd: self.cost_usd.zip(later.cost_usd).map(|(a, b)| a + b),
            wall_ms: self.wall_ms.zip(later.wall_ms).map(|(a, b)| a.saturating_add(b)),
            limit: later.limit,
        }
    }

    /// What is not known. Waiting for limiters is in no log.
    pub(super) fn unknown(&self) -> Vec<Figure> {
        [
            (Figure::Turns, self.turns.is_none()),
            (Figure::Rollbacks, self.rollbacks.is_none()),
            (Figure::ToolCalls, self.tool_calls.is_none()),
            (Figure::Tokens, self.tokens.is_none()),
            (Figure::WallTime, self.wall_ms.is_none()),
            (Figure::WorkingTime, true),
        ]
        .into_iter()
        .filter_map(|(figure, is_unknown)| is_unknown.then_some(figure))
        .collect()
    }

    pub(super) fn of(log: &TaskLog) -> Self {
        let trace = log.get("trace_data");
        let mut steps = Steps::default();
        for step in log.get("step_logs").as_array().into_iter().flatten() {
            steps.read(step);
        }
        let said = steps.usage.unwrap_or_default();
        let turn_id = log.get("current_main_turn_id").as_u64().and_then(|turn| u32::try_from(turn).ok());
        Self {
            turns: steps
                .own
                .map(|(turns, _)| turns)
                .or(steps.turns_told)
                .or(steps.last_turn)
                .or(turn_id.filter(|turn| *turn > 0)),
            rollbacks: steps.has_turns.then_some(steps.rollbacks),
            tool_calls: steps.tool_calls().or_else(|| calls_in_spans(trace)),
            tokens: usage_of_ours(&trace["usage"]).or(said.0),
            cost_usd: trace["cost_usd"].as_f64().or(said.1),
            wall_ms: wall_of(trace).or_else(|| log.milliseconds()),
            limit: steps.limit,
        }
    }
}

/// What the steps of a log say.
#[derive(Debug, Default)]
struct Steps {
    /// Turns and calls, as an export of ours says at its end.
    own: Option<(u32, u32)>,
    turns_told: Option<u32>,
    last_turn: Option<u32>,
    /// Whether turns are told, and with them everything that happens in one.
    has_turns: bool,
    rollbacks: u32,
    calls_begun: u32,
    calls_ended: u32,
    usage: Option<(Option<UsageTotals>, Option<f64>)>,
    limit: Option<&'static str>,
}

impl Steps {
    fn read(&mut self, step: &Value) {
        let name = step["step_name"].as_str().unwrap_or_default();
        // A sign stands before the name in some logs.
        let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        let message = step["message"].as_str().or_else(|| step["msg"].as_str()).unwrap_or_default();
        let of_main = name.starts_with("main");
        self.has_turns |= name.contains("| turn: ");
        if of_main && (name.ends_with("main loop completed") || name == "main_loop_completed") {
            self.turns_told = message.split("after ").nth(1).and_then(number);
        }
        let context_limit =
            of_main && (name.contains("context limit reached") || name.contains("context_limit_reached"));
        let max_turns = name == "max_turns_reached" || (of_main && name.contains("max turns reached"));
        if max_turns {
            self.limit = self.limit.or(Some("max_turns"));
        } else if context_limit {
            // The turn in its name is the last that was allowed, not one that was made.
            self.limit = Some("context_limit");
        } else if let Some(rest) = name.strip_prefix("main agent | turn: ") {
            self.last_turn = self.last_turn.max(number(rest));
        }
        if name.ends_with("| rollback") || message.ends_with("Rollback one round.") {
            self.rollbacks = self.rollbacks.saturating_add(1);
        }
        if name.contains("tool call start") {
            self.calls_begun = self.calls_begun.saturating_add(1);
        } else if name.ends_with("| tool call")
            && message.starts_with("Tool ")
            && (message.contains(" completed in ") || message.contains(" failed to execute"))
        {
            self.calls_ended = self.calls_ended.saturating_add(1);
        }
        if let Some(usage) = message.strip_prefix("Usage log: ") {
            self.usage = Some(usage_in(usage));
        }
        if name == "task_execution_finished" {
            self.own = self.own.or_else(|| own_totals(message));
        }
    }

    fn tool_calls(&self) -> Option<u32> {
        let told = if self.calls_begun > 0 { self.calls_begun } else { self.calls_ended };
        self.own.map(|(_, calls)| calls).or((told > 0 || self.has_turns).then_some(told))
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// `12 turns, 30 tool calls`.
fn own_totals(message: &str) -> Option<(u32, u32)> {
    let (turns, calls) = message.strip_suffix(" tool calls")?.split_once(" turns, ")?;
    Some((turns.parse().ok()?, calls.parse().ok()?))
}

/// `[MODEL] Total Input: 10, Cache Input: 2, Output: 3, …, Cost: $0.0100 USD`. What was written to and read from a cache
/// is counted beside the input where both are told, and within it where they are one figure.
fn usage_in(text: &str) -> (Option<UsageTotals>, Option<f64>) {
    let mut usage = UsageTotals::default();
    let (mut beside, mut cost) = (0, None);
    let figures = text.find("Total Input:").and_then(|at| text.get(at..)).unwrap_or_default();
    for figure in figures.split(", ") {
        let Some((name, value)) = figure.split_once(": ") else { continue };
        let count = value.trim().parse().unwrap_or(0_u64);
        match name.trim() {
            "Total Input" => usage.input = count,
            "Cache Input" => usage.cache_read = count,
            "Cache Read" => {
                usage.cache_read = count;
                beside += count;
            }
            "Cache Creation" => {
                usage.cache_write = count;
                beside += count;
            }
            "Output" => usage.output = count,
            "Cost" => cost = value.trim_start_matches('$').trim_end_matches("USD").trim().parse::<f64>().ok(),
            _ => {}
        }
    }
    usage.input = usage.input.saturating_add(beside);
    let is_told = usage.input > 0 || usage.output > 0;
    // A model without a price costs nothing there.
    (is_told.then_some(usage), cost.filter(|cost| *cost > 0.0))
}

fn usage_of_ours(usage: &Value) -> Option<UsageTotals> {
    serde_json::from_value(usage.clone()).ok()
}

fn wall_of(trace: &Value) -> Option<u64> {
    let seconds = trace["performance_summary"]["total_wall_time"].as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded right above")]
    let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
    (seconds > 0.0 && seconds < 1e9).then(|| ms(seconds))
}

/// Calls as one generation times them: every span that is no reply of a model and no sub-agent.
fn calls_in_spans(trace: &Value) -> Option<u32> {
    let spans = trace["spans"].as_array().filter(|spans| !spans.is_empty())?;
    let is_call = |span: &&Value| {
        span["name"].as_str().is_some_and(|name| name != "generation_span" && !name.contains("agent-"))
    };
    u32::try_from(spans.iter().filter(is_call).count()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn effort(log: &Value) -> Effort {
        Effort::of(&serde_json::from_value(log.clone()).unwrap())
    }

    #[test]
    fn usage_lines() {
        let tokens = |input, output, cache_read, cache_write| {
            Some(UsageTotals { input, output, cache_read, cache_write })
        };
        for (text, expected) in [
            ("[m] Total Input: 10, Cache Input: 2, Output: 3", (tokens(10, 3, 2, 0), None)),
            ("[m] Total Input: 10, Cache Creation: 4, Cache Read: 5, Output: 3", (tokens(19, 3, 5, 4), None)),
            (
                "[OpenRouter/m] Total Input: 10, Cache Input: 0, Output: 3, Input Price: $1.0000 USD, Cost: $0.1250 USD",
                (tokens(10, 3, 0, 0), Some(0.125)),
            ),
            (
                "[m] Total Input: 10, Cache Input: 0, Output: 3, Cost: $0.0000 USD",
                (tokens(10, 3, 0, 0), None),
            ),
            ("[m] Total Input: 0, Cache Input: 0, Output: 0", (None, None)),
            ("Token usage information not available.", (None, None)),
        ] {
            assert_eq!(usage_in(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_told_is_nothing_known() {
        let all = [
            Figure::Turns,
            Figure::Rollbacks,
            Figure::ToolCalls,
            Figure::Tokens,
            Figure::WallTime,
            Figure::WorkingTime,
        ];
        for log in [
            json!({}),
            json!({"step_logs": [], "current_main_turn_id": 0, "trace_data": {}}),
            json!({"step_logs": [{"type": "span_start"}, 7, null], "trace_data": null}),
            json!({"step_logs": {"step_name": "Main Agent | Turn: 3"}, "trace_data": {"spans": []}}),
        ] {
            assert_eq!(effort(&log).unknown(), all, "{log}");
        }
    }

    #[test]
    fn turns_calls_and_limits() {
        let step = |name: &str, message: &str| json!({"step_name": name, "message": message});
        for (steps, expected) in [
            // Turns that were made; the one that stands in the name of a limit was not.
            (
                vec![
                    step("👑 Main Agent | Turn: 1", "Starting turn 1"),
                    step("🔧 Main Agent | Turn: 1 | Tool Call", "Tool search completed in 12ms"),
                    step("❌ Main Agent | Turn: 1 | Tool Call", "Tool read failed to execute: no"),
                    step("agent-browsing | Turn: 9 | Tool Call", "Executing search on tool-google-search"),
                    step("Main Agent | Turn: 2 | Rollback", "Tool call format incorrect"),
                    step("Main Agent | Turn: 200 | Context Limit Reached", "Context limit reached"),
                    step(
                        "Main Agent | Max Turns Reached / Context Limit Reached",
                        "Reached maximum turns (200)",
                    ),
                ],
                (Some(2), Some(1), Some(2), Some("context_limit")),
            ),
            (
                vec![
                    step("🔧 ToolManager | Tool Call Start", "Connecting to 'a' to call tool 'b'"),
                    step("Main Agent | Turn: 4 | LLM Call", "The format is incorrect. Rollback one round."),
                    step("agent-browsing | Main Loop Completed", "Main loop completed after 7 turns"),
                    step("👑 Main Agent | Main Loop Completed", "Main loop completed after 5 turns"),
                ],
                (Some(5), Some(1), Some(1), None),
            ),
            (
                vec![
                    step("main_loop_completed", "Main loop completed after 6 turns"),
                    step("max_turns_reached", "Reached maximum turns (20)"),
                ],
                (Some(6), None, None, Some("max_turns")),
            ),
            (
                vec![
                    step("Main Agent | Turn: 3 | Tool Call Start", "server.tool"),
                    step("task_execution_finished", "8 turns, 9 tool calls"),
                ],
                (Some(8), Some(0), Some(9), None),
            ),
        ] {
            let effort = effort(&json!({"step_logs": steps}));
            let told = (effort.turns, effort.rollbacks, effort.tool_calls, effort.limit);
            assert_eq!(told, expected, "{steps:?}");
        }
        let spans = json!({"trace_data": {"spans": [
            {"name": "generation_span"}, {"name": "tool-a.search"}, {"name": "agent-browsing.search"},
        ], "performance_summary": {"total_wall_time": 1.5}}});
        assert_eq!((effort(&spans).tool_calls, effort(&spans).wall_ms), (Some(1), Some(1500)));
    }
}
