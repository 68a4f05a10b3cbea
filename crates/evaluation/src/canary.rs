//! Whether a tool showed a run its own benchmark: publishers put a string into their files that stands nowhere else.
//! Decides what is searched (every tool result of a run, blobs included) and what counts as a find.

use std::collections::BTreeSet;
use std::path::Path;

use core_protocol::event::EventBody;
use pipeline::log::RunRecord;

use crate::dataset::Task;

/// Shorter strings stand in texts by chance.
const SHORTEST: usize = 16;

/// Strings that must not stand in a tool's result.
#[derive(Debug, Clone, Default)]
pub struct Canaries(BTreeSet<String>);

impl Canaries {
    /// The canaries of a suite's tasks (`canary` of a task or of its `metadata`) and further ones. Those of fewer than
    /// 16 bytes are left out.
    #[must_use]
    pub fn new<'a>(tasks: impl IntoIterator<Item = &'a Task>, further: &[String]) -> Self {
        let of_task = |task: &'a Task| {
            let inside = task.metadata.get("metadata").and_then(|metadata| metadata.get("canary"));
            [task.metadata.get("canary"), inside].into_iter().flatten().filter_map(|canary| canary.as_str())
        };
        let all = tasks.into_iter().flat_map(of_task).chain(further.iter().map(String::as_str));
        Self(all.map(str::trim).filter(|canary| canary.len() >= SHORTEST).map(str::to_owned).collect())
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was found in a text.
    #[must_use]
    pub fn in_text(&self, text: &str) -> Option<&str> {
        self.0.iter().find(|canary| text.contains(canary.as_str())).map(String::as_str)
    }

    /// The first find in the results of a run's tools, in words. A log that cannot be read holds none.
    #[must_use]
    pub fn found_in(&self, run_dir: &Path) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let record = RunRecord::read(run_dir).ok()?;
        record.valid_events().find_map(|event| match &event.body {
            EventBody::ToolCallFinished { call_id, result, .. } => {
                let canary = self.in_text(&result.joined_text())?;
                let shown: String = canary.chars().take(40).collect();
                Some(format!("the result of tool call {call_id} holds the canary {shown:?}"))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_of_tasks_and_others() {
        let task = |json: &str| -> Task {
            Task {
                task_id: "a".into(),
                question: "Q".into(),
                ground_truth: None,
                aliases: Vec::new(),
                files: Vec::new(),
                metadata: serde_json::from_str(json).unwrap(),
            }
        };
        let tasks = [
            task(r#"{"canary": "BENCH:canary-0123456789"}"#),
            task(r#"{"metadata": {"canary": "inside-canary-0123456789"}}"#),
            task(r#"{"canary": "short"}"#),
        ];
        let canaries = Canaries::new(&tasks, &["further canary string".to_owned()]);
        for (text, expected) in [
            ("… BENCH:canary-0123456789 …", Some("BENCH:canary-0123456789")),
            ("inside-canary-0123456789", Some("inside-canary-0123456789")),
            ("a further canary string", Some("further canary string")),
            ("short", None),
            ("bench:canary", None),
        ] {
            assert_eq!(canaries.in_text(text), expected, "{text}");
        }
        assert!(Canaries::new(&tasks[2..], &[]).is_empty());
    }
}
