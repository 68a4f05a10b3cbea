//! How well a candidate suits the question, by its form and by its place.
//!
//! Decides the features and their worth. The figures were set by hand on development questions.

use super::super::lexicon::{Dimension, Lexicon, NounClass};
use super::super::question::{Asks, Question, Role, Slot};
use super::super::spans::{Span, SpanKind};
use super::super::text::{TokenKind, tokens};
use super::context::Context;

/// The parts of a candidate's worth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit {
    /// The form against the kind of answer; 0.5 is what a good one has.
    pub(super) form: f32,
    /// Nearness to the question's words.
    pub(super) near: f32,
    /// Patterns: prepositions, apposition, side of the verb.
    pub(super) pattern: f32,
    /// How much of the relation the pattern itself accounts for, 0 to 1: "X by NAME" says who made X.
    pub(super) relation: f32,
}

impl Fit {
    /// The sum.
    pub(super) fn total(self) -> f32 {
        self.form + 0.8 * self.near + self.pattern
    }
}

/// Judges a piece of the sentence; none where it cannot be the answer.
pub(super) fn of_span(question: &Question, context: &Context<'_>, span: &Span) -> Option<Fit> {
    let form = form(question, context, span)?;
    let (all_asked, some_asked) = context.overlap(span.first, span.end);
    let measured = matches!(span.kind, SpanKind::Number | SpanKind::Quantity(_) | SpanKind::Date | SpanKind::Year);
    if all_asked && !(measured && matches!(span.kind, SpanKind::Quantity(_))) {
        return None;
    }
    let near = nearness(question, context, span);
    let mut pattern = patterns(question, context, span);
    if some_asked && !measured {
        // Relatives and namesakes share a name.
        pattern -= if question.asks == Asks::Person { 0.15 } else { 0.3 };
    }
    let mut relation = 0.0;
    if made_by(question, context, span) {
        pattern += 0.35;
        relation = 0.85;
    } else if made_otherwise(question, context, span) {
        pattern += 0.25;
        relation = 0.6;
    }
    if question.naming && is_called(context, span) {
        pattern += 0.4;
        relation = 0.7;
    }
    if means(question, context, span) {
        pattern += 0.45;
        relation = 0.85;
    }
    Some(Fit { form, near, pattern, relation })
}

/// "The Goldfinch by NAME" for a question after the maker.
fn made_by(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    if question.asks != Asks::Person || !question.terms.iter().any(|term| lexicon.is_creating(&term.stem)) {
        return false;
    }
    let Some(by) = agent_marker(context, span) else { return false };
    let made = |anchor: &super::context::Anchor| {
        let defined = (anchor.at..by).any(|at| matches!(context.word(at), "is" | "was"));
        anchor.role == Role::Entity && anchor.at < by && (by - anchor.at <= 3 || defined && by - anchor.at <= 14)
    };
    context.boundaries_between(by, span.first) == 0
        && context.anchors.iter().any(made)
}

/// "It was published by NAME" for a question after the creator: another verb of making.
fn made_otherwise(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    if question.asks != Asks::Person || !question.terms.iter().any(|term| lexicon.is_creating(&term.stem)) {
        return false;
    }
    let Some(by) = agent_marker(context, span) else { return false };
    context.starts_with_subject() && (by.saturating_sub(12)..by).any(|at| lexicon.is_creating(context.stem(at)))
}

/// `X, "Y"`, `X means Y` for a question after the meaning of X.
fn means(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    if span.kind != SpanKind::Quoted || !question.terms.iter().any(|term| term.stem == "mean") {
        return false;
    }
    context.anchors.iter().any(|anchor| anchor.at < span.first && span.first - anchor.at <= 4)
}

