//! Verdicts that are structured: an object, alone, in a fence or after other text, or lines `name: value`. An object
//! that was cut is none.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Judgement, NoVerdict, Verdict};
use crate::figures::SetScore;

/// `correct: yes|no` with the extracted answer and the confidence.
pub(super) fn read_fields(said: &str) -> Result<Judgement, NoVerdict> {
    let objects: Vec<Map<String, Value>> =
        objects_in(said).into_iter().filter(|object| value_of(object, "correct").is_some()).collect();
    if objects.is_empty() {
        return read_lines(said);
    }
    let mut found: Option<Judgement> = None;
    for object in objects {
        let mut said = values_of(&object, "correct").map(yes_or_no);
        let correct = said.next().flatten().ok_or(NoVerdict::NotInForm)?;
        if said.any(|other| other != Some(correct)) {
            return Err(NoVerdict::Contradiction);
        }
        let judgement = Judgement {
            extracted: value_of(&object, "extracted_final_answer").and_then(Value::as_str).map(str::to_owned),
            confidence: value_of(&object, "confidence").and_then(confidence_of_value),
            ..Judgement::from(verdict(correct))
        };
        if found.as_ref().is_some_and(|before| before.verdict != judgement.verdict) {
            return Err(NoVerdict::Contradiction);
        }
        found = Some(judgement);
    }
    found.ok_or(NoVerdict::NotInForm)
}

fn read_lines(said: &str) -> Result<Judgement, NoVerdict> {
    let (mut correct, mut extracted, mut confidence) = (None, None, None);
    for line in said.lines() {
        // A quoted name belongs to an object, and an object that could not be read is none.
        let Some((name, value)) = line.split_once([':', '：']).filter(|(name, _)| !name.contains(['{', '"']))
        else {
            continue;
        };
        match plain(name).as_str() {
            "correct" => {
                let Some(said) = text_yes_or_no(value) else { continue };
                if correct.is_some_and(|before| before != said) {
                    return Err(NoVerdict::Contradiction);
                }
                correct = Some(said);
            }
            "extracted_final_answer" => extracted = Some(value.trim_matches(['*', ' ']).to_owned()),
            "confidence" => confidence = percent(value),
            _ => {}
        }
    }
    let correct = correct.ok_or(NoVerdict::NotInForm)?;
    Ok(Judgement { extracted, confidence, ..Judgement::from(verdict(correct)) })
}

/// Parts of the example in the prompt that ships with the program. A reply that repeats it says nothing by it.
const EXAMPLE_PARTS: [&str; 2] = ["first expected part", "second expected part"];

/// Every expected part true or false, and what is in excess. Where several objects say so they must agree: which of
/// them is the verdict cannot be told from their order.
pub(super) fn read_parts(said: &str) -> Result<Judgement, NoVerdict> {
    let mut found: Option<SetScore> = None;
    for object in objects_in(said) {
        let Some(score) = parts_of(&object) else { continue };
        if found.is_some_and(|before| before != score) {
            return Err(NoVerdict::Contradiction);
        }
        found = Some(score);
    }
    let score = found.ok_or(NoVerdict::NotInForm)?;
    Ok(Judgement { parts: Some(score), ..Judgement::from(verdict(score.fully_correct())) })
}

/// The object itself, or one value of it, that has both parts and excess.
fn parts_of(object: &Map<String, Value>) -> Option<SetScore> {
    let part_names = ["correctness details", "expected", "expected parts", "parts"];
    let excess_names = ["excessive answers", "excess", "excessive"];
    let parts = part_names.iter().find_map(|name| value_of(object, name));
    let Some(parts) = parts else {
        return object.values().filter_map(Value::as_object).find_map(parts_of);
    };
    let states: Option<Vec<bool>> = match parts {
        Value::Object(parts) if EXAMPLE_PARTS.iter().any(|name| value_of(parts, name).is_some()) => None,
        Value::Object(parts) => parts.values().map(yes_or_no).collect(),
        Value::Array(parts) => parts.iter().map(yes_or_no).collect(),
        _ => None,
    };
    let states = states.filter(|states| !states.is_empty())?;
    let excess = match excess_names.iter().find_map(|name| value_of(object, name))? {
        Value::Array(excess) => excess.iter().filter(|part| !is_nothing(part)).count(),
        Value::Object(excess) => excess.len(),
        Value::Null => 0,
        Value::String(text) => usize::from(!is_nothing(&Value::String(text.clone()))),
        Value::Bool(_) | Value::Number(_) => return None,
    };
    let found = states.iter().filter(|state| **state).count();
    Some(SetScore { found, expected: states.len(), excess })
}

