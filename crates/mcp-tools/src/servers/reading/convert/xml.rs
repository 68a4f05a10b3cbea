//! XML as a small tree.
//!
//! Decides what of a part of a document is kept: elements by local name, attributes, text; and how much of it at
//! most. Entities other than the five of XML and character references are never expanded.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::encoding;

/// Deepest nesting; documents stay far below, and the tree is dropped recursively.
const DEEPEST: usize = 512;
/// Elements and texts of one part.
const MOST_NODES: usize = 4_000_000;

/// An element.
#[derive(Debug, Default)]
pub(super) struct Element {
    /// Without its prefix.
    pub(super) name: Box<str>,
    /// Names with their prefixes.
    attributes: Vec<(Box<str>, Box<str>)>,
    pub(super) children: Vec<Node>,
}

#[derive(Debug)]
pub(super) enum Node {
    Element(Element),
    Text(String),
}

/// The root element of a part.
pub(super) fn parse(bytes: &[u8]) -> Result<Element, String> {
    let (text, _) = encoding::decode(bytes, false);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let mut open = vec![Element::default()];
    let mut nodes = 0usize;
    loop {
        let event = reader
            .read_event()
            .map_err(|error| format!("its XML is broken at byte {}: {error}", reader.buffer_position()))?;
        nodes += 1;
        if nodes > MOST_NODES {
            return Err(format!("one of its parts has more than {MOST_NODES} elements"));
        }
        match event {
            Event::Start(tag) => {
                if open.len() > DEEPEST {
                    return Err(format!("its elements are nested deeper than {DEEPEST} levels"));
                }
                open.push(element(&tag));
            }
            Event::Empty(tag) => add(&mut open, Node::Element(element(&tag))),
            Event::End(_) => close(&mut open),
            Event::Text(text) => add_text(&mut open, &text.xml10_content()),
            Event::CData(data) => add_text(&mut open, &data.xml10_content()),
            Event::GeneralRef(reference) => {
                let name = reference.as_ref();
                match resolved(name) {
                    Some(character) => add_text(&mut open, character.encode_utf8(&mut [0; 4])),
                    None => add_text(&mut open, &format!("&{name};")),
                }
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let root = open.pop().unwrap_or_default();
    root.children
        .into_iter()
        .find_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
        .ok_or_else(|| "a part of it has no XML in it".to_owned())
}

fn element(tag: &BytesStart<'_>) -> Element {
    let mut attributes = Vec::new();
    for attribute in tag.attributes().with_checks(false).flatten() {
        attributes.push((attribute.key.into_inner().into(), unescaped(&attribute.value).into()));
    }
    Element { name: tag.local_name().into_inner().into(), attributes, children: Vec::new() }
}

fn add(open: &mut [Element], node: Node) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(node);
    }
}

fn add_text(open: &mut [Element], text: &str) {
    let Some(parent) = open.last_mut() else { return };
    match parent.children.last_mut() {
        Some(Node::Text(before)) => before.push_str(text),
        _ => parent.children.push(Node::Text(text.to_owned())),
    }
}

fn close(open: &mut Vec<Element>) {
    if open.len() > 1
        && let Some(element) = open.pop()
    {
        add(open, Node::Element(element));
    }
}

/// The character of a reference's name.
fn resolved(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "nbsp" => return Some('\u{a0}'),
        _ => name.strip_prefix('#')?,
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

/// An attribute's value, or other text, with its references resolved.
pub(super) fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest.find(';').filter(|end| *end <= 12).map(|end| &rest[1..end]);
        match name.and_then(|name| resolved(name).map(|found| (name.len(), found))) {
            Some((length, character)) => {
                out.push(character);
                rest = &rest[length + 2..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

impl Element {
    /// An attribute: by its whole name where that has a prefix, else by its local name.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let fits = |key: &str| {
            key == name || (!name.contains(':') && key.rsplit(':').next().is_some_and(|local| local == name))
        };
        // An unprefixed name is meant before a prefixed one.
        let exact = self.attributes.iter().find(|(key, _)| **key == *name);
        exact.or_else(|| self.attributes.iter().find(|(key, _)| fits(key))).map(|(_, value)| &**value)
    }

    /// An attribute as a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.trim().parse().ok()
    }

    /// The elements directly inside.
    pub(super) fn elements(&self) -> impl DoubleEndedIterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Those of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.elements().filter(move |element| &*element.name == name)
    }

    /// The first of a name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.elements().find(|element| &*element.name == name)
    }

    /// The first at the end of a path of names.
    pub(super) fn path(&self, names: &[&str]) -> Option<&Self> {
        names.iter().try_fold(self, |element, name| element.child(name))
    }

    /// The first of a name anywhere below, in document order.
    pub(super) fn find(&self, name: &str) -> Option<&Self> {
        self.elements()
            .find_map(|element| if &*element.name == name { Some(element) } else { element.find(name) })
    }

    /// Calls for each of a name below, without looking inside those.
    pub(super) fn each<'a>(&'a self, name: &str, take: &mut impl FnMut(&'a Self)) {
        for element in self.elements() {
            if &*element.name == name {
                take(element);
            } else {
                element.each(name, take);
            }
        }
    }

    /// All text inside.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.push_text(&mut out);
        out
    }

    fn push_text(&self, out: &mut String) {
        for node in &self.children {
            match node {
                Node::Element(element) => element.push_text(out),
                Node::Text(text) => out.push_str(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_local_names_and_resolved_text() {
        let root = parse(b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y'>]><w:a r:id='2' id='1&amp;2'><b>x &lt;&#65;&#x42; &x;<![CDATA[<&]]></b><c/></w:a>").expect("a tree");
        assert_eq!(&*root.name, "a");
        assert_eq!((root.attribute("id"), root.attribute("r:id")), (Some("1&2"), Some("2")));
        assert_eq!(root.child("b").expect("an element").text(), "x <AB &x;<&");
        assert!(root.child("c").is_some() && root.path(&["b", "c"]).is_none());
    }

    #[test]
    fn hostile_parts_are_refused_or_read() {
        assert!(parse(b"").is_err());
        assert!(parse("<a>".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"<a></b></a></a><c>").is_ok());
        assert_eq!(unescaped("&lt;&unknown;&&#xffffffff; &#x41;"), "<&unknown;&&#xffffffff; A");
    }
}
