//! Borrowed pieces of JSON that forgive what servers do to types.
//!
//! Decides that a field of another type than expected counts as absent instead of spoiling the whole
//! event, and that text is borrowed from the event wherever it holds no escapes: most of a stream is
//! fields that nobody asks for, and those cost no allocation here. What the fields mean is left to the engines.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A text; absent where there is something else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

/// A whole number that is not negative; absent where there is something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Option<u64>);

/// An object; absent where there is something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

/// A list; empty where there is something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// A text, or something else as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum TextOr<'a> {
    /// Nothing or null.
    #[default]
    Absent,
    /// A text.
    Text(Cow<'a, str>),
    /// A list, an object, a number…
    Other(Value),
}

impl Text<'_> {
    /// The text, where there is one and it is not empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// The text; empty where there is none.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What becomes of each kind of JSON; what is not said becomes the default.
trait Pick<'de>: Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn number(_: u64) -> Self {
        Self::default()
    }

    /// Another scalar than a text or a whole number.
    fn scalar(_: Value) -> Self {
        Self::default()
    }

    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

struct Picker<T>(PhantomData<T>);

impl<'de, T: Pick<'de>> Visitor<'de> for Picker<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Ok(u64::try_from(number).map_or_else(|_| T::scalar(number.into()), T::number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        Ok(T::scalar(number.into()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        Ok(T::scalar(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }
}

fn pick<'de, T: Pick<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Picker(PhantomData))
}

impl<'de> Pick<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        pick::<Text<'de>, D>(deserializer)
    }
}

impl<'de> Pick<'de> for Number {
    fn number(number: u64) -> Self {
        Self(Some(number))
    }

    /// Some gateways count in floating-point numbers.
    fn scalar(value: Value) -> Self {
        let whole = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
        Self(whole.map(|number| number as u64))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        pick(deserializer)
    }
}

impl<'de, T: Deserialize<'de>> Pick<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Self(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        pick(deserializer)
    }
}

impl<'de, T: Deserialize<'de>> Pick<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        // An element that is no object is passed over.
        while let Some(item) = list.next_element::<Object<T>>()? {
            items.extend(item.0);
        }
        Ok(Self(items))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        pick(deserializer)
    }
}

impl<'de> Pick<'de> for TextOr<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn number(number: u64) -> Self {
        Self::Other(number.into())
    }

    fn scalar(value: Value) -> Self {
        Self::Other(value)
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Self::Other)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(Self::Other)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextOr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        pick::<TextOr<'de>, D>(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde::Deserialize;
    use serde_json::json;

    use super::{List, Number, Object, Text, TextOr};

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Piece<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        number: Number,
        #[serde(borrow)]
        inner: Object<Box<Piece<'a>>>,
        #[serde(borrow)]
        list: List<Piece<'a>>,
        #[serde(borrow)]
        any: TextOr<'a>,
    }

    #[test]
    fn what_has_the_wrong_type_is_absent_and_spoils_nothing() {
        let odd = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1.5),
            json!([1, [2]]),
            json!({"x": {"y": 1}}),
            json!("a"),
        ];
        for value in odd {
            let body = json!({"text": value, "number": value, "inner": value, "list": value, "any": value, "more": value});
            let line = body.to_string();
            let read: Piece<'_> = serde_json::from_str(&line).unwrap();
            assert_eq!(read.text.get(), value.as_str());
            assert_eq!(read.number.0, None, "{value}");
            assert_eq!(read.inner.0.is_some(), value.is_object());
            assert_eq!(read.list.0.len(), 0);
            match &read.any {
                TextOr::Absent => assert!(value.is_null()),
                TextOr::Text(text) => assert_eq!(Some(text.as_ref()), value.as_str()),
                TextOr::Other(other) => assert_eq!(*other, value),
            }
            assert_eq!(Piece::deserialize(&body).unwrap(), read, "the same out of a value");
        }
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let line = r#"{"any": "plain", "list": [{"any": "a\nb"}, 3]}"#;
        let read: Piece<'_> = serde_json::from_str(line).unwrap();
        assert!(matches!(read.any, TextOr::Text(Cow::Borrowed("plain"))));
        assert!(matches!(&read.list.0[0].any, TextOr::Text(Cow::Owned(text)) if text == "a\nb"));
        assert_eq!(read.list.0.len(), 1);
    }

    #[test]
    fn numbers_may_be_written_as_floating_point() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(serde_json::from_str::<Number>(text).unwrap().0, expected, "{text}");
        };
        check("7", Some(7));
        check("7.0", Some(7));
        check("7.5", None);
        check("-7", None);
        check("1e300", None);
        check("\"7\"", None);
    }
}
