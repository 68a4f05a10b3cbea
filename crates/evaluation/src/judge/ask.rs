//! A judge that is a model. Decides how often it is asked, what a reply without verdict means, and how votes are
//! counted. A failure never becomes a verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use core_protocol::event::UsageTotals;
use core_protocol::{FinishReason, Message};
use llm_providers::{ChatRequest, LlmClient, LlmError};

use super::{Identity, JudgePrompt, Procedure};
use crate::sample::{Ballot, Judged, Transcript};
use crate::verdict::{Judgement, Verdict, read_verdict};

/// Times that one vote is asked for, where replies are no verdict.
const TRIES_OF_A_VOTE: u32 = 3;

/// How long a judge may take to say that it is ready; a run does not wait longer for one that is busy or away.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a judge cannot be used, found out before anything runs.
#[derive(Debug, thiserror::Error)]
#[error("the judge ({provider}, {model}) cannot be used: {problem}")]
pub struct JudgeError {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What it said.
    pub problem: LlmError,
}

/// A model with a procedure.
pub struct ModelJudge {
    client: LlmClient,
    procedure: Procedure,
    prompt: JudgePrompt,
    votes: u32,
    patience: Duration,
}

impl ModelJudge {
    /// Puts a judge together; `votes` replies are asked for and the majority decides.
    #[must_use]
    pub fn new(client: LlmClient, procedure: Procedure, prompt: JudgePrompt, votes: u32) -> Self {
        Self { client, procedure, prompt, votes: votes.max(1), patience: PATIENCE }
    }

    /// The same judge, given so long to say that it is ready.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Who judges.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity {
            judge: self.procedure.name.to_owned(),
            provider: self.client.provider_name().to_owned(),
            model: self.client.model().to_owned(),
            prompt_sha256: self.prompt.sha256().to_owned(),
            votes: self.votes,
        }
    }

    /// Asks for a word, so that a wrong key, address or model is known before the first sample runs.
    ///
    /// # Errors
    ///
    /// What the judge's provider says, where trying again does not help. A busy or silent one is no error: samples
    /// are judged later.
    pub async fn check(&self) -> Result<(), JudgeError> {
        let request =
            ChatRequest::new(String::new(), vec![Arc::new(Message::user("Reply with the word ready."))]);
        let asked = tokio::time::timeout(self.patience, self.client.complete(&request, &mut |_| ())).await;
        match asked {
            Ok(Err(problem)) if !problem.is_retryable() => Err(JudgeError {
                provider: self.client.provider_name().to_owned(),
                model: self.client.model().to_owned(),
                problem,
            }),
            _ => Ok(()),
        }
    }

    /// Judges one answer.
    pub async fn ask(&self, question: &str, truth: &str, answer: &str) -> Judged {
        let mut transcript = Transcript {
            judge: self.procedure.name.to_owned(),
            provider: self.client.provider_name().to_owned(),
            model: self.client.model().to_owned(),
            prompt_sha256: self.prompt.sha256().to_owned(),
            replies: Vec::new(),
            votes: Vec::new(),
            usage: UsageTotals::default(),
            cost_usd: Some(0.0),
        };
        let prompt = match self.prompt.render(question, truth, answer) {
            Ok(prompt) => Arc::new(Message::user(prompt)),
            Err(error) => return Judged::Unjudged { reason: error.to_string(), transcript: None },
        };
        let mut ballots: Vec<Ballot> = Vec::new();
        let mut votes = Vec::new();
        for cast in 0..self.votes {
            let before = transcript.replies.len();
            let vote = self.vote(&prompt, &mut transcript).await;
            let replies = transcript.replies.len() - before;
            let is_over = matches!(&vote, Err(failed) if failed.is_final);
            ballots.push(match &vote {
                Ok(judgement) => Ballot { verdict: Some(judgement.verdict), problem: None, replies },
                Err(failed) => Ballot { verdict: None, problem: Some(failed.reason.clone()), replies },
            });
            votes.extend(vote.ok());
            if is_over || is_decided(&votes, self.votes, self.votes - cast - 1) {
                break;
            }
        }
        let problem = ballots.iter().rev().find_map(|ballot| ballot.problem.clone());
        let counted = format!(
            "{} of {} votes were asked for and {} are verdicts",
            ballots.len(),
            self.votes,
            votes.len()
        );
        if self.votes > 1 {
            transcript.votes = ballots;
        }
        match majority(votes, self.votes) {
            Some(judgement) => Judged::ByJudge { judgement, transcript },
            None => {
                let reason = match problem {
                    Some(problem) if self.votes == 1 => problem,
                    Some(problem) => format!("no majority: {counted}; {problem}"),
                    None => format!("no majority: {counted}"),
                };
                let is_told = !transcript.replies.is_empty() || !transcript.votes.is_empty();
                Judged::Unjudged { reason, transcript: is_told.then_some(transcript) }
            }
        }
    }

    /// One vote: the first reply that is a verdict.
    async fn vote(&self, prompt: &Arc<Message>, transcript: &mut Transcript) -> Result<Judgement, NoVote> {
        let mut reason = String::new();
        for _ in 0..TRIES_OF_A_VOTE {
            let request = ChatRequest::new(String::new(), vec![Arc::clone(prompt)]);
            let outcome = self.client.complete(&request, &mut |_| ()).await.map_err(|error| NoVote {
                is_final: error.is_permanent(),
                reason: format!("the judge did not reply: {error}"),
            })?;
            let completion = outcome.completion;
            let price = completion.usage.as_ref().map(|usage| {
                transcript.usage.input += usage.input;
                transcript.usage.output += usage.output;
                transcript.usage.cache_read += usage.cache_read;
                transcript.usage.cache_write += usage.cache_write;
                self.client.cost(usage)
            });
            transcript.cost_usd =
                transcript.cost_usd.zip(price.flatten()).map(|(before, price)| before + price);
            if let Some(model) = completion.model {
                transcript.model = model;
            }
            let reply = completion.message.joined_text();
            let read = read_verdict(self.procedure.form, &reply);
            transcript.replies.push(reply);
            // A reply that was cut may have gone on otherwise.
            reason = match (read, completion.finish_reason) {
                (Err(no_verdict), _) => no_verdict.to_string(),
                (_, FinishReason::Length) => "the judge's reply was cut at its length limit".to_owned(),
                (_, FinishReason::ContentFilter) => "the judge's reply was cut by a filter".to_owned(),
                (Ok(judgement), _) => return Ok(judgement),
            };
        }
        Err(NoVote { reason, is_final: false })
    }
}

