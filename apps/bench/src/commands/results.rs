//! Commands over runs that are there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use evaluation::compare::Comparison;
use evaluation::export::{Filter, Target as ExportTarget};
use evaluation::report::{Report, to_html, to_markdown, to_table};
use evaluation::run::{Store, read_run};
use evaluation::sample::Row;
use evaluation::score::{Again, hand_over, judge_again};
use evaluation::suite::{Suite, judge_of};
use tokio_util::sync::CancellationToken;

use super::import::judged_selection;
use super::run::{around_of, keep_reports};
use crate::Exit;
use crate::args::{CompareArgs, ExportArgs, Format, ReportArgs, ScoreArgs, Target, VoteArgs, VoteForm};
use crate::around::{here, judge_wish, shown, surroundings};
use crate::asked_judge::AskedJudge;
use crate::ending::cancel_on_request;
use crate::judging;
use crate::output::{self, note};

/// Judges again.
pub(crate) async fn score(arguments: ScoreArgs) -> anyhow::Result<Exit> {
    let mut store = Store::reopen(&arguments.dir)?;
    let header = store.header().clone();
    let asked = AskedJudge::new(&header.invocation, arguments.judge, &arguments.set);
    let began = asked.beginning(&header.invocation);
    let mut around = around_of(&began, arguments.conf_dir, None);
    around.set.extend(arguments.set);
    let place = surroundings(&around, Some(&began.suite), &arguments.dir)?;
    let resolved = place.resolve().map_err(shown)?;
    let selection = judged_selection(&header, &arguments.dir)?;
    let suite = Suite::load(&resolved, &here()?, &selection)?;
    anyhow::ensure!(
        suite.facts.sha256 == header.dataset.sha256,
        "{} is not the dataset that the run was made from (its content differs)",
        suite.facts.file
    );
    let wish = judge_wish(asked.name.as_deref(), &around)?;
    let invocation = asked.kept_in(began, &resolved);
    let judge = judge_of(&resolved, &wish, &place.limiters).await?;
    let tasks: BTreeMap<_, _> = suite.tasks.into_iter().map(|task| (task.task_id.clone(), task)).collect();
    let again = if arguments.all { Again::All } else { Again::Open };
    let verdicts = |store: &Store| -> BTreeMap<_, _> {
        store.rows().map(|row| (row.sample.clone(), row.correct)).collect()
    };
    let before = verdicts(&store);
    // Figures of one run come from one judge.
    if judge.identity() != header.judge {
        if store.rows().any(|row| row.verdict_of().is_some()) {
            note(&format!("{} judges every answer again, not {}", judge.identity(), header.judge));
            match hand_over(&mut store, &tasks, &judge, invocation).await? {
                Ok(kept) => note(&format!("the verdicts of before are kept in {}", kept.display())),
                Err(why) => {
                    note(&format!("the judge failed at the first answer, so nothing was changed: {why}"));
                    return Ok(Exit::Failed);
                }
            }
        } else {
            store.set_judge(judge.identity(), invocation)?;
        }
    }
    let cancel = CancellationToken::new();
    cancel_on_request(cancel.clone(), "stopping; the verdicts so far are kept");
    let how = (again, arguments.max_concurrent);
    let scored = judge_again(&mut store, &tasks, &judge, how, &cancel, &judging::shown()).await?;
    let rows: Vec<Row> = store.rows().cloned().collect();
    keep_reports(store.folder(), &Report::new(store.header().clone(), &rows, false))?;
    // Verdicts of another judge were taken off before: what changed is seen from the beginning to the end.
    let after = verdicts(&store);
    let changed = after.iter().filter(|(id, now)| now.is_some() && before.get(*id) != Some(*now)).count();
    let told = output::result(
        &format!(
            "judged {}, changed {changed}, failed {}, still unjudged {}\n",
            scored.judged, scored.failed, scored.unjudged
        ),
        None,
    );
    if let Some(why) = &scored.reason {
        note(&format!("the judge failed for {} answers: {why}", scored.failed));
    }
    if cancel.is_cancelled() {
        note(&format!("interrupted; go on with: fathom-bench score {}", store.folder().display()));
        return Ok(Exit::Interrupted);
    }
    told?;
    Ok(if scored.unjudged + scored.failed > 0 { Exit::Failed } else { Exit::Done })
}

/// Figures of finished runs.
pub(crate) fn report(arguments: &ReportArgs) -> anyhow::Result<Exit> {
    let mut reports = Vec::new();
    for dir in &arguments.dirs {
        let (header, rows) = read_run(dir)?;
        reports.push(Report::new(header, &rows, arguments.allow_unjudged));
    }
    let text = match arguments.format {
        Format::Table => reports.iter().map(to_table).collect::<Vec<_>>().join("\n\n"),
        Format::Markdown => reports.iter().map(to_markdown).collect::<Vec<_>>().join("\n\n"),
        Format::Html => to_html(&reports),
        Format::Json => match reports.as_slice() {
            [only] => serde_json::to_string_pretty(only)? + "\n",
            several => serde_json::to_string_pretty(several)? + "\n",
        },
    };
    output::result(&text, arguments.out.as_deref())?;
    let open = reports.iter().any(|report| report.unjudged > 0 && !arguments.allow_unjudged);
    Ok(if open { Exit::Failed } else { Exit::Done })
}

/// Two runs, task by task.
pub(crate) fn compare(arguments: &CompareArgs) -> anyhow::Result<Exit> {
    let first = read_run(&arguments.first)?;
    let second = read_run(&arguments.second)?;
    let comparison = evaluation::compare::compare((&first.0, &first.1), (&second.0, &second.1));
    let text = if arguments.json {
        serde_json::to_string_pretty(&comparison)? + "\n"
    } else {
        comparison_text(&comparison, [&arguments.first, &arguments.second])
    };
    output::result(&text, None)?;
    Ok(Exit::Done)
}

