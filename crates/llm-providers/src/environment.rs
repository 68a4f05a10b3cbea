//! Where environment variables come from.
//!
//! Decides that this crate never reads the process's environment by itself: the caller hands it over,
//! with `.env` files merged in, and a test hands over what it likes.

use std::collections::BTreeMap;
use std::fmt;

/// Environment variables by name. `Debug` shows the names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The given variables.
    #[must_use]
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }

    /// The value of a variable; one that is empty or blank counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The first of the variables that is set, with its name.
    #[must_use]
    pub fn first<'a>(&'a self, names: &'a [String]) -> Option<(&'a str, &'a str)> {
        names.iter().find_map(|name| self.get(name).map(|value| (name.as_str(), value)))
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// All variables.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}
