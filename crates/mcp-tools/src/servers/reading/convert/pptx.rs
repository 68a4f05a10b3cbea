//! PowerPoint presentations (PPTX).
//!
//! Decides the order of slides (the presentation's) and of what is on one (title first, the rest as it lies on the
//! slide), and what of it becomes which block: bullets by level, tables with merged cells, charts as tables of their
//! values, pictures by description, speaker notes after the slide.

use super::layout::{Blocks, Look, Spans, link, one_line, picture};
use super::ooxml::Relations;
use super::package::Package;
use super::xml::Element;
use super::{Converted, Converter, Problem, Source};

pub(super) struct Pptx;

/// Groups in groups.
const DEEPEST_GROUP: usize = 32;
/// Values of a chart that are written.
const MOST_POINTS: usize = 2_000;

impl Converter for Pptx {
    fn name(&self) -> &'static str {
        "a PowerPoint presentation"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let mut package = Package::open(source.bytes)?;
        let (presentation, relations) = package.main_part("ppt/presentation.xml", "list of slides")?;
        let mut blocks = Blocks::default();
        let slides = presentation.child("sldIdLst").into_iter().flat_map(|list| list.all("sldId"));
        let paths: Vec<String> = slides
            .filter_map(|slide| relations.target(slide.attribute("r:id")?).map(str::to_owned))
            .collect();
        for (number, path) in paths.iter().enumerate() {
            let Some(slide) = package.xml(path)? else { continue };
            let links = package.relations(path)?;
            let hidden = if slide.attribute("show") == Some("0") { ", hidden" } else { "" };
            blocks.push(&format!("<!-- Slide {}{hidden} -->", number + 1));
            if let Some(tree) = slide.path(&["cSld", "spTree"]) {
                slide_blocks(tree, &links, &mut package, &mut blocks)?;
            }
            if let Some(path) = links.of_kind("notesSlide")
                && let Some(notes) = package.xml(path)?
            {
                write_notes(&notes, &mut blocks);
            }
        }
        Ok(Converted { markdown: blocks.finish(), title: package.title()? })
    }
}

fn slide_blocks(
    tree: &Element,
    links: &Relations,
    package: &mut Package<'_>,
    out: &mut Blocks,
) -> Result<(), Problem> {
    let mut shapes = Vec::new();
    collect(tree, &mut shapes, 0);
    // As they are read: the title, then from top to bottom and left to right. A shape that is placed by the layout
    // of its slide comes where the file has it.
    let is_placed = |shape: &&Element| place(shape).is_some() || is_title(shape);
    if shapes.iter().all(is_placed) {
        shapes.sort_by_key(|shape| (!is_title(shape), place(shape)));
    } else {
        shapes.sort_by_key(|shape| !is_title(shape));
    }
    for shape in shapes {
        write_shape(shape, links, package, out)?;
    }
    Ok(())
}

fn collect<'a>(parent: &'a Element, shapes: &mut Vec<&'a Element>, depth: usize) {
    if depth > DEEPEST_GROUP {
        return;
    }
    for element in parent.elements() {
        match &*element.name {
            "sp" | "pic" | "graphicFrame" | "cxnSp" => shapes.push(element),
            "grpSp" => collect(element, shapes, depth + 1),
            "AlternateContent" => {
                if let Some(choice) = element.elements().next() {
                    collect(choice, shapes, depth + 1);
                }
            }
            _ => {}
        }
    }
}

fn place(shape: &Element) -> Option<(i64, i64)> {
    let offset = shape.path(&["spPr", "xfrm", "off"]).or_else(|| shape.path(&["xfrm", "off"]))?;
    // What begins within half a centimetre is on one line.
    Some((offset.number("y")? / 180_000, offset.number("x")?))
}

/// The kind of placeholder; none where a shape is no placeholder.
fn placeholder(shape: &Element) -> Option<&str> {
    let holder = shape.path(&["nvSpPr", "nvPr", "ph"])?;
    Some(holder.attribute("type").unwrap_or("obj"))
}