fn form(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let value = match (question.asks, span.kind) {
        (Asks::Year, SpanKind::Year) => 0.5,
        (Asks::Year, SpanKind::Date) => {
            let has_year = context.tokens.get(span.first..span.end)?.iter().any(|token| {
                token.text.len() >= 3 && token.text.bytes().all(|byte| byte.is_ascii_digit())
            });
            if !has_year {
                return None;
            }
            0.5
        }
        (Asks::Year, SpanKind::Period) => 0.1,
        (Asks::Date, SpanKind::Date) => 0.55,
        (Asks::Date, SpanKind::Year) => 0.5,
        (Asks::Date, SpanKind::Period) => {
            let wants_period = question.class.as_deref().is_some_and(|class| matches!(class, "centuri" | "decad" | "era" | "period"));
            if wants_period { 0.7 } else { 0.35 }
        }
        (Asks::Count, SpanKind::Number) => 0.3,
        (Asks::Count, SpanKind::Quantity(Dimension::Percent)) => 0.15,
        (Asks::Count, SpanKind::Quantity(_)) => 0.05,
        (Asks::Quantity(Dimension::Length), SpanKind::Quantity(Dimension::Duration)) if question.class.is_some() => 0.35,
        (Asks::Quantity(wanted), SpanKind::Quantity(found)) => quantity(question, context, span, wanted, found)?,
        (Asks::Quantity(Dimension::Duration), SpanKind::Number) if states_age(context, span) => 0.45,
        (Asks::Person, SpanKind::Name) => person(context, span)?,
        (Asks::Place, SpanKind::Name) => place(question, context, span)?,
        (Asks::Place, SpanKind::Phrase) => place_phrase(question, context, span)?,
        (Asks::Person, SpanKind::Phrase) => person_phrase(context, span)?,
        (Asks::Name, SpanKind::Name) => name(question, context, span)?,
        (Asks::Name, SpanKind::Quoted) => 0.48,
        (Asks::Name, SpanKind::Phrase) => name_phrase(question, context, span),
        (Asks::Thing, SpanKind::Phrase) => thing_phrase(question, context, span)?,
        (Asks::Thing, SpanKind::Name) => if question.naming { 0.46 } else { 0.38 },
        (Asks::Thing, SpanKind::Quoted) => 0.42,
        (Asks::Thing, SpanKind::Date | SpanKind::Year) => 0.02,
        (Asks::Thing, SpanKind::Number | SpanKind::Quantity(_)) => {
            if question.class.is_some() && relation_is_noun(question, context, span) > 0.3 { 0.45 } else { 0.1 }
        }
        _ => return None,
    };
    Some(value + class_bonus(question, context, span))
}

fn quantity(question: &Question, context: &Context<'_>, span: &Span, wanted: Dimension, found: Dimension) -> Option<f32> {
    let matches = wanted == found
        || Lexicon::shared().unit(context.stem(span.end.checked_sub(1)?)).contains(&wanted)
        || Lexicon::shared().unit(context.word(span.end.checked_sub(1)?)).contains(&wanted);
    if !matches {
        return None;
    }
    let other = other_dimension(question, context, span);
    let unit_met = question.unit.as_deref().is_none_or(|unit| {
        let last = context.word(span.end - 1);
        last == unit || last.trim_end_matches('s') == unit.trim_end_matches('s')
    });
    Some(if unit_met { 0.5 } else { 0.3 } - if other { 0.3 } else { 0.0 })
}

/// "aged 36", "at the age of seventeen".
fn states_age(context: &Context<'_>, span: &Span) -> bool {
    let before = context.before(span.first, 1);
    matches!(before, "aged" | "age") || matches!(before, "of" | "only") && (2..=4).any(|back| context.before(span.first, back) == "age")
}

