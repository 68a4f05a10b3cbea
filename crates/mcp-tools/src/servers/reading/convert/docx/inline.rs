//! The text of a paragraph.
//!
//! Decides how runs, fields, links, notes, pictures and formulas are written on a line.

use super::super::layout::{Look, Spans, link, picture};
use super::super::ooxml::Relations;
use super::super::xml::{Element, Node};
use super::styles::Styles;

pub(super) struct Inline<'a, 'n> {
    links: &'a Relations,
    notes: &'n mut Vec<(&'static str, String)>,
    styles: &'n Styles,
    /// What is written: the last is the innermost open link.
    open: Vec<(Option<String>, Spans)>,
    /// Fields that are open: their instruction, and whether their result has begun.
    fields: Vec<(String, bool)>,
    boxes: Vec<&'a Element>,
}

impl<'a, 'n> Inline<'a, 'n> {
    pub(super) fn new(
        links: &'a Relations,
        notes: &'n mut Vec<(&'static str, String)>,
        styles: &'n Styles,
    ) -> Self {
        let open = vec![(None, Spans::default())];
        Self { links, notes, styles, open, fields: Vec::new(), boxes: Vec::new() }
    }

    /// What stands in text boxes that are anchored here.
    pub(super) fn take_boxes(&mut self) -> Vec<&'a Element> {
        std::mem::take(&mut self.boxes)
    }

    /// The text without and with marks.
    pub(super) fn finish(mut self) -> (String, String) {
        while self.open.len() > 1 {
            self.close_link();
        }
        self.open.pop().map(|(_, spans)| (spans.plain(), spans.marked())).unwrap_or_default()
    }

    pub(super) fn paragraph(&mut self, parent: &'a Element) {
        for element in parent.elements() {
            match &*element.name {
                "r" => self.run(element),
                "hyperlink" => {
                    let target = element.attribute("r:id").and_then(|id| self.links.target(id));
                    self.open.push((target.map(str::to_owned), Spans::default()));
                    self.paragraph(element);
                    self.close_link();
                }
                "fldSimple" => {
                    let target = address_of_field(element.attribute("instr").unwrap_or_default());
                    self.open.push((target, Spans::default()));
                    self.paragraph(element);
                    self.close_link();
                }
                "ins" | "moveTo" | "smartTag" | "sdt" | "sdtContent" | "customXml" | "dir" | "bdo" => {
                    self.paragraph(element);
                }
                "oMath" | "oMathPara" => {
                    let formula = formula(element);
                    self.push(Look::default(), &formula);
                }
                "AlternateContent" => {
                    if let Some(choice) = element.elements().next() {
                        self.paragraph(choice);
                    }
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, run: &'a Element) {
        let look = self.look(run);
        for element in run.elements() {
            self.piece(element, look);
        }
    }

    fn piece(&mut self, element: &'a Element, look: Look) {
        match &*element.name {
            "fldChar" => match element.attribute("fldCharType") {
                Some("begin") => self.fields.push((String::new(), false)),
                Some("separate") => {
                    let target = self.fields.last_mut().map(|field| {
                        field.1 = true;
                        address_of_field(&field.0)
                    });
                    if let Some(target) = target {
                        self.open.push((target, Spans::default()));
                    }
                }
                Some("end") => {
                    if let Some((_, true)) = self.fields.pop() {
                        self.close_link();
                    }
                }
                _ => {}
            },
            "instrText" => {
                if let Some((instruction, _)) = self.fields.last_mut() {
                    instruction.push_str(&element.text());
                }
            }
            // Between the begin and the result of a field nothing is shown.
            _ if self.fields.iter().any(|(_, begun)| !begun) => {}
            "t" => self.push(look, &element.text()),
            "tab" | "ptab" => self.push(look, "\t"),
            "br" | "cr" => self.push(look, "\n"),
            "noBreakHyphen" => self.push(look, "-"),
            "sym" => {
                let code = element.attribute("char").and_then(|code| u32::from_str_radix(code, 16).ok());
                // Symbol fonts keep their characters in the private area.
                let code =
                    code.map(|code| if (0xf020..=0xf0ff).contains(&code) { code - 0xf000 } else { code });
                if let Some(character) = code.and_then(char::from_u32) {
                    self.push(look, character.encode_utf8(&mut [0; 4]));
                }
            }
            "footnoteReference" => self.note("footnote", element),
            "endnoteReference" => self.note("endnote", element),
            "drawing" | "pict" | "object" => self.drawing(element),
            "AlternateContent" => {
                if let Some(choice) = element.elements().next() {
                    for element in choice.elements() {
                        self.piece(element, look);
                    }
                }
            }
            "ruby" => {
                if let Some(base) = element.child("rubyBase") {
                    self.paragraph(base);
                }
            }
            _ => {}
        }
    }

    fn drawing(&mut self, drawing: &'a Element) {
        let mut has_box = false;
        let boxes = &mut self.boxes;
        drawing.each("txbxContent", &mut |content| {
            boxes.push(content);
            has_box = true;
        });
        if has_box {
            return;
        }
        let description = drawing
            .find("docPr")
            .and_then(|properties| {
                let of = |name: &str| properties.attribute(name).filter(|text| !text.trim().is_empty());
                of("descr").or_else(|| of("title"))
            })
            .or_else(|| drawing.find("imagedata")?.attribute("title"))
            .or_else(|| drawing.find("shape")?.attribute("alt"));
        let picture = picture(description.unwrap_or_default());
        self.push(Look::default(), &picture);
    }

    fn note(&mut self, kind: &'static str, element: &Element) {
        let Some(id) = element.attribute("id") else { return };
        self.notes.push((kind, id.to_owned()));
        let mark = format!("[^{}]", self.notes.len());
        self.push(Look::default(), &mark);
    }

    fn look(&self, run: &Element) -> Look {
        let properties = run.child("rPr");
        let style = properties.and_then(|found| found.child("rStyle")?.attribute("val"));
        let inherited = style.map(|style| self.styles.look(style)).unwrap_or_default();
        let on = |name: &str, inherited: bool| match properties.and_then(|found| found.child(name)) {
            Some(switch) => !matches!(switch.attribute("val"), Some("0" | "false" | "off")),
            None => inherited,
        };
        Look {
            bold: on("b", inherited.bold),
            italic: on("i", inherited.italic),
            struck: on("strike", inherited.struck),
        }
    }

    fn push(&mut self, look: Look, text: &str) {
        if let Some((_, spans)) = self.open.last_mut() {
            spans.push(look, text);
        }
    }

    fn close_link(&mut self) {
        if self.open.len() < 2 {
            return;
        }
        let Some((target, spans)) = self.open.pop() else { return };
        let Some((_, parent)) = self.open.last_mut() else { return };
        match target {
            Some(target) => parent.push(Look::default(), &link(&spans.marked(), &target)),
            None => parent.append(spans),
        }
    }
}

/// The address of a field `HYPERLINK "…"`.
fn address_of_field(instruction: &str) -> Option<String> {
    let rest = instruction.trim().strip_prefix("HYPERLINK")?;
    let (_, rest) = rest.split_once('"')?;
    rest.split('"').next().map(str::to_owned)
}

/// A formula on one line, roots, fractions and powers in brackets.
fn formula(element: &Element) -> String {
    let part = |name: &str| element.child(name).map(formula).unwrap_or_default();
    let group = |text: String| if text.chars().count() > 1 { format!("({text})") } else { text };
    match &*element.name {
        "t" => element.text(),
        "f" => format!("{}/{}", group(part("num")), group(part("den"))),
        "sSup" => format!("{}^{}", part("e"), group(part("sup"))),
        "sSub" => format!("{}_{}", part("e"), group(part("sub"))),
        "sSubSup" => format!("{}_{}^{}", part("e"), group(part("sub")), group(part("sup"))),
        "rad" => match part("deg") {
            degree if degree.is_empty() => format!("√({})", part("e")),
            degree => format!("{degree}√({})", part("e")),
        },
        "nary" => {
            let sign = element.path(&["naryPr", "chr"]).and_then(|sign| sign.attribute("val")).unwrap_or("∫");
            format!("{sign}_{}^{} {}", group(part("sub")), group(part("sup")), part("e"))
        }
        "d" => {
            let of = |name: &str| element.path(&["dPr", name]).and_then(|sign| sign.attribute("val"));
            let inner: Vec<String> = element.all("e").map(formula).collect();
            format!("{}{}{}", of("begChr").unwrap_or("("), inner.join(", "), of("endChr").unwrap_or(")"))
        }
        _ => element
            .children
            .iter()
            .map(|node| match node {
                Node::Element(element) => formula(element),
                Node::Text(_) => String::new(),
            })
            .collect(),
    }
}
