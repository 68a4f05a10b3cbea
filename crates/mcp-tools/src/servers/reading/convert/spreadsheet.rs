//! Sheets of all spreadsheet formats.
//!
//! Decides how numbers, dates and percentages are written and how much of a sheet is kept.

use std::collections::BTreeMap;

use super::layout::{Blocks, is_mostly_empty, one_line, table};

/// Cells of a sheet.
const MOST_CELLS: usize = 2_000_000;
/// Bytes of a sheet's text.
const MOST_TEXT: usize = 64 << 20;

/// The cells of a sheet that have text, by row and column.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    cells: BTreeMap<(u32, u32), String>,
    text: usize,
}

impl Sheet {
    /// Sets a cell.
    pub(super) fn set(&mut self, row: u32, column: u32, text: String) -> Result<(), String> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.text += text.len();
        self.cells.insert((row, column), text);
        if self.cells.len() > MOST_CELLS || self.text > MOST_TEXT {
            return Err(format!("a sheet has more than {MOST_CELLS} cells or {MOST_TEXT} bytes of text"));
        }
        Ok(())
    }

    /// Writes the sheet under its name: as a table, or, where that would be blanks for the most part, a line a row.
    pub(super) fn write(self, name: &str, out: &mut Blocks) {
        out.heading(2, name);
        let mut columns: Vec<u32> = self.cells.keys().map(|(_, column)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut filled: Vec<u32> = self.cells.keys().map(|(row, _)| *row).collect();
        filled.dedup();
        let sparse = is_mostly_empty(columns.len(), filled.len(), self.cells.len());
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut current = None;
        for ((row, column), text) in self.cells {
            if current != Some(row) {
                current = Some(row);
                rows.push(Vec::new());
            }
            let at = columns.binary_search(&column).unwrap_or(0);
            if let Some(line) = rows.last_mut() {
                if sparse {
                    line.push(one_line(&text));
                    continue;
                }
                line.resize(at.max(line.len()), String::new());
                line.push(text);
            }
        }
        if sparse {
            let lines: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
            out.push(&lines.join("\n"));
        } else {
            out.push(&table(&rows));
        }
    }
}

/// What a number is, by its format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NumberKind {
    #[default]
    Plain,
    Date,
    Time,
    DateTime,
    Percent,
}

impl NumberKind {
    /// Of a format that Excel knows by number.
    pub(super) fn of_built_in(id: i64) -> Self {
        match id {
            9 | 10 => Self::Percent,
            14..=17 | 27..=31 | 36 | 50..=58 => Self::Date,
            18..=21 | 32..=35 | 45..=47 => Self::Time,
            22 => Self::DateTime,
            _ => Self::Plain,
        }
    }
}

/// What numbers of a format are: letters outside of quotes and brackets tell.
pub(super) fn kind_of_format(format: &str) -> NumberKind {
    let (mut date, mut time, mut percent) = (false, false, false);
    let mut characters = format.split(';').next().unwrap_or_default().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                characters.by_ref().find(|next| *next == '"');
            }
            '\\' | '_' | '*' => {
                characters.next();
            }
            '[' => {
                // `[h]` counts hours; the others are colours and places.
                let inner: String = characters.by_ref().take_while(|next| *next != ']').collect();
                time |= matches!(inner.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss");
            }
            'y' | 'Y' | 'd' | 'D' => date = true,
            'h' | 'H' | 's' | 'S' => time = true,
            '%' => percent = true,
            _ => {}
        }
    }
    match (date, time, percent) {
        (true, true, _) => NumberKind::DateTime,
        (true, false, _) => NumberKind::Date,
        (false, true, _) => NumberKind::Time,
        (false, false, true) => NumberKind::Percent,
        (false, false, false) => NumberKind::Plain,
    }
}