/// "80 km wide" where the question asks how long.
fn other_dimension(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    let asked = |stem: &str| {
        question.terms.iter().any(|term| term.stem == stem || lexicon.synonyms(&term.stem).iter().any(|other| other == stem))
    };
    let measure = |at: usize| lexicon.adjective(context.word(at)).is_some() && !asked(context.stem(at));
    let noun = |at: usize| {
        matches!(lexicon.class_of(context.stem(at)), Some(NounClass::Quantity(_))) && !asked(context.stem(at))
    };
    let follows = measure(span.end) || context.word(span.end) == "in" && noun(span.end + 1);
    let leads = (1..=3).any(|back| {
        span.first.checked_sub(back).is_some_and(|at| noun(at) || back <= 2 && context.word(at).ends_with("er") && is_comparative(context, at, &asked))
    });
    follows || leads
}

/// "nowhere wider than 80 km".
fn is_comparative(context: &Context<'_>, at: usize, asked: &dyn Fn(&str) -> bool) -> bool {
    let lexicon = Lexicon::shared();
    let word = context.word(at);
    let base = word.strip_suffix("er").unwrap_or(word);
    let known = lexicon.adjective(base).is_some() || lexicon.adjective(word.strip_suffix('r').unwrap_or(word)).is_some();
    known && !asked(context.stem(at))
}

/// Nouns that tell a body or a building from a person.
fn holds_class(context: &Context<'_>, span: &Span, wanted: &[NounClass]) -> bool {
    let lexicon = Lexicon::shared();
    context
        .tokens
        .get(span.first..span.end)
        .unwrap_or_default()
        .iter()
        .any(|token| lexicon.class_of(&token.stem).is_some_and(|class| wanted.contains(&class)))
}

/// Whether the name is nothing but the name of a people or a language.
fn is_demonym(context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    context
        .tokens
        .get(span.first..span.end)
        .unwrap_or_default()
        .iter()
        .all(|token| token.kind == TokenKind::Mark || lexicon.is_demonym(&token.folded))
}

/// The class of what a document of this name is about.
fn known_class(context: &Context<'_>, span: &Span) -> Option<NounClass> {
    let name = span.text(context.text, &context.tokens);
    let lexicon = Lexicon::shared();
    let genus = context.genus_of(name)?;
    genus.iter().find_map(|noun| lexicon.class_of(noun))
}

/// A capitalised word that only starts the sentence is most often no name.
fn starts_sentence(span: &Span) -> f32 {
    if span.first == 0 && span.end == 1 { 0.15 } else { 0.0 }
}

fn person(context: &Context<'_>, span: &Span) -> Option<f32> {
    if is_demonym(context, span) {
        return None;
    }
    let lexicon = Lexicon::shared();
    let mut value: f32 = 0.42 - starts_sentence(span);
    let before = context.before(span.first, 1);
    let words = span.end - span.first;
    match known_class(context, span) {
        Some(NounClass::Person) => value += 0.15,
        Some(_) => value -= 0.35,
        None => {}
    }
    if span.first > 0 && lexicon.class_of(context.stem(span.first - 1)) == Some(NounClass::Person) {
        value += 0.15;
    }
    if holds_class(context, span, &[NounClass::Person]) {
        value += 0.1;
    }
    if holds_class(context, span, &[NounClass::Place, NounClass::Group]) {
        // "Alonzo Church" is a man, "the Trinity Church" is none.
        value -= if words == 2 && before != "the" { 0.1 } else { 0.4 };
    }
    if lexicon.is_country(span.text(context.text, &context.tokens)) {
        value -= 0.4;
    }
    if (2..=4).contains(&words) {
        value += 0.08;
    }
    if matches!(before, "in" | "at" | "near" | "from" | "to" | "into" | "on" | "through") {
        value -= 0.3;
    }
    if matches!(before, "a" | "an") && !holds_class(context, span, &[NounClass::Person]) {
        value -= 0.3;
    }
    if before == "the" && !holds_class(context, span, &[NounClass::Person]) {
        value -= 0.2;
    }
    let first = context.tokens.get(span.first)?;
    if first.text.len() > 1 && words == 1 && first.text.chars().all(char::is_uppercase) {
        value -= 0.2;
    }
    Some(value)
}