fn is_title(shape: &Element) -> bool {
    matches!(placeholder(shape), Some("title" | "ctrTitle"))
}

fn write_shape(
    shape: &Element,
    links: &Relations,
    package: &mut Package<'_>,
    out: &mut Blocks,
) -> Result<(), Problem> {
    match &*shape.name {
        "sp" => {
            let Some(body) = shape.child("txBody") else { return Ok(()) };
            match placeholder(shape) {
                Some("title" | "ctrTitle") => {
                    let text: Vec<String> = body.all("p").map(|text| paragraph(text, links).0).collect();
                    out.heading(1, &text.join(" "));
                }
                // Repeated on each slide and no part of what it says.
                Some("dt" | "ftr" | "sldNum" | "hdr") => {}
                Some("subTitle") => write_text(body, links, false, out),
                Some(_) => write_text(body, links, true, out),
                None => write_text(body, links, false, out),
            }
        }
        "pic" => {
            let properties = shape.path(&["nvPicPr", "cNvPr"]);
            let description = properties.and_then(|found| found.attribute("descr")).unwrap_or_default();
            out.push(&picture(description));
        }
        "graphicFrame" => {
            if let Some(table) = shape.find("tbl") {
                out.table(&rows(table, links));
            } else if let Some(path) =
                shape.find("chart").and_then(|chart| links.target(chart.attribute("r:id")?))
            {
                if let Some(chart) = package.xml(path)? {
                    write_chart(&chart, out);
                }
            } else if let Some(path) =
                shape.find("relIds").and_then(|diagram| links.target(diagram.attribute("r:dm")?))
                && let Some(diagram) = package.xml(path)?
            {
                diagram.each("pt", &mut |point| {
                    let text = point.child("t").map(|text| one_line(&joined(text))).unwrap_or_default();
                    out.item(0, "-", &text);
                });
            }
        }
        _ => {}
    }
    Ok(())
}

fn joined(body: &Element) -> String {
    let mut lines = Vec::new();
    body.each("p", &mut |paragraph| {
        let mut line = String::new();
        paragraph.each("t", &mut |text| line.push_str(&text.text()));
        lines.push(line);
    });
    lines.join("\n")
}

/// Paragraphs of a text body. In a placeholder for content they are items of a list unless they say otherwise.
fn write_text(body: &Element, links: &Relations, is_content: bool, out: &mut Blocks) {
    let paragraphs: Vec<&Element> =
        body.all("p").filter(|found| !paragraph(found, links).0.trim().is_empty()).collect();
    // One paragraph without a level is a sentence rather than a list of one.
    let is_list = is_content && paragraphs.len() > 1;
    let mut numbers = [0u32; 10];
    for text in paragraphs {
        let properties = text.child("pPr");
        let depth = properties.and_then(|found| found.number("lvl")).unwrap_or(0).clamp(0, 8);
        let depth = usize::try_from(depth).unwrap_or(0);
        let has = |name: &str| properties.is_some_and(|found| found.child(name).is_some());
        let (_, marked) = paragraph(text, links);
        if has("buAutoNum") {
            numbers[depth] += 1;
            numbers[depth + 1..].fill(0);
            out.item(depth, &format!("{}.", numbers[depth]), &marked);
        } else if !has("buNone") && (is_list || has("buChar") || depth > 0) {
            numbers[depth..].fill(0);
            out.item(depth, "-", &marked);
        } else {
            out.push(&marked);
        }
    }
}

