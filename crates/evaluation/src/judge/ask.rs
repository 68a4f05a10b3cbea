//! A judge that is a model. Decides how often it is asked, what a reply without verdict means, and how votes are
//! counted. A failure never becomes a verdict.

use std::collections::BTreeMap;
use std::sync::Arc;

use core_protocol::Message;
use core_protocol::event::UsageTotals;
use llm_providers::{ChatRequest, LlmClient, LlmError};

use super::{Identity, JudgePrompt, Procedure};
use crate::sample::{Judged, Transcript};
use crate::verdict::{Judgement, Verdict, read_verdict};

/// Times that one vote is asked for, where replies are no verdict.
const TRIES_OF_A_VOTE: u32 = 3;

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
}

impl ModelJudge {
    /// Puts a judge together; `votes` replies are asked for and the majority decides.
    #[must_use]
    pub fn new(client: LlmClient, procedure: Procedure, prompt: JudgePrompt, votes: u32) -> Self {
        Self { client, procedure, prompt, votes: votes.max(1) }
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
        match self.client.complete(&request, &mut |_| ()).await {
            Err(problem) if !problem.is_retryable() => Err(JudgeError {
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
            usage: UsageTotals::default(),
            cost_usd: Some(0.0),
        };
        let prompt = match self.prompt.render(question, truth, answer) {
            Ok(prompt) => Arc::new(Message::user(prompt)),
            Err(error) => return Judged::Unjudged { reason: error.to_string(), transcript: None },
        };
        let mut votes = Vec::new();
        for _ in 0..self.votes {
            match self.vote(&prompt, &mut transcript).await {
                Ok(judgement) => votes.push(judgement),
                Err(reason) => {
                    let transcript = (!transcript.replies.is_empty()).then_some(transcript);
                    return Judged::Unjudged { reason, transcript };
                }
            }
            if is_decided(&votes, self.votes) {
                break;
            }
        }
        match majority(votes) {
            Some(judgement) => Judged::ByJudge { judgement, transcript },
            None => Judged::Unjudged {
                reason: "the votes of the judge are even".to_owned(),
                transcript: Some(transcript),
            },
        }
    }

    /// One vote: the first reply that is a verdict.
    async fn vote(&self, prompt: &Arc<Message>, transcript: &mut Transcript) -> Result<Judgement, String> {
        let mut reason = String::new();
        for _ in 0..TRIES_OF_A_VOTE {
            let request = ChatRequest::new(String::new(), vec![Arc::clone(prompt)]);
            let outcome = self
                .client
                .complete(&request, &mut |_| ())
                .await
                .map_err(|error| format!("the judge did not reply: {error}"))?;
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
            match read {
                // A reply that was cut may have gone on otherwise.
                Ok(judgement) if completion.finish_reason != core_protocol::FinishReason::Length => {
                    return Ok(judgement);
                }
                Ok(_) => reason = "the judge's reply was cut at its length limit".to_owned(),
                Err(no_verdict) => reason = no_verdict.to_string(),
            }
        }
        Err(reason)
    }
}

/// Whether the votes that are still out cannot change anything.
fn is_decided(votes: &[Judgement], all: u32) -> bool {
    let needed = usize::try_from(all).unwrap_or(usize::MAX) / 2 + 1;
    counts(votes).values().any(|count| *count >= needed)
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

/// The first vote for what more votes say than for anything else.
fn majority(votes: Vec<Judgement>) -> Option<Judgement> {
    let counts = counts(&votes);
    let most = counts.values().copied().max()?;
    let mut leading = counts.iter().filter(|(_, count)| **count == most);
    let winner = *leading.next()?.0;
    if leading.next().is_some() {
        return None;
    }
    votes.into_iter().find(|vote| word(vote.verdict) == winner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_decides() {
        use Verdict::{Correct, Incorrect, NotAttempted};
        for (votes, expected) in [
            (vec![Correct], Some(Correct)),
            (vec![Correct, Incorrect, Incorrect], Some(Incorrect)),
            (vec![Correct, Incorrect], None),
            (vec![Correct, Incorrect, NotAttempted, Correct], Some(Correct)),
            (vec![], None),
        ] {
            let votes: Vec<Judgement> = votes.into_iter().map(Judgement::from).collect();
            assert_eq!(majority(votes).map(|judgement| judgement.verdict), expected);
        }
        let two = [Judgement::from(Correct), Judgement::from(Correct)];
        assert!(is_decided(&two, 3) && !is_decided(&two, 4) && !is_decided(&two[..1], 3));
    }
}
