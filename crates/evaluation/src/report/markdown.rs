//! A report as Markdown, for repositories and papers.

use super::Report;
use super::sections::{headline, sections};

/// The report as Markdown.
#[must_use]
pub fn to_markdown(report: &Report) -> String {
    let mut text = format!("# {}\n", escaped(&headline(report)));
    for section in sections(report) {
        text.push_str(&format!("\n## {}\n\n", section.title));
        let columns = if section.columns.is_empty() { vec!["", ""] } else { section.columns };
        text.push_str(&line(columns.iter().map(|name| (*name).to_owned())));
        text.push_str(&line(columns.iter().map(|_| "---".to_owned())));
        for row in section.rows {
            text.push_str(&line(row.iter().map(|cell| escaped(cell))));
        }
        if let Some(note) = section.note {
            text.push_str(&format!("\n{}\n", escaped(&note)));
        }
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn escaped(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    // `](` is what makes a link or a picture.
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace("](", "]\\(")
        .replace('<', "&lt;")
        .replace('*', "\\*")
}