fn person_phrase(context: &Context<'_>, span: &Span) -> Option<f32> {
    // "by a Scottish engineer": only where no name stands in the phrase.
    let named = context.tokens.get(span.first..span.end)?.iter().any(|token| {
        token.is_capitalised() && !Lexicon::shared().is_demonym(&token.folded)
    });
    let last = span.end.checked_sub(1)?;
    let is_person = Lexicon::shared().class_of(context.stem(last)) == Some(NounClass::Person);
    (!named && is_person).then_some(0.15)
}

fn place(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    if is_demonym(context, span) {
        return None;
    }
    let lexicon = Lexicon::shared();
    let mut value: f32 = 0.4 - starts_sentence(span);
    let before = context.before(span.first, 1);
    let led = if matches!(before, "the") { context.before(span.first, 2) } else { before };
    if matches!(led, "in" | "at" | "near" | "to" | "from" | "into" | "on" | "of" | "through") {
        value += if led == "of" || led == "from" || led == "to" { 0.06 } else { 0.14 };
    }
    match known_class(context, span) {
        Some(NounClass::Place) => value += 0.15,
        Some(_) => value -= 0.3,
        None => {}
    }
    if holds_class(context, span, &[NounClass::Place]) {
        value += 0.08;
    }
    if span.first > 0 && lexicon.class_of(context.stem(span.first - 1)) == Some(NounClass::Person) || before == "by" {
        value -= 0.35;
    }
    if question.class.is_none() && holds_class(context, span, &[NounClass::Person, NounClass::Group]) {
        value -= 0.2;
    }
    if let Some(class) = question.class.as_deref() {
        let tokens = context.tokens.get(span.first..span.end)?;
        let has = |wanted: bool| {
            tokens.iter().any(|token| {
                lexicon.class_of(&token.stem) == Some(NounClass::Place) && (token.stem == class) == wanted
            })
        };
        // "Black Forest" is no sea.
        if has(false) && !has(true) {
            return None;
        }
        // Of "the Panthéon in Paris" the building is the first.
        let city = ["city", "town", "place"].iter().any(|noun| super::super::text::stem_of(noun) == class);
        if !city && !is_country_noun(class) && led == "in" && span.first >= 2 {
            let at = if before == "the" { span.first.checked_sub(3) } else { span.first.checked_sub(2) };
            if at.and_then(|at| context.tokens.get(at)).is_some_and(super::super::text::Token::is_capitalised) {
                value -= 0.2;
            }
        }
        let country = lexicon.is_country(span.text(context.text, &context.tokens));
        match (is_country_noun(class), country) {
            (true, true) => value += 0.25,
            (false, true) => value -= 0.25,
            (true, false) => value -= 0.05,
            (false, false) => {}
        }
    }
    Some(value)
}

/// Whether the stem is that of a word for countries.
fn is_country_noun(stem: &str) -> bool {
    ["country", "nation", "state"].iter().any(|noun| super::super::text::stem_of(noun) == stem)
}

fn place_phrase(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let last = span.end.checked_sub(1)?;
    let holds_name = context.tokens.get(span.first..span.end)?.iter().any(super::super::text::Token::is_capitalised);
    let before = context.before(span.first, 1);
    let led = if matches!(before, "the" | "a" | "an" | "his" | "her" | "its") { context.before(span.first, 2) } else { before };
    if !matches!(led, "in" | "at" | "near" | "on" | "under" | "beside" | "between" | "from") {
        return None;
    }
    let is_place = Lexicon::shared().class_of(context.stem(last)) == Some(NounClass::Place);
    if question.class.is_some() && !is_place {
        return None;
    }
    Some(match (is_place, holds_name) {
        (true, true) => 0.42,
        (true, false) => 0.34,
        (false, true) => 0.3,
        (false, false) => 0.25,
    })
}

