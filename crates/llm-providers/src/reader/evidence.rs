//! Which sentences of the documents seen speak of what the question asks.
//!
//! Decides coverage: how much of the question a sentence, its title, its headings and its neighbours account for.
//! Picking the answer out of a sentence is left to `answer`.

use std::collections::HashMap;

use super::lexicon::Lexicon;
use super::question::{Question, Role, Term};
use super::sentences::{Sentence, sentences};
use super::text::{TokenKind, fold_into, scan, stem_in_place, tokens};

/// At most so many sentences go on to the extraction of answers.
const BEST: usize = 24;

/// How much a term counts that is met in another way than by its own word in the sentence.
const BY_SYNONYM: f32 = 0.75;
const BY_TITLE: f32 = 0.92;
const BY_HEADING: f32 = 0.85;
/// What a title that the question names adds to the document's own worth.
const BY_NAME: f32 = 0.25;

/// A document, or what a search showed of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    /// What the reading tool wants: an id or an address.
    pub(super) id: String,
    /// Its title.
    pub(super) title: String,
    /// Its sentences, in order.
    pub(super) sentences: Vec<Sentence>,
    /// Stems of what its first sentence says that it is.
    pub(super) genus: Vec<String>,
    /// Place in the best search that showed it, from 0.
    pub(super) rank: usize,
    /// Which of `he` and `she` the document says more often, where it says either.
    pub(super) gender: Option<Gender>,
}

/// A pronoun's gender, by which sentences about somebody else are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gender {
    /// he, his, him
    Male,
    /// she, her, hers
    Female,
}

/// The first gendered pronoun of a sentence.
fn gender_of(text: &str) -> Option<Gender> {
    text.split(|c: char| !c.is_alphanumeric()).find_map(|word| match word {
        "he" | "He" | "his" | "His" | "him" => Some(Gender::Male),
        "she" | "She" | "her" | "Her" | "hers" => Some(Gender::Female),
        _ => None,
    })
}

impl Document {
    /// Cuts the text into sentences and notes what the document says that its subject is.
    pub(super) fn new(id: &str, title: &str, text: &str, rank: usize) -> Self {
        let mut document = Self {
            id: id.to_owned(),
            title: title.trim().to_owned(),
            sentences: sentences(text),
            genus: Vec::new(),
            rank,
            gender: None,
        };
        document.find_genus();
        let count = |wanted| {
            document.sentences.iter().filter(|sentence| gender_of(&sentence.text) == Some(wanted)).count()
        };
        document.gender = match (count(Gender::Male), count(Gender::Female)) {
            (0, 0) => None,
            (male, female) if male >= female => Some(Gender::Male),
            _ => Some(Gender::Female),
        };
        document
    }

    /// "X is a river in …": the words between the article and the next mark or relative clause.
    pub(super) fn find_genus(&mut self) {
        let Some(first) = self.sentences.iter().find(|sentence| sentence.text.len() > 20) else { return };
        let list = tokens(first.text.get(..floor(&first.text, 400)).unwrap_or_default());
        let Some(be) = list.iter().position(|t| matches!(t.folded.as_str(), "is" | "was" | "are" | "were"))
        else {
            return;
        };
        let lexicon = Lexicon::shared();
        for token in list.iter().skip(be + 1) {
            let word = token.folded.as_str();
            if token.kind == TokenKind::Mark && !matches!(word, "-" | ",")
                || matches!(
                    word,
                    "that" | "which" | "who" | "where" | "in" | "by" | "from" | "for" | "on" | "used"
                )
            {
                break;
            }
            if token.kind == TokenKind::Word && !lexicon.is_stopword(word) {
                self.genus.push(token.stem.clone());
            }
        }
    }
}

/// The largest character boundary at or below the place.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
}

/// One sentence and how it covers the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Passage {
    /// Index of the document.
    pub(super) document: usize,
    /// Index of the sentence.
    pub(super) sentence: usize,
    /// Share of the question's weight that is accounted for, 0 to 1.
    pub(super) coverage: f32,
    /// The same of what is asked about.
    pub(super) entity: f32,
    /// The same of the relation, 1 where the question has none.
    pub(super) relation: f32,
    /// Share of the title that stands in the question.
    pub(super) title: f32,
    /// What the sentences are ordered by.
    pub(super) score: f32,
    /// Share of the question's weight that the document as a whole meets.
    pub(super) topic: f32,
    /// How far the document is ahead of the best other one in that, negative where it is behind.
    pub(super) lead: f32,
    /// Share of what is asked that the sentence meets in its own words.
    pub(super) own: f32,
    /// The same of the common words alone, without names and numbers.
    pub(super) asked: f32,
    /// Share of the question's names and numbers that the document holds.
    pub(super) names: f32,
}

