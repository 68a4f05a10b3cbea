//! The tags that matter in a text, and the fastest way to the next place where one may stand.
//!
//! Decides what stands at a position. The search goes for the first byte of the tags (`<`, for most
//! dialects): prose has few of them, and in text full of markup a glance at the three bytes behind it
//! settles nearly all.

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

/// Bytes behind the first by which tags are told apart at a glance.
const GLANCE: usize = 3;

/// For each of the bytes behind the first, which tags have which byte there: one bit a tag.
type Glance = [[u32; 256]; GLANCE];

/// All tags of a dialect and those of thinking.
#[derive(Debug, Clone)]
pub(crate) struct TagTable {
    tags: Vec<(&'static str, TagKind)>,
    first: First,
    glance: Box<Glance>,
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
        let first = first_bytes(&tags);
        let glance = glance(&tags);
        Self { tags, first, glance }
    }

    /// The next position at or after `from` where a tag stands or may begin.
    pub(crate) fn next(&self, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = from;
        loop {
            at += self.first_in(bytes.get(at..)?)?;
            if self.may_go_on(bytes.get(at + 1..).unwrap_or_default()) {
                return Some(at);
            }
            at += 1;
        }
    }

    /// The first byte with which a tag may begin.
    pub(crate) fn first_in(&self, bytes: &[u8]) -> Option<usize> {
        match self.first {
            First::One(one) => memchr::memchr(one, bytes),
            First::Two(one, two) => memchr::memchr2(one, two, bytes),
            First::Three(one, two, three) => memchr::memchr3(one, two, three, bytes),
            First::Many(ref table) => bytes.iter().position(|byte| is_marked(table, *byte)),
        }
    }

    /// Whether a tag may go on so behind its first byte.
    fn may_go_on(&self, after: &[u8]) -> bool {
        let Some(bytes) = after.first_chunk::<GLANCE>() else { return true };
        let tags_with = |(tags, byte): (&[u32; 256], &u8)| tags.get(usize::from(*byte)).copied();
        self.glance.iter().zip(bytes).filter_map(tags_with).fold(u32::MAX, |all, tags| all & tags) != 0
    }

    /// What stands at `at`.
    pub(crate) fn look(&self, text: &str, at: usize) -> At {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
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

fn first_bytes(tags: &[(&'static str, TagKind)]) -> First {
    let mut firsts: Vec<u8> = tags.iter().filter_map(|(literal, _)| literal.bytes().next()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    match *firsts.as_slice() {
        [one] => First::One(one),
        [one, two] => First::Two(one, two),
        [one, two, three] => First::Three(one, two, three),
        _ => {
            let mut table = Box::new([false; 256]);
            for byte in firsts {
                if let Some(slot) = table.get_mut(usize::from(byte)) {
                    *slot = true;
                }
            }
            First::Many(table)
        }
    }
}

fn glance(tags: &[(&'static str, TagKind)]) -> Box<Glance> {
    let mut glance = Box::new([[0; 256]; GLANCE]);
    for (index, (literal, _)) in tags.iter().enumerate() {
        // Where there are more tags than bits, the last ones share one.
        let bit = 1 << index.min(31);
        for (tags, position) in glance.iter_mut().zip(1..) {
            match literal.as_bytes().get(position) {
                Some(byte) => {
                    if let Some(slot) = tags.get_mut(usize::from(*byte)) {
                        *slot |= bit;
                    }
                }
                // The tag is shorter: anything may follow.
                None => tags.iter_mut().for_each(|slot| *slot |= bit),
            }
        }
    }
    glance
}

fn is_marked(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}