fn name(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let demonym = is_demonym(context, span);
    match question.class_kind {
        Some(NounClass::Nationality) => return demonym.then_some(0.55),
        Some(NounClass::Language) if demonym => return Some(0.48),
        _ => {}
    }
    if demonym {
        return Some(0.2);
    }
    Some(0.42 - starts_sentence(span))
}

/// Names whose later words are small: "Sterna paradisaea", "the Copley medal".
fn name_phrase(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let named = question.class_kind == Some(NounClass::Name);
    let capital = context.tokens.get(span.first).is_some_and(super::super::text::Token::is_capitalised);
    match (named, capital && span.end - span.first >= 2) {
        (true, true) => 0.46,
        (true, false) => 0.05,
        (false, true) => 0.15,
        (false, false) => 0.1,
    }
}

fn thing_phrase(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let words = span.end - span.first;
    if words > 9 {
        return None;
    }
    let lexicon = Lexicon::shared();
    let only = context.tokens.get(span.first)?;
    if words == 1 && (only.kind != TokenKind::Word || lexicon.is_generic(&only.stem) || only.folded.ends_with("ly")) {
        return None;
    }
    let mut value = 0.36;
    if let Some(class) = &question.class
        && context.stem(span.end - 1) == class
    {
        // "the Copley Medal" for "which medal".
        value += 0.2;
    }
    if words == 1 && (only.folded.ends_with("ed") || only.folded.ends_with("ing")) {
        value -= 0.15;
    }
    Some(value)
}

/// The class noun beside the candidate, or in what a document of that name says of itself.
fn class_bonus(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let Some(class) = question.class.as_deref() else { return 0.0 };
    if matches!(question.asks, Asks::Year | Asks::Date | Asks::Quantity(_)) {
        return 0.0;
    }
    let is_class = |at: Option<usize>| at.is_some_and(|at| context.stem(at) == class);
    if question.asks == Asks::Count {
        // "73 extant species": the counted noun follows within a few words.
        let close = (span.end..span.end + 4).position(|at| context.stem(at) == class);
        let counted = close.map_or(0.0, |distance| 0.45 - 0.05 * distance as f32);
        // "the number of deaths was 36,417", "the number 1729"
        let stated = relation_is_noun(question, context, span) > 0.2
            || (1..=8).any(|back| context.before(span.first, back) == "number") && context.boundaries_between(span.first.saturating_sub(8), span.first) == 0;
        return counted.max(if stated { 0.3 } else { 0.0 });
    }
    let inside = (span.first..span.end).any(|at| context.stem(at) == class);
    let beside = is_class(span.first.checked_sub(1))
        || matches!(context.before(span.first, 1), "of" | "the" | ",") && is_class(span.first.checked_sub(2))
        || is_class(Some(span.end));
    let name = span.text(context.text, &context.tokens);
    let genus = context.genus_of(name);
    let known = genus.is_some_and(|genus| genus.iter().any(|noun| noun == class));
    let mut bonus: f32 = 0.0;
    if inside || beside {
        bonus += 0.2;
    }
    if known {
        bonus += 0.25;
    }
    bonus
}

/// Nearness to the question's words, 0 to 1: words of the relation pull more than names.
fn nearness(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let agent = agent_marker(context, span);
    let mut best: Vec<f32> = vec![0.0; question.terms.len()];
    for anchor in &context.anchors {
        if (span.first..span.end).contains(&anchor.at) {
            continue;
        }
        let (distance, after) = if anchor.at < span.first {
            (span.first - anchor.at, true)
        } else {
            (anchor.at + 1 - span.end, false)
        };
        let crossing = f32::from(context.boundaries_between(anchor.at, span.first));
        let reach = (distance as f32 - 1.0).max(0.0) + 5.0 * crossing;
        let agent = after && agent.is_some();
        let side = match question.slot {
            Slot::After if !after => 0.75,
            Slot::Before if after && !agent && anchor.role == Role::Relation => 0.75,
            _ => 1.0,
        };
        let pull = anchor.weight * side / (1.0 + reach / 3.0);
        if let Some(value) = best.get_mut(anchor.term) {
            *value = value.max(pull);
        }
    }
    let reachable: f32 = question
        .terms
        .iter()
        .map(|term| match term.role {
            Role::Relation => term.weight,
            Role::Entity => 0.6 * term.weight,
            Role::Class => term.weight,
        })
        .sum();
    if reachable > 0.0 { best.iter().sum::<f32>() / reachable } else { 0.0 }
}

