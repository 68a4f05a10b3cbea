//! Word documents (DOCX).
//!
//! Decides what of a document's body becomes which block of Markdown: headings by outline level, lists by their
//! numbering, also where a style brings it, tables with merged cells, notes at the end. What is deleted by a tracked
//! change is left out, what is inserted is kept. Headers, footers and comments are not read.

mod inline;
mod numbering;
mod styles;

use super::layout::{Blocks, table};
use super::ooxml::Relations;
use super::package::Package;
use super::xml::Element;
use super::{Converted, Converter, Problem, Source};
use inline::Inline;
use numbering::Numbering;
use styles::Styles;

pub(super) struct Docx;

impl Converter for Docx {
    fn name(&self) -> &'static str {
        "a Word document"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let mut package = Package::open(source.bytes)?;
        let (document, relations) = package.main_part("word/document.xml", "text part")?;
        let part = |kind: &str, package: &mut Package<'_>| match relations.of_kind(kind) {
            Some(path) => package.xml(path),
            None => Ok(None),
        };
        let styles = Styles::new(part("styles", &mut package)?.as_ref());
        let numbering = Numbering::new(part("numbering", &mut package)?.as_ref());
        let notes = [("footnote", "footnotes"), ("endnote", "endnotes")];
        let mut note_parts = Vec::new();
        for (element, kind) in notes {
            let root = part(kind, &mut package)?;
            let links = match relations.of_kind(kind) {
                Some(path) => package.relations(path)?,
                None => Relations::default(),
            };
            note_parts.push((element, root, links));
        }
        let title = package.title()?;
        let mut reader = Reader { styles, numbering, notes: Vec::new() };
        let body = document.child("body").unwrap_or(&document);
        let mut blocks = Blocks::default();
        reader.blocks(body, &relations, &mut blocks);
        reader.write_notes(&note_parts, &mut blocks);
        Ok(Converted { markdown: blocks.finish(), title })
    }
}