/// A number as it is meant. `written` is how the file has it, which is kept where nothing is to be converted.
pub(super) fn number(value: f64, kind: NumberKind, since_1904: bool, written: &str) -> String {
    match kind {
        NumberKind::Plain => plain(value, written),
        NumberKind::Percent => format!("{}%", plain(round(value * 100.0), "")),
        NumberKind::Date | NumberKind::Time | NumberKind::DateTime => {
            moment(value, kind, since_1904).unwrap_or_else(|| plain(value, written))
        }
    }
}

/// Fifteen digits, as spreadsheets have them: sums of decimal fractions do not end in 0000000000004.
fn round(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

fn plain(value: f64, written: &str) -> String {
    if !value.is_finite() {
        return written.to_owned();
    }
    let rounded = round(value);
    if rounded != 0.0 && !(1e-7..1e17).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// Days since the end of 1899 (or the start of 1904) as a date, fractions of a day as a time.
fn moment(value: f64, kind: NumberKind, since_1904: bool) -> Option<String> {
    if !(0.0..2_958_466.0).contains(&value) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above: a few billion")]
    let seconds = (value * 86_400.0).round() as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if kind == NumberKind::Time {
        // More than a day is a duration.
        return Some(if days > 0 {
            format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        } else {
            clock
        });
    }
    // Excel counts a 29th of February 1900 that was none.
    let days = match (since_1904, days) {
        (true, days) => days + 1462,
        (false, days) if days < 60 => days + 1,
        (false, days) => days,
    };
    // Days since 1970-01-01.
    let (year, month, day) = civil(days - 25_569);
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(if rest == 0 { date } else { format!("{date} {clock}") })
}

/// Year, month and day of a day since 1970, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from the first of March of year 0, so that leap days end years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_strewn_over_a_sheet_are_lines() {
        let mut sheet = Sheet::default();
        for at in 1..=16_384 {
            sheet.set(at, at, format!("a\n{at}")).expect("room");
        }
        sheet.set(16_384, 1, "b".to_owned()).expect("room");
        let mut blocks = Blocks::default();
        sheet.write("S", &mut blocks);
        let text = blocks.finish();
        assert!(text.starts_with("## S\n\na 1\na 2\n"), "{}", &text[..40]);
        assert!(text.ends_with("\na 16383\nb a 16384"), "{}", &text[text.len() - 40..]);
    }

    #[test]
    fn numbers_are_written_as_they_are_meant() {
        let check = |value: f64, kind: NumberKind, expected: &str| {
            assert_eq!(number(value, kind, false, ""), expected, "{value} {kind:?}");
        };
        check(3.0, NumberKind::Plain, "3");
        check(0.1 + 0.2, NumberKind::Plain, "0.3");
        check(1e300, NumberKind::Plain, "1e300");
        check(0.2534, NumberKind::Percent, "25.34%");
        check(1.0, NumberKind::Date, "1900-01-01");
        check(60.5, NumberKind::DateTime, "1900-02-28 12:00:00");
        check(61.0, NumberKind::Date, "1900-03-01");
        check(45_292.0, NumberKind::Date, "2024-01-01");
        check(45_351.75, NumberKind::DateTime, "2024-02-29 18:00:00");
        check(0.25, NumberKind::Time, "06:00:00");
        check(1.5, NumberKind::Time, "36:00:00");
        check(-1.0, NumberKind::Date, "-1");
        assert_eq!(number(0.0, NumberKind::Date, true, ""), "1904-01-01");
    }

    #[test]
    fn formats_tell_what_numbers_are() {
        for (format, expected) in [
            ("yyyy\\-mm\\-dd", NumberKind::Date),
            ("[$-409]d/m/yy h:mm", NumberKind::DateTime),
            ("0.00%", NumberKind::Percent),
            ("[h]:mm:ss", NumberKind::Time),
            ("#,##0.00 \"days\"", NumberKind::Plain),
            ("[Red]0.0", NumberKind::Plain),
            ("General", NumberKind::Plain),
        ] {
            assert_eq!(kind_of_format(format), expected, "{format}");
        }
    }
}
