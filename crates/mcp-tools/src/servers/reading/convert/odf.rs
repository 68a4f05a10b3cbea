//! OpenDocument: texts (ODT), spreadsheets (ODS), presentations (ODP).
//!
//! Decides what of the one content part becomes which block. Cells are read as they are shown, except that repeated
//! empty ones are not.

use std::collections::HashMap;

use super::layout::{Blocks, Look, Spans, link, picture, table};
use super::package::Package;
use super::spreadsheet::Sheet;
use super::xml::{Element, Node};
use super::{Converted, Converter, Problem, Source};

pub(super) struct Odf;

/// Times that a row or a cell with text is repeated at most.
const MOST_REPEATS: u32 = 1_000;

impl Converter for Odf {
    fn name(&self) -> &'static str {
        "an OpenDocument file"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let mut package = Package::open(source.bytes)?;
        if let Some(manifest) = package.xml("META-INF/manifest.xml").ok().flatten()
            && manifest.find("encryption-data").is_some()
        {
            return Err(Problem::Encrypted);
        }
        let Some(content) = package.xml("content.xml")? else {
            return Err(Problem::Broken("it has no content part".into()));
        };
        let styles = package.xml("styles.xml").ok().flatten();
        let title = package.xml("meta.xml").ok().flatten().and_then(|meta| {
            Some(meta.find("title")?.text().trim().to_owned()).filter(|title| !title.is_empty())
        });
        let mut reader = Reader { looks: HashMap::new(), ordered: HashMap::new(), notes: Vec::new() };
        for root in styles.iter().chain([&content]) {
            reader.learn(root);
        }
        let mut blocks = Blocks::default();
        let body = content.child("body").ok_or_else(|| Problem::Broken("it has no body".into()))?;
        for kind in body.elements() {
            match &*kind.name {
                "spreadsheet" => sheets(kind, &mut blocks)?,
                "presentation" | "drawing" => reader.slides(kind, &mut blocks),
                _ => reader.blocks(kind, &mut blocks),
            }
        }
        let notes = std::mem::take(&mut reader.notes);
        for (number, text) in notes.iter().enumerate() {
            blocks.push(&format!("[^{}]: {text}", number + 1));
        }
        Ok(Converted { markdown: blocks.finish(), title })
    }
}

struct Reader {
    looks: HashMap<String, Look>,
    /// Whether the levels of a list style are numbered.
    ordered: HashMap<String, Vec<bool>>,
    notes: Vec<String>,
}

impl Reader {
    fn learn(&mut self, root: &Element) {
        let mut styles = Vec::new();
        root.each("style", &mut |style| styles.push(style));
        for style in styles {
            let (Some(name), Some(text)) = (style.attribute("style:name"), style.child("text-properties"))
            else {
                continue;
            };
            let look = Look {
                bold: text.attribute("fo:font-weight").is_some_and(|weight| weight == "bold"),
                italic: text.attribute("fo:font-style").is_some_and(|slant| slant == "italic"),
                struck: text.attribute("style:text-line-through-style").is_some_and(|line| line != "none"),
            };
            self.looks.insert(name.to_owned(), look);
        }
        let mut lists = Vec::new();
        root.each("list-style", &mut |list| lists.push(list));
        for list in lists {
            let Some(name) = list.attribute("style:name") else { continue };
            let levels = list.elements().map(|level| {
                &*level.name == "list-level-style-number"
                    && level.attribute("style:num-format").is_some_and(|format| !format.is_empty())
            });
            self.ordered.insert(name.to_owned(), levels.collect());
        }
    }

    fn blocks(&mut self, parent: &Element, out: &mut Blocks) {
        for element in parent.elements() {
            match &*element.name {
                "h" => {
                    let level = element.number("outline-level").unwrap_or(1);
                    let (plain, _) = self.inline(element);
                    out.heading(usize::try_from(level).unwrap_or(1), &plain);
                }
                "p" => {
                    let style = element.attribute("text:style-name").unwrap_or_default();
                    let (plain, marked) = self.inline(element);
                    if style == "Title" {
                        out.heading(1, &plain)
                    } else {
                        out.push(&marked)
                    }
                    self.frames(element, out);
                }
                "list" => self.list(element, 0, None, out),
                "table" => out.push(&self.table(element)),
                "frame" => self.frame(element, out),
                "tracked-changes" | "forms" | "sequence-decls" | "user-field-decls" | "variable-decls" => {}
                "section" | "index-body" | "table-of-content" | "text-box" | "custom-shape" | "g" => {
                    self.blocks(element, out);
                }
                _ => {}
            }
        }
    }

    /// What stands in frames that are anchored in a paragraph.
    fn frames(&mut self, paragraph: &Element, out: &mut Blocks) {
        let mut frames = Vec::new();
        paragraph.each("text-box", &mut |frame| frames.push(frame));
        for frame in frames {
            self.blocks(frame, out);
        }
    }