/// The question's terms by stem, those that may stand for them included.
pub(super) struct Lookup {
    stems: HashMap<String, (u64, u64)>,
    /// Stems of the question's own terms by their first letters.
    roots: HashMap<String, Vec<(String, u64)>>,
}

/// Words of one root share at least so many bytes.
const ROOT: usize = 5;

/// Whether two stems share their beginning: `canada` and `canadian`, not `construct` and `constant`.
fn same_root(a: &str, b: &str) -> bool {
    let shared = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    shared >= ROOT && shared * 10 >= a.len().max(b.len()) * 6
}

impl Lookup {
    /// For one question.
    pub(super) fn new(question: &Question) -> Self {
        let lexicon = Lexicon::shared();
        let mut stems: HashMap<String, (u64, u64)> = HashMap::new();
        let mut roots: HashMap<String, Vec<(String, u64)>> = HashMap::new();
        for (at, term) in question.terms.iter().enumerate() {
            let bit = 1_u64 << at.min(63);
            stems.entry(term.stem.clone()).or_default().0 |= bit;
            if let Some(root) = term.stem.get(..ROOT) {
                roots.entry(root.to_owned()).or_default().push((term.stem.clone(), bit));
            }
            // A name has no synonyms, a common noun that is the topic has.
            if !is_name(term) {
                for other in lexicon.synonyms(&term.stem) {
                    stems.entry(other.clone()).or_default().1 |= bit;
                }
            }
        }
        Self { stems, roots }
    }

    /// The terms that a stem meets: exactly, and by a synonym or a word of the same root.
    pub(super) fn of(&self, stem: &str) -> (u64, u64) {
        if let Some(found) = self.stems.get(stem) {
            return *found;
        }
        let mut soft = 0;
        if let Some(root) = stem.get(..ROOT)
            && let Some(list) = self.roots.get(root)
        {
            for (other, bit) in list {
                if same_root(stem, other) {
                    soft |= bit;
                }
            }
        }
        (0, soft)
    }

    /// The terms that a text meets.
    pub(super) fn of_text(&self, text: &str, buffer: &mut String) -> (u64, u64) {
        let (mut exact, mut soft) = (0, 0);
        scan(text, |kind, word, _| {
            if kind == TokenKind::Mark || word.len() > 60 {
                return;
            }
            buffer.clear();
            fold_into(word, buffer);
            match kind {
                TokenKind::Word => stem_in_place(buffer),
                _ => buffer.retain(|c| c != ','),
            }
            let (more, softer) = self.of(buffer);
            exact |= more;
            soft |= softer;
        });
        (exact, soft)
    }
}

/// The best sentences, best first.
pub(super) fn rank(question: &Question, documents: &[Document]) -> Vec<Passage> {
    let mut passages = rank_all(question, documents);
    passages.truncate(BEST);
    passages
}

