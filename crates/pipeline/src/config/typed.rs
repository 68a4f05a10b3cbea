//! Values to typed configuration: the type of a key decides how its text reads, and every problem is collected.
//!
//! A serde deserializer over [`Node`]. Decides what text fits which type and how a misfit is described. Reading goes
//! on after a problem: the value at fault is taken out and the rest is read again, so one report names them all.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor, value::StrDeserializer,
};

use super::node::{Mark, Node, NodeValue, Plain, Scalar, Step};

/// Problems that one reading reports at most.
pub(crate) const MAX_PROBLEMS: usize = 50;

/// One value that does not fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) path: Vec<Step>,
    pub(crate) mark: Mark,
    pub(crate) kind: ProblemKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProblemKind {
    /// A key that is not in `valid`.
    UnknownKey { valid: Vec<String> },
    /// A word that is not in `valid`.
    UnknownWord { found: String, valid: Vec<String> },
    /// Something of another kind than expected.
    WrongType { expected: String, found: String },
    /// A key that has no default is missing.
    MissingKey { key: String },
    /// What a type of its own has to say.
    Other { message: String },
}

/// Reads a whole tree. The problems are in the order of reading; the value is what the rest of the tree says,
/// and none where not even that could be read.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(node: &Node) -> (Option<T>, Vec<Problem>) {
    let mut problems = Vec::new();
    let first = match T::deserialize(Reader { node, path: Path::Root }) {
        Ok(value) => return (Some(value), problems),
        Err(failure) => failure,
    };
    let mut rest = node.clone();
    let mut failure = first;
    loop {
        let problem = failure.into_problem(&rest);
        let gone = rest.remove(&problem.path);
        problems.push(problem);
        if gone.is_none() || problems.len() >= MAX_PROBLEMS {
            return (None, problems);
        }
        match T::deserialize(Reader { node: &rest, path: Path::Root }) {
            Ok(value) => return (Some(value), problems),
            Err(next) => failure = next,
        }
    }
}

/// The way down to a value, kept on the stack.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Key { parent: &'a Path<'a>, key: &'a str },
    Index { parent: &'a Path<'a>, index: usize },
}

impl Path<'_> {
    fn steps(&self) -> Vec<Step> {
        match self {
            Self::Root => Vec::new(),
            Self::Key { parent, key } => extended(parent.steps(), Step::Key((*key).to_owned())),
            Self::Index { parent, index } => extended(parent.steps(), Step::Index(*index)),
        }
    }
}

fn extended(mut steps: Vec<Step>, step: Step) -> Vec<Step> {
    steps.push(step);
    steps
}

/// A problem whose place may not be known yet: visitors do not know where they are.
#[derive(Debug)]
struct Failure {
    place: Option<(Vec<Step>, Mark)>,
    kind: ProblemKind,
}

impl Failure {
    fn located(mut self, path: &Path<'_>, mark: Mark) -> Self {
        self.place.get_or_insert_with(|| (path.steps(), mark));
        self
    }

    fn into_problem(self, root: &Node) -> Problem {
        let (path, mark) = self.place.unwrap_or_else(|| (Vec::new(), root.mark));
        Problem { path, mark, kind: self.kind }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.kind)
    }
}

impl std::error::Error for Failure {}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { place: None, kind: ProblemKind::Other { message: message.to_string() } }
    }

    fn invalid_type(_found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::unfit(expected.to_string())
    }

    fn invalid_value(_found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::unfit(expected.to_string())
    }

    fn invalid_length(_length: usize, expected: &dyn de::Expected) -> Self {
        Self::unfit(expected.to_string())
    }

    fn unknown_variant(variant: &str, valid: &'static [&'static str]) -> Self {
        let kind = ProblemKind::UnknownWord { found: variant.to_owned(), valid: owned(valid) };
        Self { place: None, kind }
    }

    fn unknown_field(_field: &str, valid: &'static [&'static str]) -> Self {
        Self { place: None, kind: ProblemKind::UnknownKey { valid: owned(valid) } }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { place: None, kind: ProblemKind::MissingKey { key: field.to_owned() } }
    }
}

