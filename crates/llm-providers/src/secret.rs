//! A string that does not show itself.
//!
//! Decides that secrets never reach a log by accident: `Debug`, `Display` and `Serialize` print `***`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lenient;

const MASK: &str = "***";

/// A key or a password. Read it with [`Secret::expose`] at the place where it is sent, nowhere else.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing is in it; blanks count as nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// A key of digits only is read too: configuration layers turn such values into numbers.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::string(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn shows_only_the_mask() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(format!("{secret:?} {secret}"), "*** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), r#""***""#);
        assert_eq!(secret.expose(), "sk-very-secret");
    }

    #[test]
    fn reads_numbers_as_text() {
        let check = |json: &str, expected: &str| {
            assert_eq!(serde_json::from_str::<Secret>(json).unwrap().expose(), expected);
        };
        check(r#""abc""#, "abc");
        check("12345", "12345");
        check("true", "true");
        assert!(serde_json::from_str::<Secret>("[1]").is_err());
    }
}
