//! Excel workbooks (XLSX, XLSM).
//!
//! Decides how a sheet becomes a table: cells as they are kept, formulas where no value is, dates and percentages as
//! they are meant; columns and rows without any text are left out, so that a cell far away costs nothing. Parts are
//! read as a stream.

use std::collections::BTreeSet;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::encoding;
use super::layout::{Blocks, one_line};
use super::package::Package;
use super::spreadsheet::{NumberKind, Sheet, kind_of_format, number};
use super::xml::{self, Element};
use super::{Converted, Converter, Problem, Source};

pub(super) struct Xlsx;

impl Converter for Xlsx {
    fn name(&self) -> &'static str {
        "an Excel workbook"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let mut package = Package::open(source.bytes)?;
        let (workbook, relations) = package.main_part("xl/workbook.xml", "list of sheets")?;
        let strings = match relations.of_kind("sharedStrings") {
            Some(path) => {
                package.read(path)?.map(|bytes| shared_strings(&bytes)).transpose()?.unwrap_or_default()
            }
            None => Vec::new(),
        };
        let formats = match relations.of_kind("styles") {
            Some(path) => package.xml(path)?.map(|styles| formats(&styles)).unwrap_or_default(),
            None => Vec::new(),
        };
        let since_1904 = workbook
            .child("workbookPr")
            .is_some_and(|properties| matches!(properties.attribute("date1904"), Some("1" | "true")));
        let mut blocks = Blocks::default();
        let sheets: Vec<(String, Option<String>, bool)> = workbook
            .child("sheets")
            .into_iter()
            .flat_map(|sheets| sheets.all("sheet"))
            .map(|sheet| {
                let path = sheet.attribute("r:id").and_then(|id| relations.target(id)).map(str::to_owned);
                let hidden = sheet.attribute("state").is_some_and(|state| state != "visible");
                (sheet.attribute("name").unwrap_or("Sheet").to_owned(), path, hidden)
            })
            .collect();
        for (name, path, hidden) in sheets {
            let Some(path) = path else { continue };
            let Some(bytes) = package.read(&path)? else { continue };
            let (text, _) = encoding::decode(&bytes, false);
            drop(bytes);
            let mut sheet = Sheet::default();
            read_sheet(&text, &strings, &formats, since_1904, &mut sheet)
                .map_err(|problem| Problem::Broken(format!("`{path}`: {problem}")))?;
            drop(text);
            let note = if hidden { " (hidden)" } else { "" };
            sheet.write(&format!("{name}{note}"), &mut blocks);
            write_charts(&mut package, &path, &mut blocks)?;
        }
        Ok(Converted { markdown: blocks.finish(), title: package.title()? })
    }
}

/// The texts that cells refer to.
fn shared_strings(bytes: &[u8]) -> Result<Vec<String>, Problem> {
    let root = xml::parse(bytes).map_err(|problem| Problem::Broken(format!("its texts: {problem}")))?;
    Ok(root.all("si").map(rich_text).collect())
}

/// A text without the reading aids of East Asian ones.
fn rich_text(element: &Element) -> String {
    let mut out = String::new();
    for part in element.elements() {
        match &*part.name {
            "t" => out.push_str(&part.text()),
            "r" => out.extend(part.all("t").map(Element::text)),
            _ => {}
        }
    }
    out
}

/// What numbers with a cell's style are, by the style's number.
fn formats(styles: &Element) -> Vec<NumberKind> {
    let custom: Vec<(i64, NumberKind)> = styles
        .child("numFmts")
        .into_iter()
        .flat_map(|formats| formats.all("numFmt"))
        .filter_map(|format| {
            Some((
                format.number("numFmtId")?,
                kind_of_format(format.attribute("formatCode").unwrap_or_default()),
            ))
        })
        .collect();
    let kind = |id: i64| {
        let own = custom.iter().find(|(known, _)| *known == id).map(|(_, kind)| *kind);
        own.unwrap_or_else(|| NumberKind::of_built_in(id))
    };
    let cells = styles.child("cellXfs").into_iter().flat_map(|cells| cells.all("xf"));
    cells.map(|cell| kind(cell.number("numFmtId").unwrap_or(0))).collect()
}

