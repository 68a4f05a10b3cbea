//! Makes the requests: which tools and messages each shows, what is said in it once, and how it is told.

use std::sync::Arc;
use std::time::Duration;

use answer_generator::HistoryEntry;
use core_protocol::event::{EventBody, LlmPurpose};
use core_protocol::{ContentBlock, Message, Role, ToolDefinition};
use llm_providers::ToolProtocol;

use super::{ContextQuestion, Machine, ModelCall, StampedEvent};
use crate::retention::{self, View};

/// What the requests of a stretch of turns have in common.
pub(super) struct Showing {
    /// The shown tools by position.
    indices: Vec<u32>,
    /// Names of those that are not shown.
    hidden: Vec<String>,
    tools: Arc<[ToolDefinition]>,
    system: Arc<str>,
}

impl Machine {
    /// The system prompt as the next request sends it.
    #[must_use]
    pub fn system_prompt(&mut self) -> Arc<str> {
        Arc::clone(&self.showing().system)
    }

    /// The tools as the next turn shows them; the requests that end a pass show those of its last turn.
    fn showing(&mut self) -> &Showing {
        let turn = self.state.pass.turn + u32::from(matches!(self.state.phase, super::Phase::AskModel));
        let indices = match (&self.selection, &self.showing) {
            (None, Some(_)) => None,
            (None, None) => Some((0u32..).take(self.offered.len()).collect()),
            (Some(selection), Some(showing)) => {
                Some(selection.shown(turn.max(1))).filter(|indices| *indices != showing.indices)
            }
            (Some(selection), None) => Some(selection.shown(turn.max(1))),
        };
        let known = self.showing.take();
        let showing = match (indices, known) {
            (None, Some(known)) => known,
            (indices, _) => self.show(indices.unwrap_or_default()),
        };
        self.showing.insert(showing)
    }

    fn show(&self, indices: Vec<u32>) -> Showing {
        let position = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let (mut tools, mut hidden) = (Vec::with_capacity(indices.len()), Vec::new());
        for (index, tool) in self.offered.iter().enumerate() {
            if indices.contains(&position(index)) {
                tools.push(tool.clone());
            } else {
                hidden.push(format!("{}.{}", tool.server, tool.name));
            }
        }
        let section = match self.setup.protocol {
            ToolProtocol::Text => core_protocol::render_tool_section(
                self.setup.dialect,
                &tools,
                self.setup.config.schema_style.into(),
            ),
            ToolProtocol::Native => String::new(),
        };
        Showing { indices, hidden, tools: tools.into(), system: self.setup.prompts.system(&section).into() }
    }

    /// Tells the system prompt where it is not the one that was told last.
    pub(super) fn tell_system(&mut self) {
        let showing = self.showing();
        let (indices, system) = (showing.indices.clone(), Arc::clone(&showing.system));
        let told = self.state.shown.as_ref();
        let tools_are_in_it = self.setup.protocol == ToolProtocol::Text;
        let changed = told.is_none_or(|told| tools_are_in_it && *told != indices);
        if changed {
            let (pass, turn) = self.position();
            let turn = if told.is_none() { 0 } else { turn };
            let body = EventBody::SystemPrompt { text: system.to_string() };
            self.events.push(StampedEvent { pass, turn, body });
        }
        self.state.shown = Some(indices);
    }

    pub(super) fn ask_for_turn(&mut self) -> ModelCall {
        let failures = self.state.pass.llm_failures;
        let pause = if failures > 0 { pause_of(self.setup.config.llm_retry_pause) } else { Duration::ZERO };
        let hint = self.state.pass.hint.clone();
        self.request(LlmPurpose::Turn, hint, None, pause)
    }

    /// Makes a request from the retained view of the history. `hint` is said in the last message, `prefix` is the
    /// beginning of the reply; neither is kept.
    pub(super) fn request(
        &mut self,
        purpose: LlmPurpose,
        hint: Option<String>,
        prefix: Option<String>,
        pause: Duration,
    ) -> ModelCall {
        let view = self.view(purpose != LlmPurpose::Turn);
        self.request_with(purpose, view, hint, prefix, pause)
    }

