//! `cargo xtask reader-eval`: how well the embedded reader answers the question sets, end to end through `fathom ask`.
//! Prints figures beside their aims and asserts nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde::Deserialize;

use crate::shell;

/// A question set under `conf/benchmark/data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Set {
    /// Over the articles that come with the program.
    Shipped,
    /// Over the starter library, which must have been added.
    Starter,
}

impl std::fmt::Display for Set {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Shipped => "shipped",
            Self::Starter => "starter",
        })
    }
}

#[derive(Deserialize)]
struct Task {
    task_id: String,
    task_question: String,
    ground_truth: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    kind: String,
}

#[derive(Default)]
struct Tally {
    asked: usize,
    exact: usize,
    quoted: usize,
    declined: usize,
    wall_ms: u64,
}

pub fn run(sets: &[Set], misses: bool) -> anyhow::Result<()> {
    let program = shell::release_program("fathom")?;
    for set in sets {
        if *set == Set::Starter && !has_starter(&program)? {
            println!("starter: the library is not there; `fathom library add starter` fetches it");
            continue;
        }
        evaluate(&program, *set, misses)?;
    }
    Ok(())
}

fn evaluate(program: &Path, set: Set, misses: bool) -> anyhow::Result<()> {
    let file = shell::root().join(format!("conf/benchmark/data/{set}/standardized_data.jsonl"));
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let task: Task =
            serde_json::from_str(line).with_context(|| format!("{}:{}", file.display(), number + 1))?;
        let result = ask(program, set, &task.task_question)?;
        let answer = result["answer"].as_str();
        let final_text = result["final_text"].as_str().unwrap_or_default();
        let accepted: Vec<String> =
            task.ground_truth.iter().chain(&task.aliases).map(|text| plain(text)).collect();
        let exact = answer.is_some_and(|answer| accepted.contains(&plain(answer)));
        let quoted = accepted.iter().any(|truth| contains_words(&plain(final_text), truth));
        let tally = tallies.entry(task.kind.clone()).or_default();
        tally.asked += 1;
        tally.exact += usize::from(exact);
        tally.quoted += usize::from(quoted);
        tally.declined += usize::from(answer.is_none());
        tally.wall_ms += result["wall_ms"].as_u64().unwrap_or(0);
        let right = if task.ground_truth.is_some() { exact } else { answer.is_none() };
        if misses && !right {
            println!(
                "  {} {}\n      expected {:?}, got {:?}{}",
                task.task_id,
                task.task_question,
                task.ground_truth,
                answer,
                if quoted { ", the quoted sentence holds it" } else { "" }
            );
        }
    }
    println!("{set}:");
    for (kind, tally) in &tallies {
        let share = |count: usize| {
            format!("{count:>2} of {:>2} ({:>3.0} %)", tally.asked, percent(count, tally.asked))
        };
        let mean = tally.wall_ms / u64::try_from(tally.asked.max(1))?;
        match kind.as_str() {
            "unanswerable" => {
                println!("  {kind:<13} declined {}   aim 80 %   {mean} ms each", share(tally.declined))
            }
            "two_hop" => println!("  {kind:<13} exact    {}   aim 30 %   {mean} ms each", share(tally.exact)),
            _ => println!(
                "  {kind:<13} exact    {}   aim 70 %   quoted {}   aim 90 %   {mean} ms each",
                share(tally.exact),
                share(tally.quoted)
            ),
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a few dozen questions")]
fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

fn ask(program: &Path, set: Set, question: &str) -> anyhow::Result<serde_json::Value> {
    let runs = std::env::temp_dir().join(format!("fathom-reader-eval-{}", std::process::id()));
    let library = match set {
        Set::Shipped => "tools.library.installed=false",
        Set::Starter => "tools.library.built_in=false",
    };
    let output = Command::new(program)
        .args(["ask", "--llm", "reader", "--output", "json", "-q", "-s", library, "--runs-dir"])
        .arg(&runs)
        .arg(question)
        .stderr(Stdio::null())
        .output()?;
    let _ = std::fs::remove_dir_all(&runs);
    serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON for: {question}"))
}

fn has_starter(program: &Path) -> anyhow::Result<bool> {
    let output = Command::new(program).args(["library", "list", "--output", "json"]).output()?;
    if !output.status.success() {
        bail!("fathom library list failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).contains("\"starter\""))
}

/// Lower case, letters and digits with single blanks between words, articles dropped.
fn plain(text: &str) -> String {
    let spaced: String = text
        .chars()
        .flat_map(char::to_lowercase)
        .filter(|character| *character != ',' && *character != '\u{2009}')
        .map(|character| if character.is_alphanumeric() || character == '.' { character } else { ' ' })
        .collect();
    spaced
        .split_whitespace()
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !matches!(*word, "the" | "a" | "an" | ""))
        .collect::<Vec<_>>()
        .join(" ")
}

fn contains_words(text: &str, words: &str) -> bool {
    !words.is_empty() && format!(" {text} ").contains(&format!(" {words} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_without_their_clothes() {
        for (one, other, same) in [
            ("1,424 km", "1424 km", true),
            ("The Hague", "hague", true),
            ("1883.", "1883", true),
            ("3.5", "35", false),
            ("Alan Turing", "turing", false),
        ] {
            assert_eq!(plain(one) == plain(other), same, "{one} {other}");
        }
        assert!(contains_words(&plain("It opened in 1883, in May."), "1883"));
        assert!(!contains_words(&plain("It cost 18830."), "1883"));
    }
}
