//! How far a run has come, as lines of text. Decides what is said and how it is cut to the width; draws nothing.

use std::fmt::Write as _;
use std::time::Duration;

use evaluation::run::Tally;
use evaluation::sample::Figure;

/// A sample that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    /// Its name.
    pub(crate) name: String,
    /// How long it has been under way, where that is known.
    pub(crate) since: Option<Duration>,
}

/// Everything that is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
    /// The suite, the model and the judge in words.
    pub(crate) title: String,
    /// What has ended.
    pub(crate) tally: Tally,
    /// Samples that will have ended when the run is done.
    pub(crate) total: usize,
    /// Epochs of a task that ends with its first right one; no accuracy is given then.
    pub(crate) any_of: Option<usize>,
    /// Samples under way, the oldest first.
    pub(crate) running: Vec<Running>,
    /// From the end of one sample to the end of the next.
    pub(crate) pace: Option<Duration>,
}

/// Samples that are named.
const NAMED: usize = 3;

impl Picture {
    /// Everything in one line.
    pub(crate) fn line(&self) -> String {
        let tally = &self.tally;
        let mut text = format!("{}/{} done", tally.done(), self.total);
        if tally.judged > 0 {
            let _ = write!(text, " · {}/{} correct", tally.correct, tally.judged);
        }
        if let Some(accuracy) = self.accuracy() {
            let _ = write!(text, " · {accuracy}");
        }
        if tally.unjudged > 0 {
            let _ = write!(text, " · {} unjudged", tally.unjudged);
        }
        for state in ["no_answer", "limit", "error", "contaminated"] {
            if let Some(count) = tally.states.get(state) {
                let _ = write!(text, " · {count} {}", state.replace('_', " "));
            }
        }
        if !self.running.is_empty() {
            let _ = write!(text, " · {} running", self.running.len());
        }
        let _ = write!(text, " · {}", self.spent());
        if let Some(left) = self.left() {
            let _ = write!(text, " · {} left", duration(left));
        }
        text
    }

    /// What makes a further line worth writing.
    pub(crate) fn news(&self) -> String {
        format!("{} {}", self.tally.done(), self.tally.unjudged)
    }