    fn frame(&mut self, frame: &Element, out: &mut Blocks) {
        if let Some(text) = frame.child("text-box") {
            self.blocks(text, out);
        } else if let Some(element) = frame.child("table") {
            out.push(&self.table(element));
        } else {
            out.push(&picture(&description(frame)));
        }
    }

    fn list(&mut self, list: &Element, depth: usize, inherited: Option<&str>, out: &mut Blocks) {
        let style = list.attribute("text:style-name").or(inherited);
        let ordered = style
            .and_then(|style| self.ordered.get(style))
            .and_then(|levels| levels.get(depth))
            .copied()
            .unwrap_or(false);
        let mut number = 0;
        for item in list.elements().filter(|item| matches!(&*item.name, "list-item" | "list-header")) {
            let mut is_first = true;
            for element in item.elements() {
                match &*element.name {
                    "list" => self.list(element, depth + 1, style, out),
                    "h" => {
                        let level = element.number("outline-level").unwrap_or(1);
                        let (plain, _) = self.inline(element);
                        out.heading(usize::try_from(level).unwrap_or(1), &plain);
                    }
                    "p" => {
                        let (_, marked) = self.inline(element);
                        if marked.trim().is_empty() {
                            continue;
                        }
                        if is_first {
                            number += 1;
                            let marker = if ordered { format!("{number}.") } else { "-".to_owned() };
                            out.item(depth, &marker, &marked);
                        } else {
                            out.item(depth, " ", &marked);
                        }
                        is_first = false;
                    }
                    _ => {}
                }
            }
        }
    }

    fn table(&mut self, element: &Element) -> String {
        let mut rows = Vec::new();
        each_row(element, &mut |row| rows.push(row));
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| {
                let mut line = Vec::new();
                for cell in row.elements() {
                    let text = match &*cell.name {
                        "table-cell" => {
                            let mut blocks = Blocks::default();
                            self.blocks(cell, &mut blocks);
                            let text = blocks.finish();
                            text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
                        }
                        "covered-table-cell" => String::new(),
                        _ => continue,
                    };
                    let times = repeats(cell, "number-columns-repeated").min(256);
                    line.extend(std::iter::repeat_n(text, times as usize));
                }
                while line.last().is_some_and(String::is_empty) && line.len() > 64 {
                    line.pop();
                }
                line
            })
            .collect();
        table(&rows)
    }

    fn slides(&mut self, presentation: &Element, out: &mut Blocks) {
        for (number, page) in presentation.all("page").enumerate() {
            out.push(&format!("<!-- Slide {} -->", number + 1));
            let mut frames: Vec<&Element> = Vec::new();
            page.each("frame", &mut |frame| frames.push(frame));
            let mut shapes: Vec<&Element> = Vec::new();
            page.each("custom-shape", &mut |shape| shapes.push(shape));
            frames.retain(|frame| !is_in_notes(page, frame));
            frames.sort_by_key(|frame| !is_title(frame));
            for frame in frames {
                if is_title(frame) {
                    let text = frame.child("text-box").map(|text| self.joined(text)).unwrap_or_default();
                    out.heading(1, &text);
                } else {
                    self.frame(frame, out);
                }
            }
            for shape in shapes {
                self.blocks(shape, out);
            }
            if let Some(notes) = page.child("notes") {
                let mut text = Vec::new();
                notes.each("frame", &mut |frame| {
                    // The others repeat the slide's number and date.
                    if frame.attribute("presentation:class") == Some("notes") {
                        text.extend(frame.child("text-box"));
                    }
                });
                let lines: Vec<String> = text
                    .into_iter()
                    .map(|text| self.joined(text))
                    .filter(|text| !text.trim().is_empty())
                    .collect();
                if !lines.is_empty() {
                    out.heading(3, "Notes");
                    lines.iter().for_each(|line| out.push(line));
                }
            }
        }
    }

    fn joined(&mut self, text: &Element) -> String {
        let mut paragraphs = Vec::new();
        text.each("p", &mut |paragraph| paragraphs.push(paragraph));
        let lines: Vec<String> = paragraphs.into_iter().map(|paragraph| self.inline(paragraph).0).collect();
        lines.join("\n")
    }

    /// The text of a paragraph without and with marks.
    fn inline(&mut self, paragraph: &Element) -> (String, String) {
        let mut spans = Spans::default();
        self.push_inline(paragraph, Look::default(), &mut spans);
        (spans.plain(), spans.marked())
    }

    fn push_inline(&mut self, parent: &Element, look: Look, out: &mut Spans) {
        for node in &parent.children {
            let element = match node {
                Node::Text(text) => {
                    // Blanks in a row and line ends are one blank.
                    let mut words = String::with_capacity(text.len());
                    let mut blank = false;
                    for character in text.chars() {
                        let is_blank = matches!(character, ' ' | '\n' | '\r' | '\t');
                        if !(is_blank && blank) {
                            words.push(if is_blank { ' ' } else { character });
                        }
                        blank = is_blank;
                    }
                    out.push(look, &words);
                    continue;
                }
                Node::Element(element) => element,
            };
            match &*element.name {
                "s" => {
                    let times = element.number("c").unwrap_or(1).clamp(1, 100);
                    out.push(look, &" ".repeat(usize::try_from(times).unwrap_or(1)));
                }
                "tab" => out.push(look, "\t"),
                "line-break" => out.push(look, "\n"),
                "a" => {
                    let mut inner = Spans::default();
                    self.push_inline(element, look, &mut inner);
                    let target = element.attribute("xlink:href").unwrap_or_default();
                    out.push(Look::default(), &link(&inner.marked(), target));
                }
                "note" => {
                    let text = element.child("note-body").map(|body| self.joined(body)).unwrap_or_default();
                    self.notes.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
                    let mark = format!("[^{}]", self.notes.len());
                    out.push(Look::default(), &mark);
                }
                "frame" if element.child("text-box").is_none() => {
                    out.push(Look::default(), &picture(&description(element)));
                }
                "frame" | "annotation" | "annotation-end" | "bookmark" | "change" => {}
                "span" => {
                    let own =
                        element.attribute("text:style-name").and_then(|style| self.looks.get(style)).copied();
                    let own = own.unwrap_or_default();
                    let look = Look {
                        bold: look.bold || own.bold,
                        italic: look.italic || own.italic,
                        struck: look.struck || own.struck,
                    };
                    self.push_inline(element, look, out);
                }
                _ => self.push_inline(element, look, out),
            }
        }
    }
}