impl Failure {
    /// The found part is filled in where the value is known.
    fn unfit(expected: String) -> Self {
        Self { place: None, kind: ProblemKind::WrongType { expected, found: String::new() } }
    }
}

/// A value about to be read: it lives as long as the tree, its path as long as the call.
#[derive(Clone, Copy)]
struct Reader<'a, 'p> {
    node: &'a Node,
    path: Path<'p>,
}

impl<'a> Reader<'a, '_> {
    fn fail(&self, expected: &str) -> Failure {
        let kind = ProblemKind::WrongType { expected: expected.to_owned(), found: self.node.describe() };
        Failure { place: Some((self.path.steps(), self.node.mark)), kind }
    }

    /// Gives a visitor's failure its place, and says what was found where the visitor could not.
    fn place(&self, failure: Failure) -> Failure {
        let mut failure = failure.located(&self.path, self.node.mark);
        if let ProblemKind::WrongType { found, .. } = &mut failure.kind
            && found.is_empty()
        {
            *found = self.node.describe();
        }
        failure
    }

    fn scalar(&self, expected: &str) -> Result<&'a Scalar, Failure> {
        match &self.node.value {
            NodeValue::Scalar(scalar) => Ok(scalar),
            _ => Err(self.fail(expected)),
        }
    }

    /// The text of a scalar, or of a list that was read from one; a bare null is no text.
    fn written_text(&self, expected: &str) -> Result<&'a str, Failure> {
        match &self.node.value {
            NodeValue::Scalar(scalar) if scalar.plain() != Plain::Null => Ok(&scalar.text),
            NodeValue::List(list) => list.text.as_deref().ok_or_else(|| self.fail(expected)),
            _ => Err(self.fail(expected)),
        }
    }

    fn integer<T: TryFrom<i128>>(&self, least: i128, most: i128) -> Result<T, Failure> {
        let expected = match (least, most) {
            (0, most) if most > i128::from(u32::MAX) => "a whole number, 0 or more".to_owned(),
            (least, _) if least < i128::from(i32::MIN) => "a whole number".to_owned(),
            _ => format!("a whole number from {least} to {most}"),
        };
        self.scalar(&expected)?
            .as_integer()
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| self.fail(&expected))
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),*) => {
        $(fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
            let value: $type = self.integer(<$type>::MIN as i128, <$type>::MAX as i128)?;
            visitor.$visit(value).map_err(|failure| self.place(failure))
        })*
    };
}

impl<'a> Deserializer<'a> for Reader<'a, '_> {
    type Error = Failure;

