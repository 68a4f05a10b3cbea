//! The judge that works offline and says the same every time. Good for trying a suite out, not for publishing.

use core_protocol::event::UsageTotals;

use crate::dataset::Task;
use crate::exact::loose_match;
use crate::sample::{Judged, Transcript};
use crate::verdict::{Judgement, Verdict};

pub(super) fn judge(task: &Task, answer: &str) -> Judged {
    let right = task.accepted().any(|accepted| loose_match(answer, accepted));
    let verdict = if right { Verdict::Correct } else { Verdict::Incorrect };
    Judged::ByJudge {
        judgement: Judgement::from(verdict),
        transcript: Transcript {
            judge: "mock".to_owned(),
            provider: String::new(),
            model: String::new(),
            prompt_sha256: String::new(),
            replies: Vec::new(),
            votes: Vec::new(),
            usage: UsageTotals::default(),
            cost_usd: Some(0.0),
        },
    }
}