    /// What a request shows of the history now.
    pub(super) fn view(&self, prompt_last: bool) -> View {
        let history = self.history(self.state.pass.history.len());
        retention::view(&history, self.setup.config.keep_tool_result, prompt_last)
    }

    /// The history up to a position, with the summary in the place of what it stands for.
    pub(super) fn history(&self, end: usize) -> Vec<&HistoryEntry> {
        let pass = &self.state.pass;
        match &pass.compressed {
            Some(compressed) if compressed.through <= end => pass
                .history
                .iter()
                .take(1)
                .chain(&compressed.entries)
                .chain(&pass.history[compressed.through..end])
                .collect(),
            _ => pass.history[..end].iter().collect(),
        }
    }

    /// Whether the last reply of the history is shown as it is, so that dropping it makes requests shorter.
    pub(super) fn last_exchange_is_shown(&self) -> bool {
        let pass = &self.state.pass;
        let last = pass.history.iter().rposition(|entry| entry.is(Role::Assistant));
        let through = pass.compressed.as_ref().map_or(0, |compressed| compressed.through);
        last.is_some_and(|last| last >= through)
    }

    /// Makes a request that shows the given messages.
    pub(super) fn request_with(
        &mut self,
        purpose: LlmPurpose,
        mut view: View,
        hint: Option<String>,
        prefix: Option<String>,
        pause: Duration,
    ) -> ModelCall {
        self.tell_system();
        let protocol = self.setup.protocol;
        let no_tools = Arc::clone(&self.no_tools);
        let Showing { tools, system, hidden, .. } = self.showing();
        let (count, hidden, system) = (tools.len(), hidden.clone(), Arc::clone(system));
        let tools = match protocol {
            ToolProtocol::Text => no_tools,
            ToolProtocol::Native => Arc::clone(tools),
        };
        let call = self.state.requests;
        self.state.requests += 1;
        if let Some(hint) = &hint {
            retention::append_hint(&mut view.messages, hint);
        }
        let continue_final_message = prefix.is_some();
        if let Some(prefix) = &prefix {
            view.messages.push(Arc::new(Message::assistant(prefix.clone())));
        }
        let body = EventBody::LlmRequest {
            call,
            purpose,
            view: view.ids,
            omitted: view.omitted,
            transient: hint.or(prefix),
            params: self.setup.params.clone(),
            tools: count,
            hidden,
        };
        let (pass, turn) = self.position();
        self.events.push(StampedEvent { pass, turn, body });
        ModelCall { call, purpose, pause, system, messages: view.messages, continue_final_message, tools }
    }

    pub(super) fn context_question(&mut self, results: usize) -> ContextQuestion {
        let history = &self.state.pass.history;
        let first = history.len().saturating_sub(results);
        let last_exchange = self.state.pass.last_usage.is_none().then(|| {
            retention::view(&self.history(first), self.setup.config.keep_tool_result, false).messages
        });
        let results = history[first..].iter().map(|entry| Arc::clone(&entry.message)).collect();
        let final_prompt = self.with_findings(&self.final_prompt);
        ContextQuestion { results, final_prompt, last_exchange, system: self.system_prompt() }
    }

    /// A prompt with the noted facts after it.
    pub(super) fn with_findings(&self, prompt: &Arc<Message>) -> Arc<Message> {
        if self.state.findings.is_empty() {
            return Arc::clone(prompt);
        }
        let mut message = (**prompt).clone();
        let listed = self.setup.prompts.findings(&self.state.findings);
        match message.content.last_mut() {
            Some(ContentBlock::Text { text }) => {
                text.push_str("\n\n");
                text.push_str(&listed);
            }
            _ => message.content.push(ContentBlock::text(listed)),
        }
        Arc::new(message)
    }
}

/// Seconds from the configuration as a duration; nonsense counts as none.
fn pause_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl From<crate::config::SchemaStyle> for core_protocol::SchemaStyle {
    fn from(style: crate::config::SchemaStyle) -> Self {
        match style {
            crate::config::SchemaStyle::Json => Self::Json,
            crate::config::SchemaStyle::Python => Self::Python,
        }
    }
}