/// All sentences that meet a word of the question, best first.
pub(super) fn rank_all(question: &Question, documents: &[Document]) -> Vec<Passage> {
    let lookup = Lookup::new(question);
    let mut buffer = String::new();
    let mut masks: Vec<Vec<(u64, u64)>> = Vec::with_capacity(documents.len());
    let mut frequency = vec![0_u32; question.terms.len()];
    let mut total = 0_u32;
    for document in documents {
        let list: Vec<(u64, u64)> =
            document.sentences.iter().map(|sentence| lookup.of_text(&sentence.text, &mut buffer)).collect();
        for (exact, _) in &list {
            total += 1;
            let mut left = *exact;
            while left != 0 {
                if let Some(count) = frequency.get_mut(left.trailing_zeros() as usize) {
                    *count += 1;
                }
                left &= left - 1;
            }
        }
        masks.push(list);
    }
    let weights = weights(question, &frequency, total);
    let topics: Vec<f32> = documents
        .iter()
        .zip(&masks)
        .map(|(document, list)| {
            let title = lookup.of_text(&document.title, &mut buffer);
            let all = list.iter().fold(title, |sum, mask| (sum.0 | mask.0, sum.1 | mask.1));
            let titled = title_share(&document.title, &lookup);
            (share(question, &weights, all) + BY_NAME * titled * titled).min(1.0)
        })
        .collect();
    let mut passages = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        let Some(list) = masks.get(index) else { continue };
        let everywhere = list.iter().fold((0, 0), |sum, mask| (sum.0 | mask.0, sum.1 | mask.1));
        let topic = topics.get(index).copied().unwrap_or_default();
        let others = topics.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, value)| *value);
        let ahead = topic - others.fold(0.0, f32::max);
        let (title, _) = lookup.of_text(&document.title, &mut buffer);
        let title_share = title_share(&document.title, &lookup);
        let mut heading_text: Option<(&str, (u64, u64))> = None;
        for (place, sentence) in document.sentences.iter().enumerate() {
            let own = list.get(place).copied().unwrap_or_default();
            if own.0 | own.1 | title == 0 {
                continue;
            }
            let heading = match heading_text {
                Some((text, mask)) if text == sentence.heading => mask,
                _ => {
                    let mask = lookup.of_text(&sentence.heading, &mut buffer);
                    heading_text = Some((&sentence.heading, mask));
                    mask
                }
            };
            let before = |back: usize| {
                place.checked_sub(back).and_then(|at| list.get(at)).copied().unwrap_or_default()
            };
            let near = if sentence.follows { before(1) } else { (0, 0) };
            let far = if sentence.follows { before(2) } else { before(1) };
            // "She died in 1642" in an article on a man speaks of somebody else.
            let other = sentence.text.starts_with("He ") && document.gender == Some(Gender::Female)
                || sentence.text.starts_with("She ") && document.gender == Some(Gender::Male);
            let lead = list.first().copied().unwrap_or_default().0;
            let view = View {
                everywhere,
                lead,
                own,
                title: if other { 0 } else { title },
                heading: if other { (0, 0) } else { heading },
                near,
                far,
            };
            let mut found = passage(question, &weights, &view, (index, place), title_share, document.rank);
            found.topic = topic;
            found.lead = ahead;
            // Of two sentences that cover the same, the one in the document that covers more comes first.
            found.score += 0.5 * topic + 0.3 * ahead.clamp(-0.3, 0.3);
            passages.push(found);
        }
    }
    passages.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(a.document.cmp(&b.document)).then(a.sentence.cmp(&b.sentence))
    });
    passages
}

/// The words of the question in a sentence and around it.
struct View {
    /// The document's sentences taken together.
    everywhere: (u64, u64),
    /// The document's first sentence, which says what it is about.
    lead: u64,
    own: (u64, u64),
    title: u64,
    heading: (u64, u64),
    near: (u64, u64),
    far: (u64, u64),
}