fn is_nothing(value: &Value) -> bool {
    value.as_str().is_some_and(|text| matches!(plain(text).as_str(), "" | "none" | "n_a")) || value.is_null()
}

/// All objects of a text, outermost ones only; none where the text ends inside one.
fn objects_in(text: &str) -> Vec<Map<String, Value>> {
    let mut objects = Vec::new();
    let mut at = 0;
    while let Some(begin) = text.get(at..).and_then(|rest| rest.find('{')).map(|offset| at + offset) {
        let mut values = serde_json::Deserializer::from_str(text.get(begin..).unwrap_or_default())
            .into_iter::<Unequivocal>();
        at = match values.next() {
            Some(Ok(Unequivocal(Value::Object(object)))) => {
                objects.push(object);
                begin + values.byte_offset().max(1)
            }
            Some(Err(error)) if error.is_eof() => return Vec::new(),
            // What a broken object holds is not looked at again: it goes on where the object broke.
            Some(Err(error)) => begin + reached(text.get(begin..).unwrap_or_default(), &error),
            _ => begin + 1,
        };
    }
    objects
}

/// A value in which no object has a name twice with different values: such a one says two things at once.
struct Unequivocal(Value);

impl<'de> Deserialize<'de> for Unequivocal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UnequivocalVisitor)
    }
}

struct UnequivocalVisitor;

impl<'de> Visitor<'de> for UnequivocalVisitor {
    type Value = Unequivocal;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Unequivocal, E> {
        Ok(Unequivocal(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unequivocal, E> {
        Ok(Unequivocal(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unequivocal, E> {
        Ok(Unequivocal(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unequivocal, E> {
        Ok(Unequivocal(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unequivocal, E> {
        Ok(Unequivocal(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unequivocal, E> {
        Ok(Unequivocal(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unequivocal, A::Error> {
        let mut list = Vec::new();
        while let Some(Unequivocal(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Unequivocal(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unequivocal, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unequivocal(value))) = entries.next_entry::<String, Unequivocal>()? {
            if object.get(&name).is_some_and(|before| *before != value) {
                return Err(A::Error::custom("a name stands twice with different values"));
            }
            object.insert(name, value);
        }
        Ok(Unequivocal(Value::Object(object)))
    }
}

/// Where reading a text broke off: after its first byte, at the beginning of a character.
fn reached(text: &str, error: &serde_json::Error) -> usize {
    let line = match error.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2).map_or(0, |(at, _)| at + 1),
    };
    let at = (line + error.column()).saturating_sub(1).max(1);
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// The value of a name, however its words are joined and whatever their case.
fn value_of<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    values_of(object, name).next()
}

fn values_of<'a>(object: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    let wanted = plain(name);
    object.iter().filter(move |(given, _)| plain(given) == wanted).map(|(_, value)| value)
}

/// A name in lower case with `_` between its words, markup left out.
fn plain(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

fn yes_or_no(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => text_yes_or_no(text),
        _ => None,
    }
}

/// The first word of a value, where nothing after it leaves the choice open, as the template does and `yes and no`.
fn text_yes_or_no(value: &str) -> Option<bool> {
    let words: Vec<String> = value
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let (first, rest) = words.split_first()?;
    let (said, opposite) = match first.as_str() {
        "yes" | "true" => (true, ["no", "false"]),
        "no" | "false" => (false, ["yes", "true"]),
        _ => return None,
    };
    let is_open =
        rest.iter().any(|word| opposite.contains(&word.as_str()) || (said && OPEN.contains(&word.as_str())))
            || value.contains(['?', '？']);
    (!is_open).then_some(said)
}

/// Words that make a yes a choice or a condition.
const OPEN: &[&str] = &["or", "if", "otherwise", "unless", "but", "not", "incorrect", "wrong"];

fn confidence_of_value(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => share(number.as_f64()?),
        Value::String(text) => percent(text),
        _ => None,
    }
}

/// The first number of a text, as a percentage.
pub(super) fn percent(text: &str) -> Option<f64> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let rest = text.get(begin..)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    share(rest.get(..end)?.trim_end_matches('.').parse().ok()?)
}

fn share(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

const fn verdict(correct: bool) -> Verdict {
    if correct { Verdict::Correct } else { Verdict::Incorrect }
}
