//! Who is to judge a run that was begun before. Decides what of the earlier command still holds: whoever was asked for
//! then judges on, unless this command asks for another one; and what is set for the judge now is remembered.

use evaluation::run::Invocation;
use pipeline::config::{Resolved, key_of_set};

use crate::commands::without_secrets;

/// Everything that is set for judging stands below it.
const SECTION: &str = "benchmark.judge";
const MOCK: &str = "benchmark.judge.mock";
/// Settings that say which judge it is; a key or an address of his does not.
const NAME_A_JUDGE: [&str; 5] =
    [SECTION, MOCK, "benchmark.judge.llm", "benchmark.judge.llm.provider", "benchmark.judge.llm.model_name"];

/// The judge that a command asks for.
pub(crate) struct AskedJudge {
    /// `mock`, `suite` or a preset of `conf/llm/`; none where the configuration says.
    pub(crate) name: Option<String>,
    /// What the command sets for judging.
    sets: Vec<String>,
    /// Whether its settings name a judge.
    is_set: bool,
}

impl AskedJudge {
    /// From what the run began with, the option and the settings of the command.
    pub(crate) fn new(began: &Invocation, option: Option<String>, sets: &[String]) -> Self {
        let sets: Vec<String> = sets.iter().filter(|set| is_for_judging(set)).cloned().collect();
        let is_set = sets.iter().any(|set| NAME_A_JUDGE.contains(&key_of_set(set)));
        // Who sets which model judges means the suite's judge, not that of the last command.
        let of_before = began.judge.clone().filter(|_| !is_set);
        Self { name: option.or(of_before), sets, is_set }
    }

    /// What the run began with, without what no longer holds: a mock gives way to a judge that is named now.
    pub(crate) fn beginning(&self, began: &Invocation) -> Invocation {
        let mut began = began.clone();
        began.sets.retain(|set| !(self.is_set && key_of_set(set) == MOCK));
        began
    }

    /// The beginning, with this judge remembered.
    pub(crate) fn kept_in(self, began: Invocation, resolved: &Resolved) -> Invocation {
        began.judged_by(self.name, without_secrets(&self.sets, resolved))
    }
}

fn is_for_judging(set: &str) -> bool {
    key_of_set(set).strip_prefix(SECTION).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        began: (Option<&str>, &[&str]),
        option: Option<&str>,
        sets: &[&str],
        expected: (Option<&str>, &[&str]),
    ) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let before =
            Invocation { judge: began.0.map(str::to_owned), sets: owned(began.1), ..Invocation::default() };
        let asked = AskedJudge::new(&before, option.map(str::to_owned), &owned(sets));
        let left = asked.beginning(&before);
        assert_eq!(
            (asked.name.as_deref(), left.sets),
            (expected.0, owned(expected.1)),
            "{began:?} {option:?} {sets:?}"
        );
    }

    #[test]
    fn what_was_asked_for_holds_until_something_else_is() {
        let (mock, votes) = ("benchmark.judge.mock=true", "benchmark.judge.votes=3");
        let model = "benchmark.judge.llm.model_name=m";
        check((Some("j"), &[votes]), None, &[], (Some("j"), &[votes]));
        check((Some("j"), &[]), Some("mock"), &[], (Some("mock"), &[]));
        check((Some("j"), &[]), None, &[votes], (Some("j"), &[]));
        check(
            (Some("j"), &["agent.x=1"]),
            None,
            &["benchmark.judge.llm.api_key=k"],
            (Some("j"), &["agent.x=1"]),
        );
        check((Some("j"), &[]), None, &[model], (None, &[]));
        check((None, &[mock, votes]), None, &[model], (None, &[votes]));
        check((Some("mock"), &[votes]), Some("suite"), &[], (Some("suite"), &[votes]));
        let provider = "benchmark.judge.llm.provider=vllm";
        check((None, &[provider]), None, &[model], (None, &[provider]));
    }
}