fn passage(
    question: &Question,
    weights: &[f32],
    view: &View,
    (document, sentence): (usize, usize),
    title: f32,
    rank: usize,
) -> Passage {
    let (mut covered, mut total) = (0.0, 0.0);
    let (mut entity, mut entity_total) = (0.0, 0.0);
    let (mut relation, mut relation_total) = (0.0, 0.0);
    let mut own_weight = 0.0;
    let (mut own, mut own_total) = (0.0, 0.0);
    let (mut asked, mut asked_total) = (0.0, 0.0);
    let (mut names, mut names_total) = (0.0, 0.0);
    for (at, (term, weight)) in question.terms.iter().zip(weights).enumerate() {
        let bit = 1_u64 << at.min(63);
        let met = |mask: u64| mask & bit != 0;
        let (near, far) = if term.role == Role::Entity { (0.7, 0.5) } else { (0.3, 0.1) };
        let share = if met(view.own.0) {
            1.0
        } else if met(view.title) {
            BY_TITLE
        } else if met(view.heading.0) {
            BY_HEADING
        } else if met(view.own.1) {
            BY_SYNONYM
        } else if met(view.heading.1) {
            BY_HEADING * BY_SYNONYM
        } else if met(view.near.0) {
            near
        } else if met(view.far.0) {
            far
        } else if term.role == Role::Entity && met(view.lead) {
            0.5
        } else if met(view.near.1) {
            near * 0.6
        } else if met(view.everywhere.0) {
            if term.role == Role::Entity { 0.45 } else { 0.1 }
        } else if met(view.everywhere.1) {
            if term.role == Role::Entity { 0.35 } else { 0.05 }
        } else {
            0.0
        };
        if met(view.own.0) {
            own_weight += weight;
        }
        if !met(view.title) {
            let here = if met(view.own.0) {
                1.0
            } else if met(view.own.1) {
                0.8
            } else if met(view.near.0 | view.near.1) {
                0.3
            } else {
                0.0
            };
            own += weight * here;
            own_total += weight;
            if !is_name(term) && term.role != Role::Class {
                asked += weight * here;
                asked_total += weight;
            }
        }
        if is_name(term) {
            // A year that the document lacks is worth two names.
            let weight =
                if term.text.starts_with(|c: char| c.is_ascii_digit()) { 2.0 * weight } else { *weight };
            names_total += weight;
            if met(view.title | view.everywhere.0 | view.everywhere.1) {
                names += weight;
            }
        }
        covered += weight * share;
        total += weight;
        match term.role {
            Role::Entity => {
                entity += weight * share;
                entity_total += weight;
            }
            Role::Relation => {
                relation += weight * share;
                relation_total += weight;
            }
            Role::Class => {}
        }
    }
    let part = |sum: f32, of: f32| if of > 0.0 { sum / of } else { 1.0 };
    let coverage = part(covered, total);
    let relation = part(relation, relation_total);
    let rank_bonus = 0.06 / (1.0 + rank as f32);
    let score =
        coverage + 0.25 * relation + 0.15 * part(own_weight, total) + 0.22 * title * title + rank_bonus;
    Passage {
        document,
        sentence,
        coverage,
        entity: part(entity, entity_total),
        relation,
        title,
        score: score + 0.5 * part(own, own_total),
        topic: 0.0,
        lead: 0.0,
        own: part(own, own_total),
        asked: part(asked, asked_total),
        names: part(names, names_total),
    }
}

/// A name or a number, not a common noun that is the topic, nor a decade.
fn is_name(term: &Term) -> bool {
    let decade = term.text.starts_with(|c: char| c.is_ascii_digit()) && term.text.ends_with('s');
    term.role == Role::Entity && !term.text.starts_with(char::is_lowercase) && !decade
}

/// The weight of the terms met, a synonym for three quarters, of all but those that the answer itself meets.
fn share(question: &Question, weights: &[f32], (exact, soft): (u64, u64)) -> f32 {
    let (mut met, mut all) = (0.0_f32, 0.0_f32);
    for (at, (term, weight)) in question.terms.iter().zip(weights).enumerate() {
        if term.role == Role::Class {
            continue;
        }
        let bit = 1_u64 << at.min(63);
        all += weight;
        met += weight
            * if exact & bit != 0 {
                1.0
            } else if soft & bit != 0 {
                BY_SYNONYM
            } else {
                0.0
            };
    }
    if all > 0.0 { met / all } else { 0.0 }
}

/// Weights of the terms: what is rare in the evidence weighs more, and what is missing from it weighs fully.
fn weights(question: &Question, frequency: &[u32], total: u32) -> Vec<f32> {
    let scale = (f64::from(total) + 2.0).ln();
    question
        .terms
        .iter()
        .zip(frequency)
        .map(|(term, count)| {
            let rarity = ((f64::from(total) + 2.0) / (f64::from(*count) + 1.0)).ln() / scale;
            let rarity = rarity.clamp(0.0, 1.0) as f32;
            let base = if term.role == Role::Entity { 0.7 } else { 0.5 };
            term.weight * (base + (1.0 - base) * rarity)
        })
        .collect()
}

/// How much of the title's own content words stand in the question.
pub(super) fn title_share(title: &str, lookup: &Lookup) -> f32 {
    let lexicon = Lexicon::shared();
    let (mut met, mut all) = (0.0_f32, 0.0_f32);
    // People are called by the last part of their names.
    let mut surname = false;
    let mut capitalised = true;
    for token in tokens(title.get(..floor(title, 200)).unwrap_or_default()) {
        if token.kind == TokenKind::Mark || lexicon.is_stopword(&token.folded) {
            continue;
        }
        all += 1.0;
        surname = lookup.of(&token.stem).0 != 0;
        capitalised &= token.is_capitalised();
        if surname {
            met += 1.0;
        }
    }
    let share = if all > 0.0 { met / all } else { 0.0 };
    if surname && capitalised && (2.0..=3.0).contains(&all) { share.max(0.8) } else { share }
}
