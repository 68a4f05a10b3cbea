//! Word lists: function words, irregular forms, words that may stand for each other, units, classes of nouns.
//!
//! Decides how the data files beside this one are read. What is done with a class is left to the callers.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::text::stem_of;

/// What a question's noun asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NounClass {
    /// A human being or a figure of that kind.
    Person,
    /// Somewhere, or a building that has a name of its own.
    Place,
    /// A body of people.
    Group,
    /// Something made or something that happened, with a name of its own.
    Work,
    /// A year.
    Year,
    /// Any other point or stretch on the calendar.
    Date,
    /// How many.
    Number,
    /// A tongue.
    Language,
    /// What something is called.
    Name,
    /// Which people somebody belongs to.
    Nationality,
    /// A number with a unit.
    Quantity(Dimension),
}

/// What a quantity measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dimension {
    /// Metres and the like.
    Length,
    /// Square metres and the like.
    Area,
    /// Kilograms and the like.
    Mass,
    /// Time spans.
    Duration,
    /// Lengths in a time.
    Speed,
    /// Degrees.
    Temperature,
    /// Currencies.
    Money,
    /// Hundredths.
    Percent,
    /// Litres and the like.
    Volume,
    /// Watts and the like.
    Power,
}

const DIMENSIONS: &[(&str, Dimension)] = &[
    ("length", Dimension::Length),
    ("area", Dimension::Area),
    ("mass", Dimension::Mass),
    ("duration", Dimension::Duration),
    ("speed", Dimension::Speed),
    ("temperature", Dimension::Temperature),
    ("money", Dimension::Money),
    ("percent", Dimension::Percent),
    ("volume", Dimension::Volume),
    ("power", Dimension::Power),
];

const CLASSES: &[(&str, NounClass)] = &[
    ("person", NounClass::Person),
    ("place", NounClass::Place),
    ("group", NounClass::Group),
    ("work", NounClass::Work),
    ("year", NounClass::Year),
    ("date", NounClass::Date),
    ("number", NounClass::Number),
    ("language", NounClass::Language),
    ("name", NounClass::Name),
    ("nationality", NounClass::Nationality),
];

/// The months in order.
pub(super) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Numbers that are written as words.
const NUMBER_WORDS: &[&str] = &[
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "dozen",
    "hundred",
    "thousand",
    "million",
    "billion",
    "trillion",
    "one",
    "half",
    "twice",
    "zero",
    "once",
    "thrice",
];

/// The regular form by whose stem an irregular one is compared.
pub(super) fn irregular(word: &str) -> Option<&'static str> {
    static FORMS: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        lines(include_str!("data/irregular.txt")).filter_map(|line| line.split_once(' ')).collect()
    });
    forms.get(word).copied()
}

/// The word lists, read once.
#[derive(Debug)]
pub(super) struct Lexicon {
    stopwords: HashSet<&'static str>,
    generic: HashSet<String>,
    synonyms: HashMap<String, Vec<String>>,
    abbreviations: HashSet<&'static str>,
    demonyms: HashSet<&'static str>,
    countries: HashSet<String>,
    creating: HashSet<String>,
    nouns: HashMap<String, NounClass>,
    units: HashMap<&'static str, Vec<Dimension>>,
    adjectives: HashMap<&'static str, Dimension>,
    verbs: HashSet<&'static str>,
    numbers: HashSet<&'static str>,
}