    integers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    /// Where no type is asked for: what the text is by itself. A visitor that says it wants a string gets the text
    /// as it was written, so that `1.10` does not come out as `1.1`.
    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        if (&visitor as &dyn de::Expected).to_string() == "a string" {
            return self.deserialize_str(visitor);
        }
        let result = match &self.node.value {
            NodeValue::List(_) => return self.deserialize_seq(visitor),
            NodeValue::Map(_) => return self.deserialize_map(visitor),
            NodeValue::Scalar(scalar) => match scalar.plain() {
                Plain::Null => visitor.visit_unit(),
                Plain::Bool(value) => visitor.visit_bool(value),
                Plain::Text => visitor.visit_borrowed_str(&scalar.text),
                Plain::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                    (Some(value), ..) => visitor.visit_u64(value),
                    (None, Some(value), _) => visitor.visit_i64(value),
                    (None, None, value) => visitor.visit_f64(value.unwrap_or_default()),
                },
            },
        };
        result.map_err(|failure| self.place(failure))
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        let expected = "true or false";
        let value = self.scalar(expected)?.as_bool().ok_or_else(|| self.fail(expected))?;
        visitor.visit_bool(value).map_err(|failure| self.place(failure))
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        let expected = "a number";
        let value = self.scalar(expected)?.as_float().ok_or_else(|| self.fail(expected))?;
        visitor.visit_f64(value).map_err(|failure| self.place(failure))
    }

    fn deserialize_char<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        let text = self.written_text("text")?;
        visitor.visit_borrowed_str(text).map_err(|failure| self.place(failure))
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
            .map_err(|failure| self.place(failure))
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self).map_err(|failure| self.place(failure))
    }

    /// An empty value is an empty list.
    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        let items = match &self.node.value {
            NodeValue::List(list) => &list.items[..],
            _ if self.node.is_null() => &[],
            _ => return Err(self.fail("a list (`[a, b]`, or a line `- a` for each)")),
        };
        visitor.visit_seq(Items { items, next: 0, path: &self.path }).map_err(|failure| self.place(failure))
    }

    fn deserialize_tuple<V: Visitor<'a>>(self, length: usize, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.value {
            NodeValue::List(list) if list.items.len() == length => self.deserialize_seq(visitor),
            NodeValue::List(list) => {
                let kind = ProblemKind::WrongType {
                    expected: format!("a list of {length}"),
                    found: format!("a list of {}", list.items.len()),
                };
                Err(Failure { place: Some((self.path.steps(), self.node.mark)), kind })
            }
            _ => Err(self.fail(&format!("a list of {length}"))),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_tuple(length, visitor)
    }

    /// An empty value is an empty map.
    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Failure> {
        if !matches!(self.node.value, NodeValue::Map(_)) && !self.node.is_null() {
            return Err(self.fail("keys and values"));
        }
        visitor
            .visit_map(Entries { node: self.node, next: 0, path: &self.path })
            .map_err(|failure| self.place(failure))
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if !matches!(self.node.value, NodeValue::Map(_)) && !self.node.is_null() {
            let some = fields.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            return Err(self.fail(&format!("keys and values (such as {some})")));
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let word = match &self.node.value {
            NodeValue::Scalar(scalar) if scalar.plain() != Plain::Null => &scalar.text,
            _ => return Err(self.fail(&format!("one of {}", variants.join(", ")))),
        };
        visitor.visit_enum(Word(word)).map_err(|failure| self.place(failure))
    }

    serde::forward_to_deserialize_any! { <V: Visitor<'a>> bytes byte_buf unit unit_struct identifier ignored_any }
}

struct Items<'a, 'p> {
    items: &'a [Node],
    next: usize,
    path: &'p Path<'p>,
}

impl<'a> SeqAccess<'a> for Items<'a, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader { node, path: Path::Index { parent: self.path, index } }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Entries<'a, 'p> {
    node: &'a Node,
    next: usize,
    path: &'p Path<'p>,
}

impl<'a> MapAccess<'a> for Entries<'a, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(entry) = self.node.entries().get(self.next) else { return Ok(None) };
        let key: StrDeserializer<'_, Failure> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|failure| failure.located(&Path::Key { parent: self.path, key: &entry.key }, entry.mark))
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Some(entry) = self.node.entries().get(self.next) else {
            return Err(de::Error::custom("a value was asked for where no key is left"));
        };
        self.next += 1;
        seed.deserialize(Reader { node: &entry.node, path: Path::Key { parent: self.path, key: &entry.key } })
    }
}

struct Word<'a>(&'a str);

impl<'a> EnumAccess<'a> for Word<'a> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Failure> {
        let word: StrDeserializer<'_, Failure> = self.0.into_deserializer();
        seed.deserialize(word).map(|value| (value, self))
    }
}

impl<'a> VariantAccess<'a> for Word<'a> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, _seed: T) -> Result<T::Value, Failure> {
        Err(Failure::unfit("a word with values of its own".to_owned()))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _length: usize, _visitor: V) -> Result<V::Value, Failure> {
        Err(Failure::unfit("a word with values of its own".to_owned()))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Failure> {
        Err(Failure::unfit("a word with values of its own".to_owned()))
    }
}