    /// A block of lines, none wider than `width`, at most `height` of them.
    pub(crate) fn block(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.title.clone()];
        let states = self.states();
        let label = states.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let digits = self.total.to_string().len();
        let room = width.saturating_sub(label + digits + 5).min(60);
        for (name, count) in states {
            // Something is never shown as nothing.
            let length = (room * count).div_ceil(self.total.max(1)).min(room);
            lines.push(format!("  {name:label$}  {count:>digits$}  {}", "█".repeat(length)));
        }
        let mut done = format!("{}/{} done", self.tally.done(), self.total);
        if let Some(left) = self.left() {
            let _ = write!(done, " · {} left", duration(left));
        }
        lines.push(done);
        // On a line of its own: on a narrow terminal the figure is not what is cut off.
        lines.extend(self.accuracy());
        lines.push(self.spent());
        if !self.running.is_empty() {
            let longest: Vec<String> = self.running.iter().take(NAMED).map(named).collect();
            lines.push(format!("under way longest: {}", longest.join(", ")));
        }
        if !self.tally.longest.is_empty() {
            let slowest = self.tally.longest.iter().take(NAMED).map(|(ms, sample)| {
                let since = Some(Duration::from_millis(*ms));
                named(&Running { name: format!("{} e{}", sample.task_id, sample.epoch), since })
            });
            lines.push(format!("slowest so far: {}", slowest.collect::<Vec<_>>().join(", ")));
        }
        lines.truncate(height.max(1));
        lines.iter().map(|line| cut(line, width)).collect()
    }

    /// Samples that a run of tasks which end with their first right epoch will not need.
    pub(crate) fn spared(&self, epochs: usize) -> usize {
        let right = self.tally.scores.values().filter(|scores| scores.contains(&1.0));
        right.map(|scores| epochs.saturating_sub(scores.len())).sum()
    }

    /// Samples by what became of them, those under way and those that wait, in a steady order.
    fn states(&self) -> Vec<(&'static str, usize)> {
        let tally = &self.tally;
        let of = |name: &str| tally.states.get(name).copied().unwrap_or(0);
        let answered = of("answered");
        let wrong = tally.answered_wrong;
        let open = answered.saturating_sub(tally.correct + wrong + tally.unjudged);
        let waiting = self.total.saturating_sub(tally.done() + self.running.len());
        let all = [
            ("correct", tally.correct),
            ("not correct", wrong),
            ("unjudged", tally.unjudged),
            ("no right answer known", open),
            ("no answer", of("no_answer")),
            ("limit", of("limit")),
            ("error", of("error")),
            ("contaminated", of("contaminated")),
            ("running", self.running.len()),
            ("pending", waiting),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// The accuracy so far with its interval, over which samples; where tasks end with their first right epoch, the
    /// tasks that were right.
    fn accuracy(&self) -> Option<String> {
        if self.any_of.is_some() {
            let right = self.tally.scores.values().filter(|scores| scores.contains(&1.0)).count();
            return Some(format!("{right} of {} tasks right so far", self.tally.scores.len()))
                .filter(|_| !self.tally.scores.is_empty());
        }
        let accuracy = self.tally.accuracy()?;
        let interval = accuracy
            .interval
            .map_or_else(String::new, |(low, high)| format!(" [{:.1}, {:.1}]", 100.0 * low, 100.0 * high));
        Some(format!("accuracy so far {:.1} %{interval}", 100.0 * accuracy.mean))
    }

    fn spent(&self) -> String {
        let tally = &self.tally;
        let known = |figure: Figure, sum: u64| {
            if tally.unknown.contains(&figure) { "unknown".to_owned() } else { sum.to_string() }
        };
        let (turns, tokens) = (known(Figure::Turns, tally.turns), known(Figure::Tokens, tally.tokens));
        let mut text = format!("{turns} turns · {tokens} tokens");
        if tally.cost_usd > 0.0 {
            let _ = write!(text, " · ${:.4}", tally.cost_usd);
            if tally.unpriced > 0 {
                let _ = write!(text, " and {} samples without a price", tally.unpriced);
            }
        }
        text
    }

    /// How long it will take at this pace.
    fn left(&self) -> Option<Duration> {
        let left = u32::try_from(self.total.checked_sub(self.tally.done())?).ok().filter(|left| *left > 0)?;
        self.pace?.checked_mul(left)
    }
}

fn named(sample: &Running) -> String {
    match sample.since {
        Some(since) => format!("{} {}", sample.name, duration(since)),
        None => sample.name.clone(),
    }
}

/// Ids are foreign text: what could move the cursor is left out.
fn cut(line: &str, width: usize) -> String {
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    console::truncate_str(&plain, width.max(1), "…").into_owned()
}

/// `1 h 02 min`, `3 min 20 s`, `12 s`.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use evaluation::sample::SampleId;

    use super::*;

    fn picture() -> Picture {
        let sample = |task: &str| SampleId { task_id: task.to_owned(), epoch: 1 };
        let tally = Tally {
            states: BTreeMap::from([("answered".to_owned(), 4), ("limit".to_owned(), 1)]),
            correct: 2,
            answered_wrong: 1,
            judged: 4,
            unjudged: 1,
            tokens: 1200,
            turns: 30,
            cost_usd: 0.5,
            unpriced: 0,
            unknown: BTreeSet::new(),
            scores: [("a", 1.0), ("b", 0.0), ("c", 1.0), ("d", 0.0)]
                .map(|(task, score)| (task.to_owned(), vec![score]))
                .into(),
            longest: vec![(200_000, sample("c")), (5_000, sample("a"))],
        };
        let running = vec![Running { name: "e e1".to_owned(), since: Some(Duration::from_secs(7)) }];
        let pace = Some(Duration::from_secs(60));
        Picture { title: "smoke · model-1".to_owned(), tally, total: 100, any_of: None, running, pace }
    }

    #[test]
    fn a_line() {
        assert_eq!(
            picture().line(),
            "5/100 done · 2/4 correct · accuracy so far 50.0 % [0.0, 100.0] · 1 unjudged · 1 limit · 1 running · \
             30 turns · 1200 tokens · $0.5000 · 1 h 35 min left"
        );
        let mut stopping = picture();
        stopping.any_of = Some(3);
        assert_eq!(stopping.spared(3), 4);
        assert!(stopping.line().contains("2 of 4 tasks right so far"), "{}", stopping.line());
    }

    #[test]
    fn a_block_that_fits() {
        let lines = picture().block(60, 40);
        for part in [
            "smoke · model-1",
            "  correct        2  █",
            "  not correct    1  █",
            "  unjudged       1  █",
            "  limit          1  █",
            "  running        1  █",
            "  pending       94  █████",
            "5/100 done · 1 h 35 min left",
            "accuracy so far 50.0 % [0.0, 100.0]",
            "30 turns · 1200 tokens · $0.5000",
            "under way longest: e e1 7 s",
            "slowest so far: c e1 3 min 20 s, a e1 5 s",
        ] {
            assert!(lines.iter().any(|line| line.starts_with(part)), "{part:?} in\n{}", lines.join("\n"));
        }
        let mut wide = picture();
        wide.running[0].name = "日本語のタスク".repeat(20);
        for (picture, width, height) in
            [(picture(), 20, 5), (picture(), 1, 1), (picture(), 0, 0), (picture(), 300, 100), (wide, 41, 40)]
        {
            let lines = picture.block(width, height);
            assert!(lines.len() <= height.max(1));
            let widest = lines.iter().map(|line| console::measure_text_width(line)).max();
            assert!(widest <= Some(width.max(1)), "{}", lines.join("\n"));
            // An ideograph takes two columns.
            let columns =
                lines.iter().map(|line| line.chars().map(|c| 1 + usize::from(c > '\u{2fff}')).sum::<usize>());
            assert!(columns.max() <= Some(width.max(1)), "{}", lines.join("\n"));
        }
    }

    #[test]
    fn foreign_ids_cannot_move_the_cursor() {
        let mut picture = picture();
        picture.running[0].name = "a\x1b[2J\n\rb".to_owned();
        assert!(picture.block(80, 40).iter().all(|line| !line.contains(char::is_control)));
    }
}