fn patterns(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let mut value = 0.0;
    let before = context.before(span.first, 1);
    let article = matches!(before, "the" | "a" | "an" | "its" | "their" | "his" | "her");
    let led_at = if article { span.first.checked_sub(2) } else { span.first.checked_sub(1) };
    let led = led_at.map_or("", |at| context.word(at));
    if question.preposition.as_deref() == Some(led) {
        // The preposition counts fully where the relation stands right before it: "named after X".
        let close = led_at.is_some_and(|at| {
            context.anchors.iter().any(|anchor| anchor.role != Role::Entity && anchor.at < at && at - anchor.at <= 4)
        });
        value += if close { 0.4 } else { 0.15 };
    }
    let by = agent_marker(context, span);
    if question.slot == Slot::Before && by.is_some() {
        let close = by.is_some_and(|at| {
            context.anchors.iter().any(|anchor| anchor.role == Role::Relation && anchor.at < at && at - anchor.at <= 5)
        });
        value += if close { 0.35 } else { 0.0 };
    }
    if matches!(span.kind, SpanKind::Year | SpanKind::Date) && matches!(led, "in" | "on" | "since" | "from") {
        value += 0.05;
    }
    value += relation_is_noun(question, context, span);
    if question.slot == Slot::After && object_of(context, span) {
        value += 0.3;
    }
    value
}

/// Whether the span follows a word of the relation at once: "studied law", "married his cousin NAME".
fn object_of(context: &Context<'_>, span: &Span) -> bool {
    for at in (span.first.saturating_sub(4)..span.first).rev() {
        if context.anchors.iter().any(|anchor| anchor.at == at && anchor.role == Role::Relation) {
            return true;
        }
        let token = context.tokens.get(at);
        let passes = token.is_some_and(|token| {
            matches!(token.folded.as_str(), "the" | "a" | "an" | "his" | "her" | "its" | "their")
                || span.kind == SpanKind::Name
                    && token.kind == TokenKind::Word
                    && !token.is_capitalised()
                    && Lexicon::shared().class_of(&token.stem).is_some()
        });
        if !passes {
            return false;
        }
    }
    false
}

/// "now called X", "renamed X", "known as X".
fn is_called(context: &Context<'_>, span: &Span) -> bool {
    (1..=3).any(|back| {
        let at = span.first.checked_sub(back);
        at.is_some_and(|at| {
            matches!(context.word(at), "called" | "named" | "renamed" | "nicknamed" | "known" | "dubbed")
                && (at + 1..span.first).all(|place| LINKS.contains(&context.word(place)))
        })
    })
}

/// The `by` that leads the span, over an apposition in small letters: "by his pupil NAME".
fn agent_marker(context: &Context<'_>, span: &Span) -> Option<usize> {
    for at in (span.first.saturating_sub(5)..span.first).rev() {
        if context.word(at) == "by" {
            return Some(at);
        }
        let token = context.tokens.get(at)?;
        let demonym = Lexicon::shared().is_demonym(&token.folded);
        if token.kind == TokenKind::Mark && !token.is_mark("-") || token.is_capitalised() && !demonym {
            return None;
        }
    }
    None
}

/// Words between a noun and what it is said to be.
const LINKS: &[&str] = &[
    ",", "the", "a", ":", "(", "\"", "“", "is", "was", "are", "were", "of", "name", "called", "named", "known", "as", "which",
    "about", "some", "approximately", "roughly", "around", "over", "nearly", "almost", "under",
];

