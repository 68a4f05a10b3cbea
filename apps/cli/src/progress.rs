//! What a person sees while a run goes on: a line for each step, and a live line that tells what is being waited for.
//! Reads the run's events and nothing else.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use core_protocol::event::{Event, EventBody, LlmFailureClass, LlmPurpose, RunStatus, StopReason};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};

use crate::output::{self, Look, Style, one_line};

/// The agent that was asked, as events name it.
const MAIN: &str = "main";

/// Shows the progress of one run on stderr.
pub(crate) struct Progress {
    style: Style,
    max_turns: u32,
    started: Instant,
    live: Option<ProgressBar>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tokens: u64,
    written: usize,
    /// What the main agent's last request was for.
    purpose: Option<LlmPurpose>,
}

impl Progress {
    pub(crate) fn new(style: Style, max_turns: u32) -> Self {
        let live = (style.terminal && !style.quiet).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(look) = ProgressStyle::with_template("{spinner} {msg} · {elapsed}") {
                bar.set_style(look);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { style, max_turns, started: Instant::now(), live, state: Mutex::new(State::default()) }
    }

    /// Takes the live line away.
    pub(crate) fn finish(&self) {
        if let Some(live) = &self.live {
            live.finish_and_clear();
        }
    }

    /// Shows what an event means to a person.
    pub(crate) fn show(&self, event: &Event) {
        if self.style.quiet {
            return;
        }
        match &event.body {
            EventBody::RunStarted { servers, .. } => {
                for server in servers {
                    match &server.error {
                        Some(error) => self.say(Look::Warning, &format!("! {}: {error}", server.name)),
                        None if self.style.verbose > 0 => {
                            let confined = if server.sandbox.is_empty() {
                                String::new()
                            } else {
                                format!(" (confined by {})", server.sandbox.join(", "))
                            };
                            self.say(
                                Look::Dim,
                                &format!("  {}: {}{confined}", server.name, server.tools.join(", ")),
                            );
                        }
                        None => {}
                    }
                }
            }
            EventBody::LlmRequest { purpose, .. } => {
                {
                    let mut state = self.state();
                    state.written = 0;
                    if event.agent == MAIN {
                        state.purpose = Some(*purpose);
                    }
                }
                self.wait(
                    event,
                    match purpose {
                        LlmPurpose::Turn => "thinking",
                        LlmPurpose::FinalAnswer => "writing the final answer",
                        LlmPurpose::FailureSummary => "summing up what went wrong",
                        LlmPurpose::Compression => "summing up the conversation",
                    },
                );
            }
            EventBody::TextDelta { text } | EventBody::ThinkingDelta { text } => {
                let written = {
                    let mut state = self.state();
                    state.written += text.chars().count();
                    state.written
                };
                self.wait(event, &format!("writing, {written} characters"));
            }
            EventBody::LlmResponse { usage: Some(usage), .. } => {
                self.state().tokens += usage.input + usage.output;
            }
            EventBody::LlmRetry { attempt, message, wait_ms, .. } => self.say(
                Look::Warning,
                &format!(
                    "! try {attempt} failed: {}; next try in {}",
                    one_line(message, 200),
                    seconds(*wait_ms)
                ),
            ),
            // A turn that nothing can cure ends the run, and the error that it ends in says the same.
            EventBody::LlmFailed { class: LlmFailureClass::Permanent, .. }
                if event.agent == MAIN && self.state().purpose == Some(LlmPurpose::Turn) => {}
            EventBody::LlmFailed { message, .. } => {
                self.say(Look::Warning, &format!("! no usable reply: {}", one_line(message, 300)));
            }
            EventBody::ToolCallStarted { server, tool, arguments, .. } => {
                let name = self.style.paint(Look::Name, &format!("{server}.{tool}"));
                let limit = if self.style.verbose > 0 { 2000 } else { 120 };
                self.print(&format!(
                    "{} {name} {}",
                    self.turn(event),
                    one_line(&arguments_text(arguments), limit)
                ));
                self.wait(event, &format!("{server}.{tool}"));
            }
            EventBody::ToolCallFinished { result, error_kind, ms, .. } => {
                let limit = if self.style.verbose > 0 { 2000 } else { 160 };
                let text = one_line(&result.joined_text(), limit);
                match error_kind {
                    None => self.say(Look::Dim, &format!("  ↳ {} · {text}", seconds(*ms))),
                    Some(kind) => self.say(Look::Warning, &format!("  ↳ {} · {kind}: {text}", seconds(*ms))),
                }
            }
            EventBody::Rollback { reason, detail, consecutive, .. } => self.say(
                Look::Warning,
                &format!("↶ {} ({consecutive} in a row): {}", reason.as_str(), one_line(detail, 200)),
            ),
            EventBody::ContextChecked { estimated, limit, over: true, .. } => self
                .say(Look::Warning, &format!("! the context is full: about {estimated} of {limit} tokens")),
            EventBody::SubAgentFinished { id, summary, usage } => self.say(
                Look::Dim,
                &format!(
                    "  {id} ended after {} turns: {} · {} tokens",
                    summary.turns,
                    summary.stop_reason.as_str(),
                    usage.input + usage.output
                ),
            ),
            EventBody::Compressed { before, after, adopted: true, .. } => {
                self.say(Look::Dim, &format!("  summed up: about {before} tokens became {after}"));
            }
            EventBody::Finding { name, .. } => {
                self.say(Look::Dim, &format!("  noted: {}", one_line(name, 120)));
            }
            EventBody::FailureSummary { text, .. } => {
                self.say(Look::Dim, &format!("  failure summary: {}", one_line(text, 300)));
            }
            EventBody::PassFinished { summary } if summary.stop_reason != StopReason::Completed => self.say(
                Look::Warning,
                &format!(
                    "{}pass {} ended after {} turns: {}",
                    if event.agent == MAIN { String::new() } else { format!("{} ", event.agent) },
                    event.pass,
                    summary.turns,
                    summary.stop_reason.as_str()
                ),
            ),
            EventBody::LimitReached { limit, spent, max } => {
                self.say(
                    Look::Warning,
                    &format!("! the limit on {limit} is reached: {spent:.1} of {max:.1}"),
                );
            }
            EventBody::RunFinished(summary) => {
                let ended = match summary.status {
                    RunStatus::Answered => self.style.paint(Look::Good, "answered"),
                    RunStatus::NoAnswer => self.style.paint(Look::Warning, "no answer"),
                    RunStatus::Failed => self.style.paint(Look::Bad, "failed"),
                    RunStatus::Cancelled => self.style.paint(Look::Warning, "interrupted"),
                };
                let cost = summary.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!(" · ${cost:.4}"));
                self.print(&format!(
                    "{ended} · {} turns · {} tool calls · {} tokens{} · {}",
                    summary.turns,
                    summary.tool_calls.total,
                    summary.usage.input + summary.usage.output,
                    cost.unwrap_or_default(),
                    seconds(summary.wall_ms),
                ));
            }
            _ => {}
        }
    }

    fn turn(&self, event: &Event) -> String {
        let place = if event.agent == MAIN {
            format!("[{}/{}]", event.turn, self.max_turns)
        } else {
            format!("[{} {}]", event.agent, event.turn)
        };
        self.style.paint(Look::Dim, &place)
    }

    fn wait(&self, event: &Event, what: &str) {
        if let Some(live) = &self.live {
            let tokens = self.state().tokens;
            let turn = event.turn.max(1);
            let place = if event.agent == MAIN {
                format!("turn {turn}/{}", self.max_turns)
            } else {
                format!("{} turn {turn}", event.agent)
            };
            live.set_message(format!("{place} · {what} · {tokens} tokens"));
        } else if self.style.verbose > 1 {
            output::note(&format!("{:>7.2}s {what}", self.started.elapsed().as_secs_f64()));
        }
    }

    fn say(&self, look: Look, text: &str) {
        self.print(&self.style.paint(look, text));
    }

    fn print(&self, text: &str) {
        match &self.live {
            Some(live) => live.suspend(|| output::note(text)),
            None => output::note(text),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arguments as `name="value"`, the way a person reads them.
fn arguments_text(arguments: &Map<String, Value>) -> String {
    arguments.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn seconds(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}