fn is_title(frame: &Element) -> bool {
    frame.attribute("presentation:class") == Some("title")
}

fn is_in_notes(page: &Element, frame: &Element) -> bool {
    let mut found = false;
    if let Some(notes) = page.child("notes") {
        notes.each("frame", &mut |inside| found |= std::ptr::eq(inside, frame));
    }
    found
}

fn description(frame: &Element) -> String {
    let of = |name: &str| frame.child(name).map(Element::text).filter(|text| !text.trim().is_empty());
    of("desc").or_else(|| of("title")).unwrap_or_default()
}

fn each_row<'a>(table: &'a Element, take: &mut impl FnMut(&'a Element)) {
    for element in table.elements() {
        match &*element.name {
            "table-row" => take(element),
            "table-header-rows" | "table-rows" | "table-row-group" => each_row(element, take),
            _ => {}
        }
    }
}

fn repeats(element: &Element, name: &str) -> u32 {
    element.number(name).and_then(|times| u32::try_from(times).ok()).unwrap_or(1).max(1)
}

fn sheets(spreadsheet: &Element, out: &mut Blocks) -> Result<(), Problem> {
    for element in spreadsheet.all("table") {
        let mut sheet = Sheet::default();
        let mut row = 1u32;
        let mut rows = Vec::new();
        each_row(element, &mut |found| rows.push(found));
        for found in rows {
            let times = repeats(found, "number-rows-repeated");
            let mut column = 1u32;
            for cell in found.elements() {
                let columns = repeats(cell, "number-columns-repeated");
                if &*cell.name == "table-cell" {
                    let text = cell_text(cell);
                    if !text.trim().is_empty() {
                        for down in 0..times.min(MOST_REPEATS) {
                            for across in 0..columns.min(MOST_REPEATS) {
                                sheet
                                    .set(
                                        row.saturating_add(down),
                                        column.saturating_add(across),
                                        text.clone(),
                                    )
                                    .map_err(Problem::TooLarge)?;
                            }
                        }
                    }
                }
                column = column.saturating_add(columns);
            }
            row = row.saturating_add(times);
        }
        sheet.write(element.attribute("table:name").unwrap_or("Sheet"), out);
    }
    Ok(())
}

/// A date, a number or a truth as it is kept, anything else as it is shown.
fn cell_text(cell: &Element) -> String {
    let shown = || cell.all("p").map(Element::text).collect::<Vec<_>>().join("\n");
    let kept = match cell.attribute("office:value-type") {
        Some("float") => cell.attribute("office:value").map(str::to_owned),
        Some("boolean") => cell.attribute("office:boolean-value").map(str::to_ascii_uppercase),
        Some("date") => cell
            .attribute("office:date-value")
            .map(|date| date.trim_end_matches("T00:00:00").replace('T', " ")),
        _ => None,
    };
    kept.unwrap_or_else(shown)
}