fn comparison_text(comparison: &Comparison, dirs: [&PathBuf; 2]) -> String {
    let mut lines = Vec::new();
    for ((name, run), dir) in ["A", "B"].iter().zip(&comparison.runs).zip(dirs) {
        lines.push(format!("{name}  {}  {}  judge {}  ({})", run.suite, run.model, run.judge, dir.display()));
    }
    for warning in &comparison.warnings {
        lines.push(format!("warning: {warning}"));
    }
    match &comparison.paired {
        None => lines.push("no task is scored in both".to_owned()),
        Some(paired) => {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            lines.push(format!(
                "{} tasks in both · A {} · B {}",
                paired.tasks,
                percent(paired.first),
                percent(paired.second)
            ));
            let interval = paired.interval.map_or_else(String::new, |(low, high)| {
                format!(" [{:+.1}, {:+.1}]", 100.0 * low, 100.0 * high)
            });
            lines.push(format!("A − B: {:+.1} points{interval}, paired by task", 100.0 * paired.difference));
            lines.push(format!(
                "A better {} · B better {} · same {}",
                paired.wins, paired.losses, paired.ties
            ));
        }
    }
    for (count, name) in [(comparison.only_first, "A"), (comparison.only_second, "B")] {
        if count > 0 {
            lines.push(format!("{count} tasks are only in {name} and left out"));
        }
    }
    for (title, tasks) in [("A better", &comparison.wins), ("B better", &comparison.losses)] {
        for task in tasks.iter().take(20) {
            lines.push(format!("  {title}  {}  {:.2} / {:.2}", task.task_id, task.first, task.second));
        }
    }
    lines.join("\n") + "\n"
}

/// The answer that most epochs give; of a suite that nobody judges, as the file that its publishers take.
pub(crate) fn vote(arguments: &VoteArgs) -> anyhow::Result<Exit> {
    let (header, rows) = read_run(&arguments.dir)?;
    let votes = evaluation::vote::vote(&rows);
    let is_submission = match arguments.to {
        Some(form) => form == VoteForm::Submission,
        None => header.judge.judge == "none",
    };
    let mut text = String::new();
    if is_submission {
        for line in evaluation::vote::submissions(&votes) {
            text.push_str(&(serde_json::to_string(&line)? + "\n"));
        }
    } else {
        for vote in &votes {
            text.push_str(&(serde_json::to_string(vote)? + "\n"));
        }
    }
    let file = arguments.out.clone().or_else(|| {
        let name = format!("{}_submission.jsonl", header.suite.replace(['/', '\\'], "_"));
        is_submission.then(|| arguments.dir.join(name))
    });
    output::result(&text, file.as_deref())?;
    let silent = votes.iter().filter(|vote| vote.answer.is_none()).count();
    let without = header.task_ids.len().saturating_sub(votes.len());
    let tied: Vec<&str> =
        votes.iter().filter(|vote| !vote.tied_with.is_empty()).map(|vote| vote.task_id.as_str()).collect();
    note(&format!("{} tasks, {} with an answer", header.task_ids.len(), votes.len() - silent));
    if silent + without > 0 {
        let gone = if is_submission { ", and left out" } else { "" };
        note(&format!("{} tasks have no answer{gone}", silent + without));
    }
    if !tied.is_empty() {
        let shown = tied.iter().take(10).copied().collect::<Vec<_>>().join(", ");
        let more = if tied.len() > 10 { ", …" } else { "" };
        note(&format!(
            "{} tasks are tied, and the answer of the earliest epoch was taken: {shown}{more}",
            tied.len()
        ));
    }
    let pending = Report::new(header, &rows, true).states.get("pending").copied().unwrap_or(0);
    if pending > 0 {
        note(&format!("warning: {pending} samples have not ended; their votes are missing"));
    }
    Ok(Exit::Done)
}

/// Samples as training data or task logs.
pub(crate) fn export(arguments: &ExportArgs) -> anyhow::Result<Exit> {
    let filter = Filter {
        incorrect: arguments.all,
        contaminated: arguments.contaminated,
        max_turns: arguments.max_turns,
        max_tokens: arguments.max_tokens,
    };
    let target = match arguments.to {
        Target::Chatml => ExportTarget::Chatml,
        Target::Sharegpt => ExportTarget::Sharegpt,
        Target::Dpo => ExportTarget::Dpo,
        Target::Mirothinker => ExportTarget::Mirothinker,
    };
    let exported = evaluation::export::export(&arguments.dir, target, &filter)?;
    if arguments.to == Target::Mirothinker {
        let folder = arguments.out.clone().unwrap_or_else(|| arguments.dir.join("mirothinker"));
        for (name, record) in &exported.records {
            let file = folder.join(name);
            let above = file.parent().unwrap_or(&folder);
            std::fs::create_dir_all(above).with_context(|| format!("{} cannot be made", above.display()))?;
            output::result(&(serde_json::to_string_pretty(record)? + "\n"), Some(&file))?;
        }
    } else {
        let mut text = String::new();
        for (_, record) in &exported.records {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        output::result(&text, arguments.out.as_deref())?;
    }
    let what = match arguments.to {
        Target::Dpo => "pairs",
        Target::Mirothinker => "task logs",
        Target::Chatml | Target::Sharegpt => "records",
    };
    note(&format!("{} {what} exported, {} samples left out", exported.records.len(), exported.left_out));
    Ok(Exit::Done)
}
