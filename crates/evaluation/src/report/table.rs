//! A report as plain text, for terminals.

use super::Report;
use super::sections::{Section, headline, sections};

/// The report as aligned columns.
#[must_use]
pub fn to_table(report: &Report) -> String {
    let mut text = plain(&headline(report)) + "\n";
    for section in sections(report) {
        text.push_str(&format!("\n{}\n", section.title));
        text.push_str(&aligned(&section));
        if let Some(note) = section.note {
            text.push_str(&format!("  {}\n", plain(&note)));
        }
    }
    text
}

fn aligned(section: &Section) -> String {
    let header: Vec<String> = section.columns.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<&[String]> = std::iter::once(&header)
        .filter(|header| !header.is_empty())
        .chain(&section.rows)
        .map(Vec::as_slice)
        .collect();
    aligned_columns(&rows).lines().map(|line| format!("  {line}\n")).collect()
}

/// Rows of cells as lines, each column as wide as its widest cell.
#[must_use]
pub fn aligned_columns<R: AsRef<[String]>>(rows: &[R]) -> String {
    let rows = || rows.iter().map(AsRef::as_ref);
    let columns = rows().map(<[String]>::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{:<width$}", plain(cell), width = *width))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Without anything that a terminal obeys.
fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