/// "R is C", "R of E was C", "C is the R", "C, the R of E", "R: C" for a question after the R of E.
fn relation_is_noun(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let nouns: Vec<usize> = context
        .anchors
        .iter()
        .filter(|anchor| anchor.role != Role::Entity)
        .filter(|anchor| question.terms.get(anchor.term).is_some_and(|term| question.class.as_deref() == Some(&term.stem)))
        .map(|anchor| anchor.at)
        .collect();
    let mut best: f32 = 0.0;
    for at in nouns {
        if at < span.first {
            let between = at + 1..span.first;
            let distance = between.len();
            let be = between.clone().any(|place| matches!(context.word(place), "is" | "was" | "are" | "were" | ":" | "be" | "being" | "called" | "named"));
            let only_marks = between.clone().all(|place| LINKS.contains(&context.word(place)));
            let calls = between.clone().any(|place| matches!(context.word(place), "called" | "named" | "known"));
            if only_marks && distance <= 6 {
                best = best.max(if calls { 0.5 } else { 0.35 });
            } else if be && distance <= 7 && context.boundaries_between(at, span.first) == 0 {
                best = best.max(0.22);
            }
        } else if at >= span.end {
            let between = span.end..at;
            let distance = between.len();
            let opens = context.word(span.end);
            let linked = matches!(opens, "," | "is" | "was" | "are" | "were" | "became" | "as" | "(");
            if linked && distance <= 7 && context.boundaries_between(span.end, at) == 0 {
                best = best.max(0.25);
            }
        }
    }
    best
}

/// Judges the document's title as the answer: the sentence may speak of it by a pronoun only.
pub(super) fn of_title(question: &Question, context: &Context<'_>) -> Option<Fit> {
    if context.title.is_empty() || context.title.len() > 100 {
        return None;
    }
    if !matches!(question.asks, Asks::Person | Asks::Place | Asks::Name | Asks::Thing) {
        return None;
    }
    let words = tokens(context.title);
    let mut all = true;
    let mut some = false;
    for token in &words {
        if token.kind == TokenKind::Mark || Lexicon::shared().is_stopword(&token.folded) {
            continue;
        }
        if context.asked.contains(&token.stem.as_str()) {
            some = true;
        } else {
            all = false;
        }
    }
    if all || some && question.asks == Asks::Person {
        return None;
    }
    let lexicon = Lexicon::shared();
    let classes: Vec<NounClass> = context.genus.iter().filter_map(|noun| lexicon.class_of(noun)).collect();
    let wanted = match question.asks {
        Asks::Person => Some(NounClass::Person),
        Asks::Place => Some(NounClass::Place),
        _ => question.class_kind,
    };
    let mut form: f32 = 0.3;
    match wanted {
        Some(wanted) if classes.first() == Some(&wanted) || classes.contains(&wanted) => form += 0.15,
        Some(_) if !classes.is_empty() || question.asks == Asks::Person && !context.genus.is_empty() => form -= 0.3,
        _ => {}
    }
    if question.class.as_ref().is_some_and(|class| context.genus.contains(class)) {
        form += 0.3;
    }
    let subject = context.starts_with_subject();
    let mut pattern = match (question.slot, subject) {
        (Slot::Before, true) => 0.25,
        (Slot::Before, false) => 0.0,
        (Slot::After, true) => -0.15,
        (_, true) => 0.1,
        (_, false) => -0.1,
    };
    if some {
        pattern -= 0.25;
    }
    let near = if subject { 0.55 } else { 0.3 };
    // "It is the capital of …" says what the title is.
    if subject && question.class.is_some() {
        let be = (0..context.tokens.len().min(12)).find(|at| matches!(context.word(*at), "is" | "was" | "are" | "were"));
        if be.is_some_and(|be| (be + 1..be + 5).any(|at| question.class.as_deref() == Some(context.stem(at)))) {
            pattern += 0.35;
        }
    }
    let confirmed = question.class.as_ref().is_some_and(|class| context.genus.contains(class));
    Some(Fit { form, near, pattern, relation: if confirmed { 0.4 } else { 0.0 } })
}