struct Reader {
    styles: Styles,
    numbering: Numbering,
    /// Notes that the text refers to, in order: the kind of note and its id.
    notes: Vec<(&'static str, String)>,
}

impl Reader {
    fn blocks(&mut self, parent: &Element, links: &Relations, out: &mut Blocks) {
        for element in parent.elements() {
            match &*element.name {
                "p" => self.paragraph(element, links, out),
                "tbl" => self.table(element, links, out),
                "sdt" => {
                    if let Some(content) = element.child("sdtContent") {
                        self.blocks(content, links, out);
                    }
                }
                "ins" | "moveTo" | "customXml" | "smartTag" => self.blocks(element, links, out),
                "AlternateContent" => {
                    if let Some(choice) = element.elements().next() {
                        self.blocks(choice, links, out);
                    }
                }
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, paragraph: &Element, links: &Relations, out: &mut Blocks) {
        let mut inline = Inline::new(links, &mut self.notes, &self.styles);
        inline.paragraph(paragraph);
        let boxes = inline.take_boxes();
        let (plain, marked) = inline.finish();
        let properties = paragraph.child("pPr");
        let style = properties.and_then(|found| found.child("pStyle")?.attribute("val")).unwrap_or_default();
        let level = properties
            .and_then(|found| found.child("outlineLvl")?.number("val"))
            .or_else(|| self.styles.outline_level(style))
            .filter(|level| (0..9).contains(level));
        let own = properties.and_then(|found| numbering::reference(found.child("numPr")?));
        let (list, depth) = match (own, self.styles.numbering(style)) {
            // A style's numbering with a depth of the paragraph's own.
            (Some((None, depth)), Some((list, _))) => (Some(list), depth),
            (Some((list, depth)), _) => (list, depth),
            (None, Some((list, depth))) => (Some(list), depth),
            (None, None) => (None, 0),
        };
        let has_text = !plain.trim().is_empty();
        // Lists of the second level by style are lists of their own at their first level.
        let named = self.styles.list_by_name(style);
        let shown_depth = if depth == 0 { named.map_or(0, |(_, depth)| depth) } else { depth };
        let number = match list {
            // A paragraph without text takes no number that a reader would see.
            Some(ref list) if has_text => self.numbering.next(list, depth),
            _ => None,
        };
        if let Some(level) = level {
            let number = number.filter(|number| number.is_ordered).map(|number| number.text);
            let text = match number {
                Some(number) if !number.is_empty() => format!("{number} {plain}"),
                _ => plain,
            };
            out.heading(usize::try_from(level).unwrap_or(0) + 1, &text);
        } else if let Some(number) = number {
            let marker = if number.is_ordered { number.marker() } else { "-".to_owned() };
            out.item(shown_depth, &marker, &marked);
        } else if let (Some((marker, _)), false) = (named, list.is_some_and(|list| list == "0")) {
            out.item(shown_depth, marker, &marked);
        } else if self.styles.is_code(style) {
            out.push(&format!("    {}", plain.replace('\n', "\n    ")));
        } else {
            out.push(&marked);
        }
        for content in boxes {
            self.blocks(content, links, out);
        }
    }

    fn table(&mut self, element: &Element, links: &Relations, out: &mut Blocks) {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut only_cell = None;
        let mut cells = 0usize;
        each_row(element, &mut |row| {
            let mut line: Vec<String> = Vec::new();
            let skipped = row
                .child("trPr")
                .and_then(|properties| properties.child("gridBefore")?.number("val"))
                .unwrap_or(0);
            line.extend(std::iter::repeat_n(String::new(), usize::try_from(skipped).unwrap_or(0).min(64)));
            each_cell(row, &mut |cell| {
                cells += 1;
                only_cell = Some(cell);
                let properties = cell.child("tcPr");
                let span = properties.and_then(|found| found.child("gridSpan")?.number("val")).unwrap_or(1);
                let merged = properties.and_then(|found| found.child("vMerge"));
                let goes_on = merged.is_some_and(|merge| merge.attribute("val") != Some("restart"));
                let text = if goes_on { String::new() } else { self.cell(cell, links) };
                line.push(text);
                let more = usize::try_from(span - 1).unwrap_or(0).min(256);
                line.extend(std::iter::repeat_n(String::new(), more));
            });
            rows.push(line);
        });
        match only_cell {
            // A frame around text, not a table.
            Some(cell) if cells == 1 => self.blocks(cell, links, out),
            _ => out.push(&table(&rows)),
        }
    }

    /// The text of a cell, its paragraphs on lines of their own.
    fn cell(&mut self, cell: &Element, links: &Relations) -> String {
        let mut blocks = Blocks::default();
        self.blocks(cell, links, &mut blocks);
        let text = blocks.finish();
        // Headings have no place in a cell; a table inside one stays readable as lines.
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !is_rule(line));
        lines.map(|line| line.trim_start_matches('#').trim()).collect::<Vec<_>>().join("\n")
    }

    fn write_notes(&mut self, parts: &[(&'static str, Option<Element>, Relations)], out: &mut Blocks) {
        // Notes may refer to notes.
        let mut written = 0;
        while let Some((kind, id)) = self.notes.get(written).cloned() {
            written += 1;
            let Some((_, Some(root), links)) = parts.iter().find(|(known, _, _)| *known == kind) else {
                continue;
            };
            let note = root.all(kind).find(|note| note.attribute("id") == Some(id.as_str()));
            let Some(note) = note else { continue };
            let text = self.cell(note, links).replace('\n', " ");
            out.push(&format!("[^{written}]: {}", text.trim()));
        }
    }
}

/// The line between the head of a table and the rest.
fn is_rule(line: &str) -> bool {
    line.starts_with("| ---") && line.chars().all(|character| matches!(character, '|' | '-' | ' '))
}

fn each_row<'a>(table: &'a Element, take: &mut impl FnMut(&'a Element)) {
    for element in table.elements() {
        match &*element.name {
            "tr" if element.path(&["trPr", "del"]).is_none() => take(element),
            "sdt" | "sdtContent" | "ins" | "customXml" => each_row(element, take),
            _ => {}
        }
    }
}

fn each_cell<'a>(row: &'a Element, take: &mut impl FnMut(&'a Element)) {
    for element in row.elements() {
        match &*element.name {
            "tc" => take(element),
            "sdt" | "sdtContent" | "ins" | "customXml" => each_cell(element, take),
            _ => {}
        }
    }
}
