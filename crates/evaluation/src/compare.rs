//! Two runs over the same suite, task by task. Decides what may be compared and what is said of tasks that only one
//! of them has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::{Paired, compare_paired};
use crate::run::Header;
use crate::sample::Row;

/// How the first run differs from the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The suites, models and judges, first and second.
    pub runs: [RunName; 2],
    /// The paired difference of the tasks' means; none where they share no scored task.
    pub paired: Option<Paired>,
    /// Tasks that only the first has scored.
    pub only_first: usize,
    /// Tasks that only the second has scored.
    pub only_second: usize,
    /// Tasks that are better in the first, the largest differences first.
    pub wins: Vec<Difference>,
    /// Tasks that are worse in the first.
    pub losses: Vec<Difference>,
    /// What keeps the difference from meaning what it seems to, in words.
    pub warnings: Vec<String>,
}

/// What tells a run apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunName {
    /// The suite.
    pub suite: String,
    /// The model that ran.
    pub model: String,
    /// The judge.
    pub judge: String,
}

/// A task's means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The task.
    pub task_id: String,
    /// Its mean in the first run.
    pub first: f64,
    /// Its mean in the second.
    pub second: f64,
}

/// Compares two runs. Samples that nobody has judged are left out, and told.
#[must_use]
pub fn compare(first: (&Header, &[Row]), second: (&Header, &[Row])) -> Comparison {
    let (left, right) = (means(first.1), means(second.1));
    let mut shared: Vec<Difference> = left
        .iter()
        .filter_map(|(task, mean)| {
            Some(Difference { task_id: (*task).to_owned(), first: *mean, second: *right.get(task)? })
        })
        .collect();
    let pairs: Vec<(f64, f64)> = shared.iter().map(|task| (task.first, task.second)).collect();
    let paired = compare_paired(&pairs);
    shared.sort_by(|a, b| (b.first - b.second).abs().total_cmp(&(a.first - a.second).abs()));
    let (wins, rest): (Vec<_>, Vec<_>) = shared.into_iter().partition(|task| task.first > task.second);
    Comparison {
        runs: [first.0, second.0].map(|header| RunName {
            suite: header.suite.clone(),
            model: header.model.clone(),
            judge: header.judge.to_string(),
        }),
        paired,
        only_first: left.keys().filter(|task| !right.contains_key(*task)).count(),
        only_second: right.keys().filter(|task| !left.contains_key(*task)).count(),
        wins,
        losses: rest.into_iter().filter(|task| task.first < task.second).collect(),
        warnings: warnings(first, second),
    }
}

fn means(rows: &[Row]) -> BTreeMap<&str, f64> {
    let mut tasks: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for row in rows {
        if let Some(correct) = row.correct {
            let (sum, count) = tasks.entry(&row.sample.task_id).or_default();
            *sum += f64::from(u8::from(correct));
            *count += 1.0;
        }
    }
    tasks.into_iter().map(|(task, (sum, count))| (task, sum / count)).collect()
}

/// Settings that differ, but for the model's own: that is what is compared. Runs that were imported have none.
fn differing_settings(a: &Header, b: &Header) -> Option<String> {
    const SHOWN: usize = 6;
    let has_any = |header: &Header| header.config.as_object().is_some_and(|sections| !sections.is_empty());
    if !has_any(a) || !has_any(b) {
        return (has_any(a) != has_any(b))
            .then(|| "the settings of one of the runs are not known".to_owned());
    }
    let differing: Vec<String> = a
        .mismatches(b)
        .into_iter()
        .filter(|mismatch| ["config.", "servers."].iter().any(|part| mismatch.what.starts_with(part)))
        .map(|mismatch| {
            format!(
                "{} ({} and {})",
                mismatch.what.trim_start_matches("config."),
                mismatch.there,
                mismatch.asked
            )
        })
        .collect();
    let more = differing.len().saturating_sub(SHOWN);
    (!differing.is_empty()).then(|| {
        let shown = differing.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("the configurations differ: {shown}{rest}")
    })
}

fn warnings(first: (&Header, &[Row]), second: (&Header, &[Row])) -> Vec<String> {
    let mut warnings = Vec::new();
    let (a, b) = (first.0, second.0);
    if a.suite != b.suite {
        warnings.push(format!("the suites differ: {} and {}", a.suite, b.suite));
    }
    if a.dataset.sha256 != b.dataset.sha256 {
        warnings.push(format!(
            "the datasets differ: {} and {} have different content",
            a.dataset.file, b.dataset.file
        ));
    }
    if a.judge != b.judge {
        warnings.push(format!(
            "the judges differ: {} and {}; judge one of the runs again with fathom-bench score",
            a.judge, b.judge
        ));
    }
    if a.epochs != b.epochs {
        warnings.push(format!(
            "the epochs differ: {} and {}; each task counts once all the same",
            a.epochs, b.epochs
        ));
    }
    if a.dataset.sha256 == b.dataset.sha256 && a.task_ids != b.task_ids {
        warnings.push(format!(
            "different tasks of the dataset were selected: {} and {}",
            a.task_ids.len(),
            b.task_ids.len()
        ));
    }
    warnings.extend(differing_settings(a, b));
    if a.stop_on_pass.is_some() || b.stop_on_pass.is_some() {
        warnings.push("a run stopped at each task's first right epoch: its means are too high".to_owned());
    }
    for (which, rows) in [("first", first.1), ("second", second.1)] {
        let unjudged = rows.iter().filter(|row| row.is_unjudged()).count();
        if unjudged > 0 {
            warnings.push(format!("{unjudged} samples of the {which} run are unjudged and left out"));
        }
    }
    warnings
}
