//! Pieces of Markdown.
//!
//! Decides how headings, tables, lists and links of all formats are written.

/// Characters of a table's row beyond which one of few rows is text rather than a table.
const WIDEST_ROW: usize = 100_000;

/// Blocks with an empty line between them.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    text: String,
    /// The last block was an item of a list: the next item follows without an empty line.
    in_list: bool,
}

impl Blocks {
    pub(super) fn push(&mut self, block: &str) {
        self.add(block, false);
    }

    pub(super) fn heading(&mut self, level: usize, text: &str) {
        let text = one_line(text);
        if !text.is_empty() {
            self.add(&format!("{} {text}", "#".repeat(level.clamp(1, 6))), false);
        }
    }

    /// An item of a list; `depth` from 0.
    pub(super) fn item(&mut self, depth: usize, marker: &str, text: &str) {
        let indent = " ".repeat(4 * depth.min(12));
        let inner = format!("\n{indent}{}", " ".repeat(marker.chars().count() + 1));
        let text = text.trim().replace('\n', &inner);
        if !text.is_empty() {
            self.add(&format!("{indent}{marker} {text}"), true);
        }
    }

    pub(super) fn table(&mut self, rows: &[Vec<String>]) {
        self.push(&table(rows));
    }

    fn add(&mut self, block: &str, is_item: bool) {
        let block = if is_item { block.trim_end() } else { block.trim_matches(['\n', '\r']).trim_end() };
        if block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(if is_item && self.in_list { "\n" } else { "\n\n" });
        }
        self.text.push_str(block);
        self.in_list = is_item;
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A table, its first row the head. Short rows are filled up. Nothing where there is no text in it.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    if columns == 0 || rows.iter().flatten().all(|cell| cell.trim().is_empty()) {
        return String::new();
    }
    let cells: usize = rows.iter().map(Vec::len).sum();
    if is_mostly_empty(columns, rows.len(), cells) {
        let lines: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        return lines.join("\n");
    }
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        for column in 0..columns {
            out.push_str("| ");
            push_cell(&mut out, row.get(column).map_or("", String::as_str));
            out.push(' ');
        }
        out.push_str("|\n");
        if number == 0 {
            out.push_str(&"| --- ".repeat(columns));
            out.push_str("|\n");
        }
    }
    out.pop();
    out
}

/// Whether a table would be blanks for the most part: a row of very many columns among short ones, cells that are
/// strewn over a sheet. `cells` are those with something in them.
pub(super) fn is_mostly_empty(columns: usize, rows: usize, cells: usize) -> bool {
    columns.saturating_mul(rows) > cells.saturating_mul(8).saturating_add(WIDEST_ROW)
}

/// The text of a cell, on one line.
pub(super) fn push_cell(out: &mut String, cell: &str) {
    for character in cell.trim().chars() {
        match character {
            '|' => out.push_str("\\|"),
            '\r' => {}
            '\n' => out.push_str("<br>"),
            other => out.push(other),
        }
    }
}

/// On one line, blanks in a row as one.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A link; the text alone where the address tells no more.
pub(super) fn link(text: &str, target: &str) -> String {
    let (text, target) = (text.trim(), target.trim());
    let is_address = target.split_once(':').is_some_and(|(scheme, rest)| {
        matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https" | "mailto" | "ftp")
            && !rest.is_empty()
    });
    if !is_address || text == target {
        return text.to_owned();
    }
    if text.is_empty() {
        return format!("<{target}>");
    }
    let target = target.replace(' ', "%20").replace('(', "%28").replace(')', "%29");
    format!("[{text}]({target})")
}

/// A picture by its description; nothing where it has none.
pub(super) fn picture(description: &str) -> String {
    let description = one_line(description);
    if description.is_empty() { String::new() } else { format!("[Image: {description}]") }
}

/// Stretches of text with the way they are set, joined where that is the same.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<(Look, String)>);

/// How text is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) struck: bool,
}

