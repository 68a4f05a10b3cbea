//! Judges: who says whether an answer is right when no exact tier does. Decides which tiers and which form of reply
//! a procedure has, how often is asked, and that a judge which fails leaves a sample unjudged.

mod ask;
mod mock;
mod prompt;

use pipeline::config::JudgeId;
use serde::{Deserialize, Serialize};

pub use ask::{JudgeError, ModelJudge};
pub use prompt::{JudgePrompt, PromptError};

use crate::dataset::Task;
use crate::exact::{ExactTier, exact_hit};
use crate::sample::{Judged, Row, Transcript};
use crate::verdict::ReplyForm;

/// What a procedure is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Procedure {
    /// Its name.
    pub name: &'static str,
    /// The template of its prompt in `conf/prompts/`.
    pub template: &'static str,
    /// The form in which the judge replies.
    pub form: ReplyForm,
    /// The model that published scores were judged with.
    pub reference_model: &'static str,
    /// Whether the judge is sent the whole final reply, in which it looks for the confidence, and not the short answer
    /// alone.
    pub reads_reply: bool,
}

/// The procedures; none for suites that are not judged.
#[must_use]
pub const fn procedure(id: JudgeId) -> Option<Procedure> {
    const GPT: &str = "gpt-4.1-2025-04-14";
    let (name, template, form, reference_model) = match id {
        JudgeId::Equivalence => ("equivalence", "judge/equivalence.md", ReplyForm::Word, GPT),
        JudgeId::AbEn => ("ab-en", "judge/ab_en.md", ReplyForm::LettersEnglish, GPT),
        JudgeId::AbZh => ("ab-zh", "judge/ab_zh.md", ReplyForm::LettersChinese, GPT),
        JudgeId::SimpleQa => ("simpleqa", "judge/simpleqa.md", ReplyForm::ThreeLetters, GPT),
        JudgeId::Hle => ("hle", "judge/hle.md", ReplyForm::Fields, "o3-mini-2025-01-31"),
        JudgeId::Xbench => ("xbench", "judge/xbench.md", ReplyForm::Conclusion, GPT),
        JudgeId::DeepSearchQa => ("deepsearchqa", "judge/deepsearchqa.md", ReplyForm::Parts, GPT),
        JudgeId::None => return None,
    };
    let reads_reply = matches!(id, JudgeId::Hle);
    Some(Procedure { name, template, form, reference_model, reads_reply })
}

/// The exact tiers of a suite: equality everywhere but for answers that are sets, the scorer of GAIA for its own
/// suites and for AIME.
fn tiers_of(suite: &str, judge: JudgeId) -> &'static [ExactTier] {
    if judge == JudgeId::DeepSearchQa || suite.starts_with("deepsearchqa") {
        &[]
    } else if suite.starts_with("gaia") || suite.starts_with("aime") {
        &[ExactTier::Equal, ExactTier::Gaia]
    } else {
        &[ExactTier::Equal]
    }
}

/// Says whether answers are right.
pub struct Judge {
    suite: String,
    id: JudgeId,
    asked: Asked,
}

enum Asked {
    Model(Box<ModelJudge>),
    Mock,
    Nobody,
}

impl Judge {
    /// A judge that asks a model where no exact tier hits.
    #[must_use]
    pub fn model(suite: &str, id: JudgeId, model: ModelJudge) -> Self {
        Self { suite: suite.to_owned(), id, asked: Asked::Model(Box::new(model)) }
    }

    /// A judge that works offline: the exact tiers, then a comparison that overlooks case, punctuation and articles.
    #[must_use]
    pub fn mock(suite: &str, id: JudgeId) -> Self {
        Self { suite: suite.to_owned(), id, asked: Asked::Mock }
    }

    /// A judge of a suite that is not judged.
    #[must_use]
    pub fn nobody(suite: &str) -> Self {
        Self { suite: suite.to_owned(), id: JudgeId::None, asked: Asked::Nobody }
    }

    /// The judge in words, for the header and reports.
    #[must_use]
    pub fn identity(&self) -> Identity {
        match &self.asked {
            Asked::Model(model) => model.identity(),
            Asked::Mock => Identity { judge: "mock".to_owned(), ..Identity::default() },
            Asked::Nobody => Identity { judge: "none".to_owned(), ..Identity::default() },
        }
    }

    /// Whether the judge looks at whole replies.
    #[must_use]
    pub fn reads_reply(&self) -> bool {
        procedure(self.id).is_some_and(|procedure| procedure.reads_reply)
    }

    /// Says whether the answer is right. Never fails: a judge that cannot be had leaves it unjudged.
    pub async fn judge(&self, task: &Task, answer: Option<&str>) -> Judged {
        self.judge_reply(task, answer, None).await
    }

    /// Says whether the answer of a row is right; judges that look at whole replies are sent its reply.
    pub async fn judge_row(&self, task: &Task, row: &Row) -> Judged {
        self.judge_reply(task, row.answer.as_deref(), row.reply.as_deref()).await
    }

    async fn judge_reply(&self, task: &Task, answer: Option<&str>, reply: Option<&str>) -> Judged {
        let Some(truth) = task.ground_truth.as_deref() else { return Judged::NotScored };
        if matches!(self.asked, Asked::Nobody) {
            return Judged::NotScored;
        }
        let Some(answer) = answer.map(str::trim).filter(|answer| !answer.is_empty()) else {
            return Judged::NoAnswer;
        };
        let tiers = tiers_of(&self.suite, self.id);
        if let Some(tier) = task.accepted().find_map(|accepted| exact_hit(tiers, answer, accepted)) {
            return Judged::Exact { tier };
        }
        match &self.asked {
            Asked::Model(model) => {
                // A reply without the answer would be judged for something else.
                let reply = reply.filter(|reply| self.reads_reply() && reply.contains(answer));
                model.ask(&task.question, truth, reply.unwrap_or(answer)).await
            }
            Asked::Mock | Asked::Nobody => mock::judge(task, answer),
        }
    }
}

/// Who judges, for the header and reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The procedure; `mock` for the one that works offline, `none` for suites that are not judged.
    pub judge: String,
    /// The provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model that is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Hexadecimal SHA-256 of the prompt's template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt_sha256: String,
    /// Replies that are asked for; the majority decides.
    #[serde(default)]
    pub votes: u32,
}

impl Identity {
    /// Whether a verdict with this transcript can be this judge's. Servers name models in their own way, so that the
    /// model is not compared.
    #[must_use]
    pub(crate) fn may_have_said(&self, transcript: &Transcript) -> bool {
        self.judge == transcript.judge
            && self.provider == transcript.provider
            && self.prompt_sha256 == transcript.prompt_sha256
    }

    /// What differs between two judges, each difference in words.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let short = |sha256: &str| sha256.get(..12).unwrap_or("none").to_owned();
        let facts = |judge: &Self| {
            [
                ("procedure", judge.judge.clone()),
                ("provider", judge.provider.clone()),
                ("model", judge.model.clone()),
                ("prompt", short(&judge.prompt_sha256)),
                ("votes", judge.votes.to_string()),
            ]
        };
        let pairs = facts(self).into_iter().zip(facts(other));
        pairs
            .filter(|((_, mine), (_, others))| mine != others)
            .map(|((what, mine), (_, others))| format!("{what}: {mine} there, {others} asked for"))
            .collect()
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [self.judge.as_str(), self.model.as_str()];
        let said: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        f.write_str(&said.join(" "))?;
        if self.votes > 1 {
            write!(f, " ({} votes)", self.votes)?;
        }
        Ok(())
    }
}
