//! YAML text to values with places.
//!
//! Decides what YAML is accepted: one document, unique keys, scalar keys, bounded depth and size; anchors, aliases
//! and the merge key `<<` work. What the keys mean is left to others.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::node::{Entry, List, Mark, Node, NodeValue, Scalar};

/// A file larger than this, in bytes, is no configuration.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// Values in one document, those that aliases repeat included.
const MAX_VALUES: usize = 20_000;
/// Levels of nesting.
const MAX_DEPTH: usize = 64;

/// Why a text could not be read, with its line and column, both from 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlError {
    pub(crate) mark: Mark,
    pub(crate) message: String,
    pub(crate) duplicate: bool,
}

/// Reads one document; an empty one is null.
pub(crate) fn parse(text: &str) -> Result<Node, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        return Err(failure(Mark::default(), format!("the text is longer than {MAX_BYTES} bytes")));
    }
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            let mut mark = mark_at(marker.line(), marker.col());
            if error.info().contains("tab") {
                mark = tab_line(text, mark);
            }
            failure(mark, plain_words(error.info()))
        })?;
        builder.take(event, span)?;
    }
    Ok(builder.document.unwrap_or_else(|| Node::null(Mark { layer: 0, line: 1, column: 1 })))
}

/// A list or map that is being filled, or the document itself.
struct Open {
    mark: Mark,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    /// The entries so far, the merged ones, and the key that waits for its value.
    Map {
        entries: Vec<Entry>,
        merged: Vec<Entry>,
        lines: HashMap<String, u32>,
        key: Option<(String, Mark)>,
    },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// By anchor number; the count is that of the values in it.
    anchors: HashMap<usize, (Node, usize)>,
    document: Option<Node>,
    values: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let mark = mark_at(span.start.line(), span.start.col());
        match event {
            Event::DocumentStart(_) if self.document.is_some() => Err(failure(
                mark,
                "a second document starts here (`---`); a configuration file holds one".to_owned(),
            )),
            Event::Scalar(text, style, anchor, tag) => {
                let quoted = match &tag {
                    None => style != ScalarStyle::Plain,
                    Some(tag) => quoted_by_tag(tag, mark)?.unwrap_or(style != ScalarStyle::Plain),
                };
                let scalar = Scalar { text: text.into_owned(), quoted, variables: Vec::new() };
                let node = Node { mark, value: NodeValue::Scalar(scalar) };
                self.finish(node, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.start(mark, anchor, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.start(
                mark,
                anchor,
                OpenKind::Map { entries: Vec::new(), merged: Vec::new(), lines: HashMap::new(), key: None },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let Some((node, count)) = self.anchors.get(&anchor).cloned() else {
                    return Err(failure(mark, "this alias names no anchor above it".to_owned()));
                };
                self.finish(node, 0, count)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn start(&mut self, mark: Mark, anchor: usize, kind: OpenKind) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(failure(mark, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.open.push(Open { mark, anchor, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.kind {
            OpenKind::List(items) => NodeValue::List(List { items, text: None }),
            OpenKind::Map { mut entries, merged, lines, .. } => {
                entries.extend(merged.into_iter().filter(|entry| !lines.contains_key(&entry.key)));
                NodeValue::Map(entries)
            }
        };
        self.finish(Node { mark: open.mark, value }, open.anchor, 1)
    }

    /// A value is complete: it goes into what is open around it.
    fn finish(&mut self, node: Node, anchor: usize, count: usize) -> Result<(), YamlError> {
        self.values += count;
        if self.values > MAX_VALUES {
            return Err(failure(node.mark, format!("more than {MAX_VALUES} values, aliases counted")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size(&node)));
        }
        let Some(open) = self.open.last_mut() else {
            self.document = Some(node);
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::List(items) => items.push(node),
            OpenKind::Map { entries, merged, lines, key } => match key.take() {
                None => *key = Some(key_of(&node, lines)?),
                Some((name, mark)) if name == "<<" => merge(merged, node, mark)?,
                Some((key, mark)) => {
                    lines.insert(key.clone(), mark.line);
                    // A value is said to stand where its key does, also where it begins on a later line.
                    entries.push(Entry { key, mark, node: Node { mark, ..node } });
                }
            },
        }
        Ok(())
    }
}

fn key_of(node: &Node, lines: &HashMap<String, u32>) -> Result<(String, Mark), YamlError> {
    let NodeValue::Scalar(scalar) = &node.value else {
        return Err(failure(node.mark, "a key is a list or a map; keys are plain words".to_owned()));
    };
    match lines.get(&scalar.text) {
        Some(line) => Err(YamlError {
            mark: node.mark,
            message: format!(
                "the key `{}` stands here a second time; the first is on line {line}",
                scalar.text
            ),
            duplicate: true,
        }),
        None => Ok((scalar.text.clone(), node.mark)),
    }
}

/// `<<: *base` or `<<: [*a, *b]`: earlier ones win, and the map's own keys win over all.
fn merge(merged: &mut Vec<Entry>, node: Node, mark: Mark) -> Result<(), YamlError> {
    let sources = match node.value {
        NodeValue::List(list) => list.items,
        _ => vec![node],
    };
    for source in sources {
        let NodeValue::Map(entries) = source.value else {
            return Err(failure(mark, "`<<` takes a map or a list of maps".to_owned()));
        };
        for entry in entries {
            if !merged.iter().any(|known| known.key == entry.key) {
                merged.push(entry);
            }
        }
    }
    Ok(())
}

/// `!!str` makes text of anything, the other core tags make a plain scalar of it; tags of programs' own are errors.
fn quoted_by_tag(tag: &Tag, mark: Mark) -> Result<Option<bool>, YamlError> {
    if tag.is_yaml_core_schema() {
        return Ok(Some(tag.suffix == "str"));
    }
    if tag.handle == "!" && tag.suffix.is_empty() {
        return Ok(Some(true));
    }
    Err(failure(mark, format!("the tag `{tag}` is not known here")))
}

fn size(node: &Node) -> usize {
    1 + match &node.value {
        NodeValue::Scalar(_) => 0,
        NodeValue::List(list) => list.items.iter().map(size).sum(),
        NodeValue::Map(entries) => entries.iter().map(|entry| size(&entry.node)).sum(),
    }
}

fn mark_at(line: usize, column: usize) -> Mark {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Mark { layer: 0, line: number(line.max(1)), column: number(column + 1) }
}

/// The parser names the line before a tab that it trips over; this is the line that has it.
fn tab_line(text: &str, mark: Mark) -> Mark {
    let skipped = usize::try_from(mark.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = (mark.line..)
        .zip(text.lines().skip(skipped))
        .find(|(_, line)| line.trim_start_matches(' ').starts_with('\t'));
    line.map_or(mark, |(line, _)| Mark { line, column: 1, ..mark })
}

fn failure(mark: Mark, message: String) -> YamlError {
    YamlError { mark, message, duplicate: false }
}

/// The parser's own words, with what they most often mean in a configuration file.
fn plain_words(info: &str) -> String {
    let meaning = if info.contains("tab") {
        " (indent with blanks, not with tabs)"
    } else if info.contains("simple key") || info.contains("mapping values are not allowed") {
        " (is a `:` missing after a key, or a value with `: ` in it not quoted?)"
    } else if info.contains("cannot start any token") || info.contains("unexpected character") {
        " (quote a value that starts with @, `, %, & or *)"
    } else {
        ""
    };
    format!("{info}{meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::{Step, path_text};

    /// `path @line:column = text` for every scalar.
    fn scalars(node: &Node, path: &mut Vec<Step>, lines: &mut Vec<String>) {
        match &node.value {
            NodeValue::Scalar(scalar) => lines.push(format!(
                "{} @{}:{} = {}",
                path_text(path),
                node.mark.line,
                node.mark.column,
                scalar.text
            )),
            NodeValue::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    path.push(Step::Index(index));
                    scalars(item, path, lines);
                    path.pop();
                }
            }
            NodeValue::Map(entries) => {
                for entry in entries {
                    path.push(Step::Key(entry.key.clone()));
                    scalars(&entry.node, path, lines);
                    path.pop();
                }
            }
        }
    }

    fn check(text: &str, expected: &[&str]) {
        let mut lines = Vec::new();
        scalars(&parse(text).unwrap(), &mut Vec::new(), &mut lines);
        assert_eq!(lines, expected, "{text}");
    }

    #[test]
    fn every_value_has_its_line() {
        check(
            "a: 1\nb:\n  c: two # words\n  d:\n  - x\n  - [y, \"z\"]\n",
            &["a @1:1 = 1", "b.c @3:3 = two", "b.d[0] @5:5 = x", "b.d[1][0] @6:6 = y", "b.d[1][1] @6:9 = z"],
        );
        check(
            "\u{feff}# note\n\n'q k': \"v: w\"\ntext: |\n  one\n  two\n",
            &["\"q k\" @3:1 = v: w", "text @4:1 = one\ntwo\n"],
        );
        check(
            "base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n",
            &["base.x @1:11 = 1", "base.y @1:17 = 2", "use.y @4:3 = 3", "use.x @1:11 = 1"],
        );
        check("a:\r\n  b: 1\r\nc: 2\r\n", &["a.b @2:3 = 1", "c @3:1 = 2"]);
        check("", &[" @1:1 = "]);
    }

    fn check_error(text: &str, line: u32, words: &str) {
        let error = parse(text).map(|_| ()).unwrap_err();
        assert_eq!(error.mark.line, line, "{text}: {}", error.message);
        assert!(error.message.contains(words), "{text}: {}", error.message);
    }

    #[test]
    fn what_cannot_be_read_is_located() {
        check_error("a: 1\nb: [1, 2\nc: 3\n", 3, "");
        check_error("a: 1\n\tb: 2\n", 2, "blanks");
        check_error("a: 1\nb: 2\na: 3\n", 3, "first is on line 1");
        check_error("a: 1\n---\nb: 2\n", 2, "second document");
        check_error("a: *nobody\n", 1, "anchor");
        check_error("a: @x\n", 1, "quote");
        check_error("a: !mine x\n", 1, "!mine");
        check_error("? [a, b]\n: c\n", 1, "keys are plain words");
        check_error("x: 1\n<<: 3\n", 2, "takes a map");
    }

    #[test]
    fn hostile_texts_end_soon() {
        let deep = "[".repeat(10_000);
        assert!(parse(&deep).is_err());
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = level - 1;
            let aliases = vec![format!("*a{before}"); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(parse(&bomb).map(|_| ()).unwrap_err().message.contains("aliases counted"));
        assert!(parse(&"a".repeat(MAX_BYTES + 1)).is_err());
    }
}
