//! What is wrong with a configuration: one error for each thing to put right.
//!
//! Decides how an error reads: the key, the place it was written at, what is wrong, what to do.

use std::fmt;

/// What kind of thing is wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// A text is not the YAML (or `.env` line) that it should be.
    Syntax,
    /// A key stands twice in one map.
    DuplicateKey,
    /// A key that nobody reads.
    UnknownKey,
    /// A value of the wrong type.
    WrongType,
    /// A word that is none of those a key knows.
    UnknownName,
    /// A value of the right type that makes no sense.
    OutOfRange,
    /// A value that must be given and is not.
    MissingValue,
    /// A file that is not there.
    MissingFile,
    /// A file that is there and cannot be read.
    Unreadable,
    /// Files that are based on each other in a circle.
    Cycle,
    /// A `defaults:` list that says something it cannot.
    Defaults,
    /// A `${…}` that cannot be resolved.
    Interpolation,
    /// A `FATHOM_…` variable that nobody reads.
    Environment,
    /// A `--set` that cannot be read.
    Set,
    /// Two choices that contradict each other.
    Conflict,
    /// A tool server that neither exists nor is configured.
    UnknownServer,
}

impl ConfigErrorKind {
    /// The kind in snake case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::DuplicateKey => "duplicate_key",
            Self::UnknownKey => "unknown_key",
            Self::WrongType => "wrong_type",
            Self::UnknownName => "unknown_name",
            Self::OutOfRange => "out_of_range",
            Self::MissingValue => "missing_value",
            Self::MissingFile => "missing_file",
            Self::Unreadable => "unreadable",
            Self::Cycle => "cycle",
            Self::Defaults => "defaults",
            Self::Interpolation => "interpolation",
            Self::Environment => "environment",
            Self::Set => "set",
            Self::Conflict => "conflict",
            Self::UnknownServer => "unknown_server",
        }
    }
}

/// One thing that is wrong. `Display` is a paragraph: key and place, what is wrong, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub(crate) kind: ConfigErrorKind,
    pub(crate) key: Option<String>,
    pub(crate) place: Option<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl ConfigError {
    pub(crate) fn new(kind: ConfigErrorKind, message: impl Into<String>) -> Self {
        Self { kind, key: None, place: None, message: message.into(), hint: None }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into()).filter(|key: &String| !key.is_empty());
        self
    }

    pub(crate) fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What kind of thing is wrong, in snake case.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind.as_str()
    }

    /// The same as a value to branch on.
    #[must_use]
    pub fn kind_value(&self) -> ConfigErrorKind {
        self.kind
    }

    /// The key's path from the root (`agent.main_agent.max_turns`), where the error is about one.
    #[must_use]
    pub fn key_path(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Where it was written: file and line, variable, or option.
    #[must_use]
    pub fn written_at(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Trying again changes nothing.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        false
    }
}

impl ConfigError {
    /// Place and problem, without the remedy.
    #[must_use]
    pub fn located(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.write_located(&mut text);
        text
    }

    fn write_located(&self, formatter: &mut dyn fmt::Write) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(formatter, "`{key}`")?;
        }
        match (&self.key, &self.place) {
            (Some(_), Some(place)) => write!(formatter, " in {place}: ")?,
            (None, Some(place)) => write!(formatter, "{place}: ")?,
            (Some(_), None) => formatter.write_str(": ")?,
            (None, None) => {}
        }
        formatter.write_str(&self.message)?;
        if self.message.ends_with(['.', '?', '!']) { Ok(()) } else { formatter.write_str(".") }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_located(formatter)?;
        match &self.hint {
            Some(hint) => write!(formatter, " {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Everything that is wrong, one paragraph each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    /// The kind of the first error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.0.first().map_or("configuration", ConfigError::kind)
    }

    /// The remedy of the first error that has one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.iter().find_map(ConfigError::hint)
    }

    /// Trying again changes nothing.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        false
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
