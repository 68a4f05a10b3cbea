//! A report as sections of text: what every format for people shows. Decides words and digits.

use crate::figures::{Estimate, IntervalMethod};
use crate::report::{Group, Report};

/// A heading with a table below it.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// Empty: a list of names and values without header.
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// A sentence below the table.
    pub(super) note: Option<String>,
}

impl Section {
    fn pairs(title: &'static str, rows: Vec<(&str, String)>) -> Self {
        let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        Self { title, columns: Vec::new(), rows, note: None }
    }
}

/// The one line that people look for.
pub(super) fn headline(report: &Report) -> String {
    let suite = &report.header.suite;
    if let Some(any) = &report.any_of {
        let so_far = if report.complete { "" } else { " so far" };
        return format!(
            "{suite}: {} of tasks right in any of at most {} epochs{so_far}",
            estimate(&any.share),
            any.k
        );
    }
    match &report.accuracy {
        Some(accuracy) if report.complete => format!("{suite}: accuracy {}", estimate(accuracy)),
        Some(accuracy) => format!("{suite}: accuracy so far {}", estimate(accuracy)),
        None if report.unjudged > 0 => format!(
            "{suite}: no figure, {} of {} samples are unjudged (fathom-bench score judges them again; \
             --allow-unjudged leaves them out)",
            report.unjudged, report.selected
        ),
        None => format!("{suite}: nothing is scored"),
    }
}

pub(super) fn sections(report: &Report) -> Vec<Section> {
    let mut sections = vec![what(report), states(report), accuracy(report)];
    if !report.pass.is_empty() {
        sections.push(Section {
            title: "Over epochs",
            columns: vec!["k", "pass@k (any of k)", "pass^k (all of k)"],
            rows: report
                .pass
                .iter()
                .map(|figure| vec![figure.k.to_string(), estimate(&figure.any), estimate(&figure.all)])
                .collect(),
            note: Some("Unbiased: 1 − C(n−c, k)/C(n, k) and C(c, k)/C(n, k), mean over tasks.".to_owned()),
        });
    }
    for (title, groups) in [("By group", &report.groups), ("By context restarts", &report.restarts)] {
        // One group alone says what the whole says.
        if groups.len() > 1 {
            sections.push(by_group(title, groups));
        }
    }
    if let Some(sets) = &report.sets {
        sections.push(Section::pairs(
            "Answers that are sets",
            vec![
                ("fully correct", percent(sets.fully_correct)),
                ("correct with excess", percent(sets.correct_with_excess)),
                ("fully incorrect", percent(sets.fully_incorrect)),
                ("F1", format!("{:.3}", sets.f1)),
                ("samples", sets.samples.to_string()),
            ],
        ));
    }
    if let Some(error) = report.calibration_error {
        sections.push(Section::pairs(
            "Calibration",
            vec![
                ("calibration error (RMS)", percent(error)),
                ("denominator", format!("{} samples with a confidence", report.calibration_samples)),
            ],
        ));
    }
    sections.push(effort(report));
    sections
}

fn what(report: &Report) -> Section {
    let header = &report.header;
    let git = header.git.as_ref().map_or_else(
        || "unknown".to_owned(),
        |git| format!("{}{}", git.revision, if git.dirty { " with changes" } else { "" }),
    );
    let versions: Vec<String> =
        header.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let order = if header.shuffle {
        format!("shuffled with seed {}", header.seed)
    } else {
        "as in the file".to_owned()
    };
    Section::pairs(
        "Run",
        vec![
            ("suite", header.suite.clone()),
            ("model", format!("{} ({})", header.model, header.provider)),
            ("agent", agent(report)),
            ("judge", judge(report)),
            (
                "dataset",
                format!(
                    "{}, {} of {} tasks, sha256 {}",
                    header.dataset.file,
                    header.task_ids.len(),
                    header.dataset.tasks,
                    header.dataset.sha256.get(..12).unwrap_or_default()
                ),
            ),
            ("bad records left out", header.dataset.bad_records.to_string()),
            ("tasks without their files", without_files(report)),
            ("tasks without a right answer", without_truth(report)),
            ("epochs", header.epochs.to_string()),
            ("order", order),
            ("begun", header.created.clone()),
            ("revision", git),
            ("versions", versions.join(", ")),
        ],
    )
}

/// Who judged, by which model and with which prompt.
pub(super) fn judge(report: &Report) -> String {
    let judge = &report.header.judge;
    match judge.model.as_str() {
        "" => judge.judge.clone(),
        model => format!(
            "{} by {model} ({}), votes {}, prompt {}",
            judge.judge,
            judge.provider,
            judge.votes,
            judge.prompt_sha256.get(..12).unwrap_or_default()
        ),
    }
}

/// Such tasks are not among those that were selected, and that is said.
fn without_files(report: &Report) -> String {
    match report.header.dataset.without_files {
        0 => "0".to_owned(),
        count => format!("{count}: left out"),
    }
}

/// Such tasks are in no denominator, and that is said.
fn without_truth(report: &Report) -> String {
    let (count, of) = (report.header.dataset.without_truth, report.header.task_ids.len());
    match count {
        0 => "0".to_owned(),
        _ if count == of => format!("all {of}: nothing is judged"),
        _ => format!("{count} of {of}: not judged, in no denominator"),
    }
}