impl Lexicon {
    /// The one copy of this process.
    pub(super) fn shared() -> &'static Self {
        static SHARED: OnceLock<Lexicon> = OnceLock::new();
        SHARED.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut synonyms: HashMap<String, Vec<String>> = HashMap::new();
        for line in lines(include_str!("data/synonyms.txt")) {
            let mut stems = line.split_whitespace().map(stem_of);
            let Some(head) = stems.next() else { continue };
            let group = synonyms.entry(head).or_default();
            group.extend(stems);
        }
        for line in lines(include_str!("data/groups.txt")) {
            let stems: Vec<String> = line.split_whitespace().map(stem_of).collect();
            for stem in &stems {
                let group = synonyms.entry(stem.clone()).or_default();
                for other in &stems {
                    if other != stem && !group.contains(other) {
                        group.push(other.clone());
                    }
                }
            }
        }
        let mut nouns = HashMap::new();
        for (class, list) in labelled(include_str!("data/nouns.txt")) {
            let named = CLASSES.iter().find(|(name, _)| *name == class).map(|(_, class)| *class);
            let Some(class) = named.or_else(|| dimension(class).map(NounClass::Quantity)) else { continue };
            for noun in list.split_whitespace() {
                nouns.insert(stem_of(noun), class);
            }
        }
        let mut units: HashMap<&'static str, Vec<Dimension>> = HashMap::new();
        for (name, list) in labelled(include_str!("data/units.txt")) {
            let Some(dimension) = dimension(name) else { continue };
            for unit in list.split_whitespace() {
                units.entry(unit).or_default().push(dimension);
            }
        }
        let mut adjectives = HashMap::new();
        for (name, list) in labelled(include_str!("data/adjectives.txt")) {
            let Some(dimension) = dimension(name) else { continue };
            adjectives.extend(list.split_whitespace().map(|adjective| (adjective, dimension)));
        }
        Self {
            stopwords: words(include_str!("data/stopwords.txt")).collect(),
            generic: words(include_str!("data/generic.txt")).map(stem_of).collect(),
            synonyms,
            abbreviations: words(include_str!("data/abbreviations.txt")).collect(),
            demonyms: words(include_str!("data/demonyms.txt")).collect(),
            countries: lines(include_str!("data/countries.txt")).map(str::to_lowercase).collect(),
            creating: words(include_str!("data/creating.txt")).map(stem_of).collect(),
            nouns,
            units,
            adjectives,
            verbs: words(include_str!("data/verbs.txt")).collect(),
            numbers: NUMBER_WORDS.iter().copied().collect(),
        }
    }

    /// Whether the folded word only serves grammar.
    pub(super) fn is_stopword(&self, folded: &str) -> bool {
        self.stopwords.contains(folded)
    }

    /// Whether the stem says little.
    pub(super) fn is_generic(&self, stem: &str) -> bool {
        self.generic.contains(stem)
    }

    /// Stems that may stand for this stem in evidence.
    pub(super) fn synonyms(&self, stem: &str) -> &[String] {
        self.synonyms.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Whether a full stop after this folded word does not end a sentence.
    pub(super) fn is_abbreviation(&self, folded: &str) -> bool {
        self.abbreviations.contains(folded)
    }

    /// Whether the folded word names a people or an adjective made from a place.
    pub(super) fn is_demonym(&self, folded: &str) -> bool {
        self.demonyms.contains(folded)
    }

    /// Whether the stem is that of a verb of making.
    pub(super) fn is_creating(&self, stem: &str) -> bool {
        self.creating.contains(stem)
    }

    /// Whether the name is that of a country.
    pub(super) fn is_country(&self, name: &str) -> bool {
        self.countries.contains(&name.to_lowercase())
    }

    /// What a noun asks for.
    pub(super) fn class_of(&self, stem: &str) -> Option<NounClass> {
        self.nouns.get(stem).copied()
    }

    /// What a unit measures; pounds are a mass and money.
    pub(super) fn unit(&self, folded: &str) -> &[Dimension] {
        self.units.get(folded).map_or(&[], Vec::as_slice)
    }

    /// What `how ADJECTIVE` asks for.
    pub(super) fn adjective(&self, folded: &str) -> Option<Dimension> {
        self.adjectives.get(folded).copied()
    }

    /// Whether the folded word is most often a verb.
    pub(super) fn is_verb(&self, folded: &str) -> bool {
        self.verbs.contains(folded)
    }

    /// Whether the folded word is a number.
    pub(super) fn is_number(&self, folded: &str) -> bool {
        self.numbers.contains(folded)
    }

    /// Whether the folded word is the name of a month.
    pub(super) fn is_month(&self, folded: &str) -> bool {
        MONTHS.contains(&folded)
    }
}

fn dimension(name: &str) -> Option<Dimension> {
    DIMENSIONS.iter().find(|(known, _)| *known == name).map(|(_, dimension)| *dimension)
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn words(text: &'static str) -> impl Iterator<Item = &'static str> {
    lines(text).flat_map(str::split_whitespace)
}

fn labelled(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(text).filter_map(|line| line.split_once(':'))
}