/// Adds the narrower pieces that an answer should be: "Junko Tabei" of "Junko Tabei of Japan", what stands after
/// the class noun in "the pigment ultramarine".
pub(super) fn narrowed(question: &Question, context: &Context<'_>, pieces: &mut Vec<Span>) {
    let lexicon = Lexicon::shared();
    let mut added = Vec::new();
    for span in pieces.iter_mut() {
        if question.asks == Asks::Person && span.kind == SpanKind::Name {
            let of = (span.first + 2..span.end).find(|at| matches!(context.word(*at), "of" | "from"));
            let ranked = context
                .tokens
                .get(span.first..of.unwrap_or(span.end))
                .unwrap_or_default()
                .iter()
                .any(|token| lexicon.class_of(&token.stem) == Some(NounClass::Person));
            if let Some(of) = of.filter(|_| !ranked) {
                span.end = of;
            }
        }
        if question.asks == Asks::Place && span.kind == SpanKind::Name {
            // "Andes of Ecuador": each part is a place.
            if let Some(of) = (span.first + 1..span.end.saturating_sub(1)).find(|at| context.word(*at) == "of") {
                let rest = if context.word(of + 1) == "the" { of + 2 } else { of + 1 };
                added.push(Span { kind: SpanKind::Name, first: span.first, end: of });
                added.push(Span { kind: SpanKind::Name, first: rest, end: span.end });
            }
        }
        if let (Some(class), SpanKind::Phrase) = (question.class.as_deref(), span.kind) {
            let noun = (span.first..span.end.saturating_sub(1)).find(|at| {
                context.stem(*at) == class && !context.tokens.get(*at).is_some_and(super::super::text::Token::is_capitalised)
            });
            if let Some(noun) = noun.filter(|noun| context.tokens.get(noun + 1).is_some_and(|t| t.kind == TokenKind::Word)) {
                added.push(Span { kind: SpanKind::Phrase, first: noun + 1, end: span.end });
            }
        }
    }
    if let (Asks::Name, Some(class)) = (question.asks, question.class.as_deref()) {
        added.extend(named_clause(context, class));
    }
    for span in pieces.iter().filter(|span| span.kind == SpanKind::Name) {
        // "Newton's Principia" where the question names Newton.
        let mark = (span.first + 1..span.end.saturating_sub(1)).find(|at| context.word(*at) == "s");
        if let Some(mark) = mark
            && super::super::spans::glued_possessive(&context.tokens, mark)
            && context.overlap(span.first, mark).0
        {
            added.push(Span { kind: SpanKind::Name, first: mark + 1, end: span.end });
        }
    }
    pieces.extend(added);
}

/// "its Latin motto, Nullius in verba, …": what stands between the noun and the next mark.
fn named_clause(context: &Context<'_>, class: &str) -> Option<Span> {
    let noun = (0..context.tokens.len()).find(|at| context.stem(*at) == class)?;
    let mut first = noun + 1;
    if !matches!(context.word(first), "," | "is" | "was" | ":" | "being" | "(") {
        return None;
    }
    first += 1;
    while matches!(context.word(first), "the" | "\"" | "“" | "called") {
        first += 1;
    }
    let capital = context.tokens.get(first).is_some_and(super::super::text::Token::is_capitalised);
    let end = (first..context.tokens.len().min(first + 9)).find(|at| {
        context.tokens.get(*at).is_some_and(|token| token.kind == TokenKind::Mark && !token.is_mark("-"))
    })?;
    (capital && end > first).then_some(Span { kind: SpanKind::Quoted, first, end })
}