/// Why a vote is none.
struct NoVote {
    reason: String,
    /// Asking once more cannot help.
    is_final: bool,
}

/// Whether the votes that are still out cannot change anything: one verdict has its majority, or none can get it.
fn is_decided(votes: &[Judgement], all: u32, out: u32) -> bool {
    let most = counts(votes).values().copied().max().unwrap_or(0);
    most >= needed(all) || most + usize::try_from(out).unwrap_or(usize::MAX) < needed(all)
}

/// More than half of the votes that are asked for. Votes that failed count against everybody.
fn needed(all: u32) -> usize {
    usize::try_from(all).unwrap_or(usize::MAX) / 2 + 1
}

fn counts(votes: &[Judgement]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for vote in votes {
        *counts.entry(word(vote.verdict)).or_insert(0) += 1;
    }
    counts
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Correct => "correct",
        Verdict::Incorrect => "incorrect",
        Verdict::NotAttempted => "not_attempted",
    }
}

/// The first vote for what more than half of all votes say.
fn majority(votes: Vec<Judgement>, all: u32) -> Option<Judgement> {
    let counts = counts(&votes);
    let (winner, _) = counts.into_iter().find(|(_, count)| *count >= needed(all))?;
    votes.into_iter().find(|vote| word(vote.verdict) == winner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_decides() {
        use Verdict::{Correct, Incorrect, NotAttempted};
        for (votes, all, expected) in [
            (vec![Correct], 1, Some(Correct)),
            (vec![Correct, Incorrect, Incorrect], 3, Some(Incorrect)),
            (vec![Correct, Correct], 3, Some(Correct)),
            (vec![Correct], 3, None),
            (vec![Correct], 2, None),
            (vec![Correct, Incorrect], 2, None),
            (vec![Correct, Correct, Incorrect, Incorrect], 5, None),
            (vec![Correct, Incorrect, NotAttempted, Correct], 4, None),
            (vec![], 1, None),
        ] {
            let votes: Vec<Judgement> = votes.into_iter().map(Judgement::from).collect();
            assert_eq!(majority(votes, all).map(|judgement| judgement.verdict), expected);
        }
        let two = [Judgement::from(Correct), Judgement::from(Correct)];
        for (votes, all, out, expected) in [
            (&two[..], 3, 1, true),
            (&two[..], 4, 2, false),
            (&two[..1], 3, 2, false),
            (&two[..1], 3, 1, false),
            (&two[..0], 3, 1, true),
            (&two[..0], 1, 0, true),
        ] {
            assert_eq!(is_decided(votes, all, out), expected, "{} of {all}, {out} out", votes.len());
        }
    }
}
