//! What stands in a task log. Decides which fields are read and what they are called in each generation of logs; a field
//! of another type than it should have says nothing, and spoils no other.

use jiff::tz::Offset;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The fields of a log that say something about its task. Histories of messages, which are most of a log, are not kept.
#[derive(Debug)]
pub(super) struct TaskLog(Map<String, Value>);

const KEPT: [&str; 19] = [
    "current_main_turn_id",
    "end_time",
    "env_info",
    "error",
    "eval_details",
    "final_boxed_answer",
    "final_judge_result",
    "ground_truth",
    "input",
    "judge_result",
    "judge_type",
    "llm_as_judge_result",
    "start_time",
    "status",
    "step_logs",
    "task_description",
    "task_id",
    "trace_data",
    "verifier_name",
];

/// Where the newest logs keep the fields that say what became of the task.
const META: &str = "task_meta";

impl<'de> Deserialize<'de> for TaskLog {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = TaskLog;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the fields of a task log")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TaskLog, A::Error> {
                let mut kept = Map::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == META {
                        if let Value::Object(fields) = map.next_value()? {
                            kept.extend(fields);
                        }
                    } else if KEPT.contains(&name.as_str()) {
                        let value = map.next_value()?;
                        kept.entry(name).or_insert(value);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(TaskLog(kept))
            }
        }
        from.deserialize_map(Fields)
    }
}

impl TaskLog {
    pub(super) fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// The first of the fields that says something.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| crate::records::scalar_text(self.get(name)))
    }

    pub(super) fn status(&self) -> String {
        self.text(&["status"]).unwrap_or_default().to_lowercase()
    }

    /// The question, without what was learnt in former tries, which stands behind it in the log of a retry.
    pub(super) fn question(&self) -> Option<String> {
        const LEARNT: &str = "=== Previous Attempts Analysis ===";
        let input = self.get("input");
        let asked = [&input["task_description"], input, self.get("task_description")];
        let question =
            asked.iter().find_map(|value| value.as_str().filter(|text| !text.trim().is_empty()))?;
        Some(match question.split_once(LEARNT) {
            Some((question, _)) => question.trim_end().to_owned(),
            None => question.to_owned(),
        })
    }

    /// Whether the log has a place for the right answer; those of one generation have none.
    pub(super) fn names_truth(&self) -> bool {
        self.0.contains_key("ground_truth")
    }

    /// The right answer.
    pub(super) fn truth(&self) -> Option<String> {
        match self.get("ground_truth") {
            Value::Null => None,
            Value::String(text) if text.trim().is_empty() => None,
            value => Some(crate::records::scalar_text(value).unwrap_or_else(|| value.to_string())),
        }
    }

    /// What was said of the answer.
    pub(super) fn said(&self) -> String {
        self.text(&["final_judge_result", "llm_as_judge_result", "judge_result"]).unwrap_or_default()
    }

    /// Who said it.
    pub(super) fn judge(&self) -> String {
        self.text(&["judge_type", "verifier_name"]).filter(|name| name != "None").unwrap_or_default()
    }

    pub(super) fn model(&self) -> Option<String> {
        let info = self.get("env_info");
        ["llm_model_name", "model_name", "llm_model"]
            .iter()
            .find_map(|name| info[*name].as_str().filter(|name| !name.is_empty()))
            .map(str::to_owned)
    }

    /// When the log was begun, so that logs can be put in order.
    pub(super) fn began(&self) -> String {
        digits(self.get("start_time").as_str().unwrap_or_default())
    }

    /// When the task ended, RFC 3339 in UTC; as the log has it where that does not say in which zone.
    pub(super) fn ended(&self) -> String {
        let text = self.get("end_time").as_str().unwrap_or_default();
        match moment(text) {
            Some(Moment::Exact(time)) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            _ => text.to_owned(),
        }
    }

    /// From start to end in milliseconds.
    pub(super) fn milliseconds(&self) -> Option<u64> {
        let at = |name: &str| moment(self.get(name).as_str()?);
        let passed = match (at("start_time")?, at("end_time")?) {
            (Moment::Exact(start), Moment::Exact(end)) => end.duration_since(start),
            (Moment::Somewhere(start), Moment::Somewhere(end)) => end.duration_since(start),
            _ => return None,
        };
        u64::try_from(passed.as_millis()).ok().filter(|ms| *ms > 0)
    }
}