/// The settings of the agent that scores depend on most.
fn agent(report: &Report) -> String {
    let at = |path: &str| report.header.config.pointer(path).map(ToString::to_string);
    let names = [
        ("max_turns", "/agent/main_agent/max_turns"),
        ("keep_tool_result", "/agent/keep_tool_result"),
        ("context_compress_limit", "/agent/context_compress_limit"),
        ("tools", "/agent/main_agent/tools"),
    ];
    let known: Vec<String> =
        names.iter().filter_map(|(name, path)| Some(format!("{name} {}", at(path)?))).collect();
    known.join(", ")
}

fn states(report: &Report) -> Section {
    let total = report.selected;
    let is_open = report.unjudged > 0 && !report.unjudged_left_out;
    let mut rows = Vec::new();
    for (state, count) in &report.states {
        rows.push(vec![state.clone(), count.to_string(), share(*count, total)]);
        let parts = match state.as_str() {
            "answered" => &report.verdicts,
            "limit" => &report.limits,
            "error" => &report.errors,
            _ => continue,
        };
        for (part, count) in parts {
            // The share of correct answers is the figure that unjudged samples withhold.
            let share = if state == "answered" && is_open { String::new() } else { share(*count, total) };
            rows.push(vec![format!("· {}", words(part)), count.to_string(), share]);
        }
    }
    let mut note = format!("{total} samples selected");
    for (count, what) in [(report.not_scored, "without a right answer"), (report.unjudged, "unjudged")] {
        if count > 0 {
            note.push_str(&format!(", {count} {what}"));
        }
    }
    if report.unjudged_left_out {
        note.push_str(" (left out of every denominator)");
    }
    Section { title: "Samples", columns: vec!["state", "samples", "share"], rows, note: Some(note) }
}

fn accuracy(report: &Report) -> Section {
    let mut rows = Vec::new();
    if let Some(accuracy) = &report.accuracy {
        rows.push(("correct over all scored samples", estimate(accuracy)));
        rows.push(("denominator", format!("{} samples of {} tasks", accuracy.samples, accuracy.tasks)));
        rows.push((
            "standard error (clustered by task)",
            accuracy.standard_error.map_or_else(|| "–".to_owned(), percent),
        ));
    }
    if let Some(any) = &report.any_of {
        rows.push(("right in any epoch", estimate(&any.share)));
        rows.push(("denominator", format!("{} tasks", any.share.tasks)));
    }
    if !report.by_epoch.is_empty() {
        let epochs: Vec<String> = report.by_epoch.iter().map(|accuracy| percent(*accuracy)).collect();
        rows.push(("by epoch", epochs.join(", ")));
    }
    if let Some(spread) = report.spread_over_epochs {
        rows.push(("standard deviation over epochs", percent(spread)));
    }
    for (tier, count) in &report.correct_by {
        let name = match tier.as_str() {
            "equal" => "correct by equality",
            "gaia" => "correct by the GAIA scorer",
            _ => "correct by the judge",
        };
        rows.push((name, count.to_string()));
    }
    let note = match report.accuracy.map(|accuracy| accuracy.method) {
        Some(IntervalMethod::Normal) => Some("Interval: mean ± 1.96 clustered standard errors.".to_owned()),
        Some(IntervalMethod::Wilson) => {
            Some("Interval: Wilson's, because all samples have the same score.".to_owned())
        }
        _ => None,
    };
    Section { note, ..Section::pairs("Accuracy", rows) }
}

fn by_group(title: &'static str, groups: &[Group]) -> Section {
    Section {
        title,
        columns: vec!["group", "correct", "samples", "accuracy"],
        rows: groups
            .iter()
            .map(|group| {
                vec![
                    format!("{} {}", group.by, group.value),
                    group.correct.to_string(),
                    group.accuracy.samples.to_string(),
                    estimate(&group.accuracy),
                ]
            })
            .collect(),
        note: None,
    }
}

fn effort(report: &Report) -> Section {
    let effort = &report.effort;
    let dollars =
        |cost: Option<f64>| cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${:.4}", cost + 0.0));
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.digits$}"))
    };
    let tokens = effort.input_tokens.zip(effort.output_tokens);
    Section::pairs(
        "Effort",
        vec![
            ("turns a sample", number(effort.turns, 1)),
            ("tool calls a sample", number(effort.tool_calls, 1)),
            ("dropped replies a sample", number(effort.rollbacks, 2)),
            ("tokens a sample", number(effort.tokens, 0)),
            ("seconds a sample", number(effort.wall_seconds, 1)),
            ("seconds without waiting for limiters", number(effort.working_seconds, 1)),
            ("samples with context restarts", percent(effort.restart_rate)),
            ("samples without an answer", percent(effort.no_answer_rate)),
            (
                "tokens in, out",
                tokens.map_or_else(|| "unknown".to_owned(), |(input, output)| format!("{input}, {output}")),
            ),
            ("cost of the runs", dollars(effort.cost_usd)),
            ("cost of judging", dollars(effort.judge_cost_usd)),
        ],
    )
}

/// A word of the JSON report as people read it.
pub(super) fn words(name: &str) -> String {
    match name {
        "without_truth" => "no right answer to compare with".to_owned(),
        _ => name.replace('_', " "),
    }
}

/// `62.5 % [54.1, 70.9]`.
pub(super) fn estimate(estimate: &Estimate) -> String {
    let mean = percent(estimate.mean);
    match estimate.interval {
        Some((low, high)) => format!("{mean} [{:.1}, {:.1}]", 100.0 * low, 100.0 * high),
        None => mean,
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn share(count: usize, of: usize) -> String {
    percent(count as f64 / of.max(1) as f64)
}
