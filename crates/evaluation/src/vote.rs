//! One answer a task, from the answers of its epochs: the one that most of them give. Decides when two answers are
//! the same and what happens when two are as frequent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::exact::loose_match;
use crate::sample::{Row, SampleState};

/// The vote on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The task.
    pub task_id: String,
    /// What most epochs answered, as the first of them wrote it; none where none answered.
    pub answer: Option<String>,
    /// Epochs that answered so.
    pub votes: usize,
    /// Other answers that as many epochs gave; the answer of the earliest epoch was taken then.
    pub tied_with: Vec<String>,
    /// Epochs that answered at all.
    pub answered: usize,
    /// Epochs that ended.
    pub epochs: usize,
}

/// One vote a task, in the order of the ids. Answers that differ in case, punctuation, articles or the way a number is
/// written are the same; of answers as frequent as each other, the one of the earliest epoch is taken.
#[must_use]
pub fn vote(rows: &[Row]) -> Vec<Vote> {
    let mut tasks: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        tasks.entry(&row.sample.task_id).or_default().push(row);
    }
    tasks.into_iter().map(|(task_id, rows)| vote_on(task_id, rows)).collect()
}

/// A line of a submission file: the form that FutureX takes, one JSON object a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The task.
    pub id: String,
    /// The answer of the vote.
    pub prediction: String,
}

/// The submissions of votes in the order of the ids. Tasks that no epoch answered have none.
#[must_use]
pub fn submissions(votes: &[Vote]) -> Vec<Submission> {
    let of = |vote: &Vote| {
        Some(Submission { id: vote.task_id.clone(), prediction: vote.answer.as_deref()?.trim().to_owned() })
    };
    votes.iter().filter_map(of).collect()
}

fn vote_on(task_id: &str, mut rows: Vec<&Row>) -> Vote {
    rows.sort_by_key(|row| row.sample.epoch);
    let mut answers: Vec<(&str, usize)> = Vec::new();
    let answered = rows.iter().filter(|row| row.state == SampleState::Answered);
    for answer in answered.filter_map(|row| row.answer.as_deref()) {
        match answers.iter_mut().find(|(known, _)| *known == answer || loose_match(answer, known)) {
            Some((_, count)) => *count += 1,
            None => answers.push((answer, 1)),
        }
    }
    let total = answers.iter().map(|(_, count)| count).sum();
    // `max_by_key` gives the last of equals; the earliest is wanted.
    let best = answers.iter().rev().max_by_key(|(_, count)| *count);
    let tied = answers
        .iter()
        .filter(|(answer, count)| best.is_some_and(|best| best.1 == *count && best.0 != *answer));
    Vote {
        tied_with: tied.map(|(answer, _)| (*answer).to_owned()).collect(),
        task_id: task_id.to_owned(),
        answer: best.map(|(answer, _)| (*answer).to_owned()),
        votes: best.map_or(0, |(_, count)| *count),
        answered: total,
        epochs: rows.len(),
    }
}