/// A time of a log.
enum Moment {
    Exact(jiff::Timestamp),
    /// In a zone that the log does not name.
    Somewhere(jiff::civil::DateTime),
}

/// `2025-08-13 10:13:20` is the local time of UTC+8; `2025-08-13T10:13:20.123456` is that of the machine that ran the
/// task, and with a `Z` behind it UTC.
fn moment(text: &str) -> Option<Moment> {
    const AHEAD: i8 = 8;
    let text = text.trim();
    if let Ok(time) = text.parse() {
        return Some(Moment::Exact(time));
    }
    let time: jiff::civil::DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    if text.contains(' ') {
        return Offset::constant(AHEAD).to_timestamp(time).ok().map(Moment::Exact);
    }
    Some(Moment::Somewhere(time))
}

/// The digits of a time, which sort as the times do however they are written.
pub(super) fn digits(time: &str) -> String {
    time.chars().filter(char::is_ascii_digit).take(17).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> TaskLog {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn times() {
        for (start, end, ms, ended) in [
            ("2025-08-13 10:13:20", "2025-08-13 10:20:00", Some(400_000), "2025-08-13T02:20:00.000Z"),
            ("2025-08-13 23:59:59", "2025-08-14 00:00:01", Some(2000), "2025-08-13T16:00:01.000Z"),
            ("2025-08-13T10:13:20.5", "2025-08-13T10:13:21.25", Some(750), "2025-08-13T10:13:21.25"),
            ("2025-08-13T10:13:20.500Z", "2025-08-13T10:13:21Z", Some(500), "2025-08-13T10:13:21.000Z"),
            ("2025-08-13 10:13:20", "", None, ""),
            ("2025-08-13 10:13:20", "2025-08-13T10:13:21", None, "2025-08-13T10:13:21"),
            ("2025-08-13 10:13:20", "2025-08-13 10:13:20", None, "2025-08-13T02:13:20.000Z"),
            ("2025-08-13 10:13:20", "2025-08-13 10:00:00", None, "2025-08-13T02:00:00.000Z"),
            ("yesterday", "today", None, "today"),
        ] {
            let log = log(&format!(r#"{{"start_time":"{start}","end_time":"{end}"}}"#));
            assert_eq!((log.milliseconds(), log.ended().as_str()), (ms, ended), "{start} – {end}");
        }
    }

    #[test]
    fn fields_of_another_type_say_nothing() {
        let log = log(
            r#"{"status": 7, "input": [1], "ground_truth": ["a", 1], "step_logs": "none", "env_info": null,
                "start_time": 20250813, "final_judge_result": {}, "main_agent_message_history": {"deep": [[]]}}"#,
        );
        assert_eq!((log.status().as_str(), log.question(), log.model()), ("7", None, None));
        assert_eq!(
            (log.truth().as_deref(), log.said().as_str(), log.began().as_str()),
            (Some("[\"a\",1]"), "", "")
        );
        assert!(serde_json::from_str::<TaskLog>("[1]").is_err());
    }

    #[test]
    fn questions() {
        for (text, expected) in [
            (r#"{"input": {"task_description": "Q?"}}"#, Some("Q?")),
            (r#"{"input": "Q?"}"#, Some("Q?")),
            (r#"{"task_meta": {"task_description": "Q?"}}"#, Some("Q?")),
            (
                r#"{"input": {"task_description": "Q?\n\n=== Previous Attempts Analysis ===\nno"}}"#,
                Some("Q?"),
            ),
            (r#"{"input": {"task_description": " "}}"#, None),
        ] {
            assert_eq!(log(text).question().as_deref(), expected, "{text}");
        }
    }
}
