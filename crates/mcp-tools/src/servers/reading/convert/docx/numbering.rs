//! Lists of a Word document.
//!
//! Decides which number a paragraph has: counting is left to the reader of the file, levels restart below others.

use std::collections::HashMap;

use super::super::layout::numeral;
use super::super::xml::Element;

/// Levels of a list.
const LEVELS: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// By the list's id: its levels, and the abstract list that counts.
    lists: HashMap<String, (String, Vec<Level>)>,
    counters: HashMap<String, [Option<u32>; LEVELS]>,
}

#[derive(Debug, Clone)]
struct Level {
    format: String,
    text: String,
    start: u32,
}

/// What stands before a paragraph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) is_ordered: bool,
    /// As it is shown: `2.1`, `b)`.
    pub(super) text: String,
    value: u32,
}

impl Number {
    /// The marker of an item in Markdown.
    pub(super) fn marker(&self) -> String {
        format!("{}.", self.value)
    }
}

/// The list and the depth that a paragraph names; list `0` takes it out of all.
pub(super) fn reference(properties: &Element) -> Option<(Option<String>, usize)> {
    let list = properties.child("numId").and_then(|list| list.attribute("val")).map(str::to_owned);
    let depth = properties.child("ilvl").and_then(|depth| depth.number("val")).unwrap_or(0);
    Some((list, usize::try_from(depth).unwrap_or(0).min(LEVELS - 1)))
}

impl Numbering {
    pub(super) fn new(root: Option<&Element>) -> Self {
        let Some(root) = root else { return Self::default() };
        let mut kinds: HashMap<&str, Vec<Level>> = HashMap::new();
        for kind in root.all("abstractNum") {
            if let Some(id) = kind.attribute("abstractNumId") {
                kinds.insert(id, kind.all("lvl").map(level).collect());
            }
        }
        let mut lists = HashMap::new();
        for list in root.all("num") {
            let kind = list.child("abstractNumId").and_then(|kind| kind.attribute("val"));
            let (Some(id), Some(kind)) = (list.attribute("numId"), kind) else { continue };
            let mut levels = kinds.get(kind).cloned().unwrap_or_default();
            let mut counts_alone = false;
            for change in list.all("lvlOverride") {
                let at = usize::try_from(change.number("ilvl").unwrap_or(0)).unwrap_or(0);
                let Some(changed) = levels.get_mut(at) else { continue };
                if let Some(other) = change.child("lvl") {
                    *changed = level(other);
                }
                if let Some(start) = change.child("startOverride").and_then(|start| start.number("val")) {
                    changed.start = u32::try_from(start).unwrap_or(1);
                    counts_alone = true;
                }
            }
            let counter = if counts_alone { format!("num {id}") } else { format!("abstract {kind}") };
            lists.insert(id.to_owned(), (counter, levels));
        }
        Self { lists, counters: HashMap::new() }
    }

    /// The next number of a list at a depth; none where there is no such list.
    pub(super) fn next(&mut self, list: &str, depth: usize) -> Option<Number> {
        let (counter, levels) = self.lists.get(list)?;
        let level = levels.get(depth).or(levels.first())?;
        if level.format == "bullet" {
            return Some(Number { is_ordered: false, text: String::new(), value: 0 });
        }
        if level.format == "none" {
            return None;
        }
        let counters = self.counters.entry(counter.clone()).or_default();
        let value = counters[depth].map_or(level.start, |last| last.saturating_add(1));
        counters[depth] = Some(value);
        counters[depth + 1..].fill(None);
        let mut text = level.text.clone();
        for (at, known) in levels.iter().enumerate().take(LEVELS) {
            let shown = numeral(counters[at].unwrap_or(known.start), &known.format);
            text = text.replace(&format!("%{}", at + 1), &shown);
        }
        Some(Number { is_ordered: true, text: text.trim().to_owned(), value })
    }
}

fn level(element: &Element) -> Level {
    let value = |name: &str| element.child(name).and_then(|child| child.attribute("val"));
    let text: String = value("lvlText").unwrap_or_default().chars().take(60).collect();
    Level {
        format: value("numFmt").unwrap_or("decimal").to_owned(),
        text,
        start: value("start").and_then(|start| start.parse().ok()).unwrap_or(1),
    }
}