impl Spans {
    pub(super) fn push(&mut self, look: Look, text: &str) {
        match self.0.last_mut() {
            Some((last, before)) if *last == look => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push((look, text.to_owned())),
        }
    }

    /// Adds the stretches of another.
    pub(super) fn append(&mut self, other: Self) {
        for (look, text) in other.0 {
            self.push(look, &text);
        }
    }

    /// The text without marks.
    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The text with marks, which stand outside of blanks.
    pub(super) fn marked(&self) -> String {
        let mut out = String::new();
        for (look, text) in &self.0 {
            let core = text.trim();
            let mark = match (look.bold, look.italic) {
                (true, true) => "***",
                (true, false) => "**",
                (false, true) => "*",
                (false, false) => "",
            };
            let strike = if look.struck { "~~" } else { "" };
            if core.is_empty() || (mark.is_empty() && strike.is_empty()) || core.contains('\n') {
                out.push_str(text);
                continue;
            }
            let start = text.len() - text.trim_start().len();
            out.push_str(&text[..start]);
            out.push_str(mark);
            out.push_str(strike);
            out.push_str(core);
            out.push_str(strike);
            out.extend(mark.chars().rev());
            out.push_str(&text[start + core.len()..]);
        }
        out
    }
}

/// A number of a list: `decimal`, `lowerLetter`, `upperLetter`, `lowerRoman`, `upperRoman`.
pub(super) fn numeral(number: u32, format: &str) -> String {
    let letters = |number: u32, first: u8| {
        let letter = char::from(first + u8::try_from(number.saturating_sub(1) % 26).unwrap_or(0));
        let times = usize::try_from(number.saturating_sub(1) / 26).unwrap_or(0).min(20) + 1;
        letter.to_string().repeat(times)
    };
    match format {
        "lowerLetter" => letters(number, b'a'),
        "upperLetter" => letters(number, b'A'),
        "lowerRoman" => roman(number).to_ascii_lowercase(),
        "upperRoman" => roman(number),
        _ => number.to_string(),
    }
}

fn roman(number: u32) -> String {
    const VALUES: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number > 4000 {
        return number.to_string();
    }
    let mut rest = number;
    let mut out = String::new();
    for (value, letters) in VALUES {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_outside_blanks() {
        let mut spans = Spans::default();
        spans.push(Look::default(), "a");
        spans.push(Look { bold: true, ..Look::default() }, " b");
        spans.push(Look { bold: true, ..Look::default() }, "c ");
        spans.push(Look { italic: true, struck: true, ..Look::default() }, "d");
        assert_eq!(spans.marked(), "a **bc** *~~d~~*");
        assert_eq!(spans.plain(), "a bc d");
    }

    #[test]
    fn tables_are_filled_up() {
        let rows = |rows: &[&[&str]]| -> Vec<Vec<String>> {
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
        };
        assert_eq!(table(&rows(&[&["a", "b"], &["1|2\n3"]])), "| a | b |\n| --- | --- |\n| 1\\|2<br>3 |  |");
        assert_eq!(table(&rows(&[&["", " "], &[]])), "");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn lists_stay_together() {
        let mut blocks = Blocks::default();
        blocks.heading(9, "a\nb");
        blocks.item(0, "-", "x\ny");
        blocks.item(1, "1.", "z");
        blocks.push("end");
        assert_eq!(blocks.finish(), "###### a b\n\n- x\n  y\n    1. z\n\nend");
    }

    #[test]
    fn numerals() {
        for (number, format, expected) in [
            (4, "decimal", "4"),
            (28, "lowerLetter", "bb"),
            (1994, "upperRoman", "MCMXCIV"),
            (9, "lowerRoman", "ix"),
        ] {
            assert_eq!(numeral(number, format), expected);
        }
    }

    #[test]
    fn links_are_kept_where_they_lead_somewhere() {
        assert_eq!(link("a", "https://b/c (d)"), "[a](https://b/c%20%28d%29)");
        assert_eq!(link("a", "#anchor"), "a");
        assert_eq!(link("https://b", "https://b"), "https://b");
    }
}
