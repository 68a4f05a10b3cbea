//! Tables of delimited text.
//!
//! Decides the delimiter and how a table is written in Markdown.

use super::layout::push_cell;

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The table; none where the text has no rows of two columns or more.
pub(super) fn markdown(text: &str, delimiter: Option<u8>) -> Option<String> {
    let delimiter = delimiter.unwrap_or_else(|| likely_delimiter(text));
    // Two passes over one record: the library's records keep the room of the longest before them, so
    // that a table of them grows with rows times columns.
    let (mut rows, mut columns, mut cells) = (0usize, 0usize, 0usize);
    each_row(text, delimiter, |row| {
        rows += 1;
        columns = columns.max(row.len());
        cells += row.len();
    })?;
    if columns < 2 || columns.saturating_mul(rows) > cells.saturating_mul(4).saturating_add(10_000) {
        return None;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let mut number = 0usize;
    each_row(text, delimiter, |row| {
        for column in 0..columns {
            out.push_str("| ");
            push_cell(&mut out, row.get(column).unwrap_or_default());
            out.push(' ');
        }
        out.push_str("|\n");
        if number == 0 {
            out.push_str(&"| --- ".repeat(columns));
            out.push_str("|\n");
        }
        number += 1;
    })?;
    out.pop();
    Some(out)
}

fn each_row(text: &str, delimiter: u8, mut take: impl FnMut(&csv::StringRecord)) -> Option<()> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).ok()? {
        take(&row);
    }
    Some(())
}

/// The delimiter that splits the first lines most evenly: in the most lines, then the most often.
fn likely_delimiter(text: &str) -> u8 {
    let lines: Vec<&str> = text.lines().take(20).filter(|line| !line.trim().is_empty()).collect();
    let score = |delimiter: u8| {
        let mut quoted = false;
        let mut count = |line: &&str| {
            let mut found = 0usize;
            for byte in line.bytes() {
                quoted ^= byte == b'"';
                found += usize::from(byte == delimiter && !quoted);
            }
            found
        };
        let counts: Vec<usize> = lines.iter().map(&mut count).collect();
        let first = counts.first().copied().unwrap_or(0);
        let like_the_first = counts.iter().filter(|&&count| count == first && first > 0).count();
        (like_the_first, first)
    };
    // The first of equals: a comma unless another does better.
    let mut best = (b',', score(b','));
    for delimiter in DELIMITERS.into_iter().skip(1) {
        let score = score(delimiter);
        if score > best.1 {
            best = (delimiter, score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_as_markdown() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(markdown(text, None).as_deref(), expected, "{text}")
        };
        check("a,b\n1,2\n", Some("| a | b |\n| --- | --- |\n| 1 | 2 |"));
        check(
            "name;price\nx;1,50\ny;2,75",
            Some("| name | price |\n| --- | --- |\n| x | 1,50 |\n| y | 2,75 |"),
        );
        check("a\tb\n\"x\ty\"\tz", Some("| a | b |\n| --- | --- |\n| x\ty | z |"));
        check(
            "a,b\n\"x|y\nz\",\"say \"\"hi\"\"\"",
            Some("| a | b |\n| --- | --- |\n| x\\|y<br>z | say \"hi\" |"),
        );
        check("a,b,c\n1\n", Some("| a | b | c |\n| --- | --- | --- |\n| 1 |  |  |"));
        check("only one column\nof text", None);
        check("", None);
    }

    #[test]
    fn one_long_row_does_not_blow_up_the_rest() {
        let text = format!("{}\n{}", ",".repeat(50_000), "a\n".repeat(50_000));
        assert_eq!(markdown(&text, None), None);
    }
}
