//! The tags that matter in a text, and the fastest way to the next place where one may stand.
//!
//! Decides what stands at a position. The search goes for the first byte of the tags (`<`, for most
//! dialects): prose has few of them, and in text full of markup a look at the second byte settles
//! nearly all.

use crate::Dialect;

/// The marker at which thinking begins.
pub(crate) const THINK_OPEN: &str = "<think>";
/// The marker at which thinking ends.
pub(crate) const THINK_CLOSE: &str = "</think>";

/// What a tag means to the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagKind {
    ThinkOpen,
    ThinkClose,
    /// Begins a block: index into the dialect's openers.
    Open(usize),
    /// Betrays a call that went wrong.
    Stray,
    /// Only of interest as the end of a broken block.
    Quiet,
}

/// What stands at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Tag {
        kind: TagKind,
        literal: &'static str,
    },
    /// The text ends in what may become a tag.
    Partial,
    Nothing,
}

#[derive(Debug, Clone)]
enum First {
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    Many(Box<[bool; 256]>),
}

/// Bytes by which tags are told apart at a glance.
const PREFIX: usize = 4;

/// All tags of a dialect and those of thinking.
#[derive(Debug, Clone)]
pub(crate) struct TagTable {
    tags: Vec<(&'static str, TagKind)>,
    /// The first bytes of each tag; empty where a tag is too short for that.
    prefixes: Vec<[u8; PREFIX]>,
    first: First,
    /// Which second bytes occur.
    second: [bool; 256],
}

impl TagTable {
    /// The table of a dialect.
    pub(crate) fn new(dialect: &dyn Dialect) -> Self {
        let mut tags: Vec<(&'static str, TagKind)> =
            vec![(THINK_OPEN, TagKind::ThinkOpen), (THINK_CLOSE, TagKind::ThinkClose)];
        let mut add = |literal: &'static str, kind| {
            if !literal.is_empty() && tags.iter().all(|(known, _)| *known != literal) {
                tags.push((literal, kind));
            }
        };
        for (index, opener) in dialect.openers().iter().enumerate() {
            add(opener.literal, TagKind::Open(index));
        }
        for tag in dialect.tags() {
            add(tag, TagKind::Stray);
        }
        for opener in dialect.openers() {
            add(opener.closer, TagKind::Quiet);
        }
        let mut second = [false; 256];
        let mut firsts: Vec<u8> = Vec::new();
        for (literal, _) in &tags {
            let mut bytes = literal.bytes();
            if let Some(byte) = bytes.next()
                && !firsts.contains(&byte)
            {
                firsts.push(byte);
            }
            match bytes.next() {
                Some(byte) => mark(&mut second, byte),
                None => second = [true; 256],
            }
        }
        let first = match *firsts.as_slice() {
            [one] => First::One(one),
            [one, two] => First::Two(one, two),
            [one, two, three] => First::Three(one, two, three),
            _ => {
                let mut table = Box::new([false; 256]);
                firsts.iter().for_each(|byte| mark(&mut table, *byte));
                First::Many(table)
            }
        };
        let prefixes: Option<Vec<[u8; PREFIX]>> =
            tags.iter().map(|(literal, _)| literal.as_bytes().first_chunk().copied()).collect();
        Self { tags, prefixes: prefixes.unwrap_or_default(), first, second }
    }

    /// The next position at or after `from` where a tag may stand.
    pub(crate) fn next(&self, text: &str, from: usize) -> Option<usize> {
        let rest = text.as_bytes().get(from..)?;
        let found = match self.first {
            First::One(one) => memchr::memchr(one, rest),
            First::Two(one, two) => memchr::memchr2(one, two, rest),
            First::Three(one, two, three) => memchr::memchr3(one, two, three, rest),
            First::Many(ref table) => rest.iter().position(|byte| is_marked(table, *byte)),
        };
        found.map(|found| from + found)
    }

    /// What stands at `at`.
    pub(crate) fn look(&self, text: &str, at: usize) -> At {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        if let Some(second) = rest.get(1)
            && !is_marked(&self.second, *second)
        {
            return At::Nothing;
        }
        if let Some(prefix) = rest.first_chunk::<PREFIX>()
            && !self.prefixes.is_empty()
            && !self.prefixes.contains(prefix)
        {
            return At::Nothing;
        }
        let mut partial = false;
        for (literal, kind) in &self.tags {
            let bytes = literal.as_bytes();
            if rest.starts_with(bytes) {
                return At::Tag { kind: *kind, literal };
            }
            partial |= bytes.starts_with(rest);
        }
        if partial { At::Partial } else { At::Nothing }
    }
}

fn mark(table: &mut [bool; 256], byte: u8) {
    if let Some(slot) = table.get_mut(usize::from(byte)) {
        *slot = true;
    }
}

fn is_marked(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}