/// A cell while it is read.
#[derive(Default)]
struct Cell {
    row: u32,
    column: u32,
    kind: String,
    style: usize,
    value: String,
    formula: String,
}

fn read_sheet(
    text: &str,
    strings: &[String],
    formats: &[NumberKind],
    since_1904: bool,
    sheet: &mut Sheet,
) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let (mut row, mut column) = (0u32, 0u32);
    let mut cell: Option<Cell> = None;
    let (mut in_value, mut in_formula) = (false, false);
    let mut hidden = 0usize;
    loop {
        let event = reader
            .read_event()
            .map_err(|error| format!("its XML is broken at byte {}: {error}", reader.buffer_position()))?;
        let (tag, is_empty) = match &event {
            Event::Start(tag) => (Some(tag), false),
            Event::Empty(tag) => (Some(tag), true),
            _ => (None, false),
        };
        if let Some(tag) = tag {
            let attribute = |name: &str| {
                tag.attributes().with_checks(false).flatten().find_map(|attribute| {
                    (attribute.key.into_inner() == name).then(|| xml::unescaped(&attribute.value))
                })
            };
            match tag.local_name().into_inner() {
                "row" => {
                    row = attribute("r").and_then(|number| number.parse().ok()).unwrap_or(row + 1);
                    column = 0;
                }
                "c" => {
                    let place = attribute("r").and_then(|place| place_of(&place));
                    (row, column) = place.unwrap_or((row, column + 1));
                    cell = Some(Cell {
                        row,
                        column,
                        kind: attribute("t").unwrap_or_default(),
                        style: attribute("s").and_then(|style| style.parse().ok()).unwrap_or(0),
                        value: String::new(),
                        formula: String::new(),
                    });
                }
                "v" | "t" => in_value = !is_empty,
                "f" => in_formula = !is_empty,
                "rPh" => hidden += usize::from(!is_empty),
                "hyperlink" | "mergeCell" => {}
                _ => {}
            }
        }
        match event {
            Event::Text(text) if in_value && hidden == 0 => {
                if let Some(cell) = &mut cell {
                    cell.value.push_str(&text.xml10_content());
                }
            }
            Event::Text(text) if in_formula => {
                if let Some(cell) = &mut cell {
                    cell.formula.push_str(&text.xml10_content());
                }
            }
            Event::GeneralRef(reference) if in_formula => {
                if let Some(cell) = &mut cell {
                    cell.formula.push_str(&xml::unescaped(&format!("&{};", reference.as_ref())));
                }
            }
            Event::CData(text) if in_formula => {
                if let Some(cell) = &mut cell {
                    cell.formula.push_str(&text.xml10_content());
                }
            }
            Event::CData(text) if in_value && hidden == 0 => {
                if let Some(cell) = &mut cell {
                    cell.value.push_str(&text.xml10_content());
                }
            }
            Event::GeneralRef(reference) if in_value && hidden == 0 => {
                if let Some(cell) = &mut cell {
                    cell.value.push_str(&xml::unescaped(&format!("&{};", reference.as_ref())));
                }
            }
            Event::End(tag) => match tag.local_name().into_inner() {
                "v" | "t" => in_value = false,
                "f" => in_formula = false,
                "rPh" => hidden = hidden.saturating_sub(1),
                "c" => {
                    if let Some(cell) = cell.take() {
                        let text = shown(&cell, strings, formats, since_1904);
                        sheet.set(cell.row, cell.column, text)?;
                    }
                }
                "sheetData" => return Ok(()),
                _ => {}
            },
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn shown(cell: &Cell, strings: &[String], formats: &[NumberKind], since_1904: bool) -> String {
    let value = cell.value.as_str();
    match cell.kind.as_str() {
        "s" => value.trim().parse::<usize>().ok().and_then(|at| strings.get(at)).cloned().unwrap_or_default(),
        "b" => if value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
        "str" | "inlineStr" | "e" | "d" => value.to_owned(),
        _ => match value.trim().parse::<f64>() {
            Ok(found) => {
                number(found, formats.get(cell.style).copied().unwrap_or_default(), since_1904, value.trim())
            }
            // A program that does not compute has written it: the formula is all that is known.
            Err(_) if value.trim().is_empty() && !cell.formula.is_empty() => format!("={}", cell.formula),
            Err(_) => value.to_owned(),
        },
    }
}

/// Row and column of `AB12`, both from 1.
fn place_of(place: &str) -> Option<(u32, u32)> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic).count();
    if letters == 0 || letters > 3 {
        return None;
    }
    let column = place[..letters]
        .bytes()
        .fold(0u32, |column, letter| column * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
    Some((place[letters..].parse().ok().filter(|row| *row > 0)?, column))
}

/// The charts that lie on a sheet.
fn write_charts(package: &mut Package<'_>, sheet: &str, out: &mut Blocks) -> Result<(), Problem> {
    let Some(drawing) = package.relations(sheet)?.of_kind("drawing").map(str::to_owned) else {
        return Ok(());
    };
    let Ok(Some(root)) = package.xml(&drawing) else { return Ok(()) };
    let relations = package.relations(&drawing)?;
    let mut paths = BTreeSet::new();
    root.each("chart", &mut |chart| {
        paths.extend(chart.attribute("r:id").and_then(|id| relations.target(id)).map(str::to_owned));
    });
    let mut descriptions = Vec::new();
    root.each("cNvPr", &mut |properties| {
        descriptions.extend(properties.attribute("descr").map(one_line).filter(|text| !text.is_empty()));
    });
    for description in descriptions {
        out.push(&super::layout::picture(&description));
    }
    for path in paths {
        if let Ok(Some(chart)) = package.xml(&path) {
            // Values of a chart repeat cells; its name does not.
            let title = chart.path(&["chart", "title", "tx"]).map(|title| {
                let mut text = String::new();
                title.each("t", &mut |piece| text.push_str(&piece.text()));
                one_line(&text)
            });
            if let Some(title) = title.filter(|title| !title.is_empty()) {
                out.push(&format!("[Chart: {title}]"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (place, expected) in [
            ("A1", Some((1, 1))),
            ("AB12", Some((12, 28))),
            ("XFD1048576", Some((1_048_576, 16_384))),
            ("A0", None),
            ("1", None),
            ("ABCD1", None),
        ] {
            assert_eq!(place_of(place), expected, "{place}");
        }
    }

    #[test]
    fn formulas_without_a_value_are_shown() {
        let mut sheet = Sheet::default();
        let text = "<sheetData><row r='1'><c><f>A2&amp;\"x\"</f><v></v></c><c><f>1+1</f><v>2</v></c><c t='str'><f>IF(1,\"\")</f><v></v></c><c><f><![CDATA[B1&\"<i>\"]]></f></c></row></sheetData>";
        read_sheet(text, &[], &[], false, &mut sheet).expect("a sheet");
        let mut blocks = Blocks::default();
        sheet.write("S", &mut blocks);
        assert_eq!(blocks.finish(), "## S\n\n| =A2&\"x\" | 2 | =B1&\"<i>\" |\n| --- | --- | --- |");
    }

    #[test]
    fn far_cells_cost_nothing() {
        let mut sheet = Sheet::default();
        let text = "<sheetData><row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576' t='inlineStr'><is><t>a &amp; b</t></is></c></row></sheetData>";
        read_sheet(text, &[], &[], false, &mut sheet).expect("a sheet");
        let mut blocks = Blocks::default();
        sheet.write("S", &mut blocks);
        assert_eq!(blocks.finish(), "## S\n\n| 1 |  |\n| --- | --- |\n|  | a & b |");
    }
}