/// The text of a paragraph without and with marks.
fn paragraph(element: &Element, links: &Relations) -> (String, String) {
    let mut spans = Spans::default();
    for run in element.elements() {
        let properties = run.child("rPr");
        match &*run.name {
            "r" | "fld" => {
                let text = run.child("t").map(Element::text).unwrap_or_default();
                let on = |name: &str| {
                    matches!(properties.and_then(|found| found.attribute(name)), Some("1" | "true" | "on"))
                };
                let struck = properties
                    .and_then(|found| found.attribute("strike"))
                    .is_some_and(|strike| strike != "noStrike");
                let target =
                    properties.and_then(|found| links.target(found.child("hlinkClick")?.attribute("r:id")?));
                match target {
                    Some(target) => spans.push(Look::default(), &link(&text, target)),
                    None => spans.push(Look { bold: on("b"), italic: on("i"), struck }, &text),
                }
            }
            "br" => spans.push(Look::default(), "\n"),
            "AlternateContent" | "m" => {
                let mut text = String::new();
                run.each("t", &mut |piece| text.push_str(&piece.text()));
                spans.push(Look::default(), &text);
            }
            _ => {}
        }
    }
    (spans.plain(), spans.marked())
}

fn rows(table: &Element, links: &Relations) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for row in table.all("tr") {
        let mut line = Vec::new();
        for cell in row.all("tc") {
            // The other places of a merged cell are in the file, empty or with what is not shown.
            let covered =
                ["hMerge", "vMerge"].iter().any(|name| matches!(cell.attribute(name), Some("1" | "true")));
            let text = match cell.child("txBody") {
                Some(body) if !covered => {
                    body.all("p").map(|text| paragraph(text, links).1).collect::<Vec<_>>().join("\n")
                }
                _ => String::new(),
            };
            line.push(text);
        }
        rows.push(line);
    }
    rows
}

/// Speaker notes: the text of the page of notes that is not a field of the layout.
fn write_notes(notes: &Element, out: &mut Blocks) {
    let Some(tree) = notes.path(&["cSld", "spTree"]) else { return };
    let mut shapes = Vec::new();
    collect(tree, &mut shapes, 0);
    let body = shapes
        .iter()
        .find(|shape| placeholder(shape) == Some("body"))
        .and_then(|shape| shape.child("txBody"));
    let Some(body) = body else { return };
    let text = joined(body);
    if !text.trim().is_empty() {
        out.heading(3, "Notes");
        for line in text.lines() {
            out.push(line);
        }
    }
}

/// A chart as a table: categories down, series across.
pub(super) fn write_chart(chart: &Element, out: &mut Blocks) {
    let title =
        chart.path(&["chart", "title", "tx"]).map(|title| one_line(&joined(title))).unwrap_or_default();
    let mut series = Vec::new();
    chart.each("ser", &mut |found| series.push(found));
    let heading = if title.is_empty() { "Chart".to_owned() } else { format!("Chart: {title}") };
    out.heading(3, &heading);
    let points = |element: Option<&Element>| -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        let Some(element) = element else { return values };
        element.each("pt", &mut |point| {
            let at = usize::try_from(point.number("idx").unwrap_or(0)).unwrap_or(0);
            let value = point.child("v").map(Element::text).unwrap_or_default();
            if at < MOST_POINTS {
                values.resize(values.len().max(at + 1), String::new());
                values[at] = value;
            }
        });
        values
    };
    let first = series.first();
    let categories = points(first.and_then(|series| series.child("cat").or_else(|| series.child("xVal"))));
    let mut head = vec!["Category".to_owned()];
    let mut columns = Vec::new();
    for (number, series) in series.iter().enumerate().take(64) {
        let name = series.child("tx").map(|name| points(Some(name)).join(" ")).unwrap_or_default();
        head.push(if name.is_empty() { format!("Series {}", number + 1) } else { name });
        columns.push(points(series.child("val").or_else(|| series.child("yVal"))));
    }
    let length = columns.iter().map(Vec::len).chain([categories.len()]).max().unwrap_or(0);
    let mut rows = vec![head];
    for at in 0..length {
        let mut row = vec![categories.get(at).cloned().unwrap_or_default()];
        row.extend(columns.iter().map(|column| column.get(at).cloned().unwrap_or_default()));
        rows.push(row);
    }
    if length > 0 {
        out.table(&rows);
    }
}
