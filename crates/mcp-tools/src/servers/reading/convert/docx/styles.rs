//! Styles of a Word document.
//!
//! Decides what a style means for the structure: outline level, numbering, look. A style has what the one that it is
//! based on has.

use std::collections::HashMap;

use super::super::layout::Look;
use super::super::xml::Element;
use super::numbering;

/// Styles that a style is based on, one after another.
const LONGEST_CHAIN: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Styles(HashMap<String, Style>);

#[derive(Debug, Default)]
struct Style {
    /// In lower case.
    name: String,
    based_on: Option<String>,
    outline: Option<i64>,
    /// A list and a depth in it.
    numbering: Option<(Option<String>, usize)>,
    bold: Option<bool>,
    italic: Option<bool>,
    struck: Option<bool>,
}

impl Styles {
    pub(super) fn new(root: Option<&Element>) -> Self {
        let mut styles = HashMap::new();
        for element in root.into_iter().flat_map(|root| root.all("style")) {
            let Some(id) = element.attribute("styleId") else { continue };
            let value = |name: &str| element.child(name).and_then(|child| child.attribute("val"));
            let paragraph = element.child("pPr");
            let switch = |name: &str| {
                let switch = element.path(&["rPr", name])?;
                Some(!matches!(switch.attribute("val"), Some("0" | "false" | "off")))
            };
            let style = Style {
                name: value("name").unwrap_or_default().to_ascii_lowercase(),
                based_on: value("basedOn").map(str::to_owned),
                outline: paragraph.and_then(|found| found.child("outlineLvl")?.number("val")),
                numbering: paragraph.and_then(|found| numbering::reference(found.child("numPr")?)),
                bold: switch("b"),
                italic: switch("i"),
                struck: switch("strike"),
            };
            styles.insert(id.to_owned(), style);
        }
        Self(styles)
    }

    /// A style and those that it is based on.
    fn chain<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Style> {
        std::iter::successors(self.0.get(id), |style| self.0.get(style.based_on.as_deref()?))
            .take(LONGEST_CHAIN)
    }

    /// From 0; the document's title counts as a first heading.
    pub(super) fn outline_level(&self, id: &str) -> Option<i64> {
        if let Some(level) = self.chain(id).find_map(|style| style.outline) {
            return Some(level);
        }
        let level = self.chain(id).find_map(|style| match style.name.as_str() {
            "title" => Some(0),
            name => name.strip_prefix("heading ")?.trim().parse::<i64>().ok().map(|level| level - 1),
        });
        // The style itself may be missing, its name being understood all the same.
        level.or_else(|| match id.to_ascii_lowercase().as_str() {
            "title" => Some(0),
            id => id.strip_prefix("heading")?.parse::<i64>().ok().map(|level| level - 1),
        })
    }

    /// The list that a style puts its paragraphs into, and the depth in it.
    pub(super) fn numbering(&self, id: &str) -> Option<(String, usize)> {
        let mut depth = None;
        for style in self.chain(id) {
            let Some((list, own_depth)) = &style.numbering else { continue };
            let at = *depth.get_or_insert(*own_depth);
            if let Some(list) = list {
                return Some((list.clone(), at));
            }
        }
        None
    }

    /// The marker and the depth of a list that a style's name tells of: `List Bullet 2`.
    pub(super) fn list_by_name(&self, id: &str) -> Option<(&'static str, usize)> {
        self.chain(id).find_map(|style| {
            let (marker, rest) =
                match (style.name.strip_prefix("list bullet"), style.name.strip_prefix("list number")) {
                    (Some(rest), _) => ("-", rest),
                    (_, Some(rest)) => ("1.", rest),
                    (None, None) => return None,
                };
            let level: usize = rest.trim().parse().unwrap_or(1);
            Some((marker, level.clamp(1, 9) - 1))
        })
    }

    /// Whether a style is for source code.
    pub(super) fn is_code(&self, id: &str) -> bool {
        let names =
            ["html preformatted", "source code", "preformatted text", "plain text", "macro text", "code"];
        self.chain(id).any(|style| names.contains(&style.name.as_str()))
    }

    pub(super) fn look(&self, id: &str) -> Look {
        let of = |get: fn(&Style) -> Option<bool>| self.chain(id).find_map(get).unwrap_or(false);
        Look {
            bold: of(|style| style.bold),
            italic: of(|style| style.italic),
            struck: of(|style| style.struck),
        }
    }
}
