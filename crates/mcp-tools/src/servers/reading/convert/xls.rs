//! Excel workbooks of the years from 1997 to 2003 (XLS, BIFF8).
//!
//! Decides which records of a workbook have text: cells with their texts, numbers and the kept results of formulas.
//! Older formats are left to other programs.

use super::cfb::{CompoundFile, f64_at, u16_at, u32_at};
use super::layout::Blocks;
use super::spreadsheet::{NumberKind, Sheet, kind_of_format, number};
use super::{Converted, Converter, Problem, Source};

pub(super) struct Xls;

/// A record, its continuations apart: a text that goes over a border says anew how wide its letters are.
struct Record {
    kind: u16,
    pieces: Vec<Vec<u8>>,
}

impl Converter for Xls {
    fn name(&self) -> &'static str {
        "an Excel workbook (XLS)"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let broken = |problem: &str| Problem::Broken(problem.to_owned());
        let file = CompoundFile::open(source.bytes).ok_or_else(|| broken("its container is damaged"))?;
        let stream = file
            .read("Workbook")
            .ok_or_else(|| broken("it has no workbook in the format of Excel 97 or later"))?;
        let globals = records(&stream, 0);
        let mut workbook = Workbook::default();
        for record in &globals {
            workbook.learn(record)?;
        }
        if workbook.sheets.is_empty() {
            return Err(broken("it has no sheets"));
        }
        let mut blocks = Blocks::default();
        for (name, offset, hidden) in &workbook.sheets {
            let mut sheet = Sheet::default();
            workbook.read_sheet(&records(&stream, *offset), &mut sheet).map_err(Problem::TooLarge)?;
            let note = if *hidden { " (hidden)" } else { "" };
            sheet.write(&format!("{name}{note}"), &mut blocks);
        }
        Ok(Converted { markdown: blocks.finish(), title: None })
    }
}

/// The records from an offset to the end of the part that begins there.
fn records(stream: &[u8], offset: usize) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut at = offset;
    let mut depth = 0i32;
    while let (Some(kind), Some(length)) = (u16_at(stream, at), u16_at(stream, at + 2)) {
        let from = at + 4;
        let Some(data) = stream.get(from..from + usize::from(length)) else { break };
        at = from + usize::from(length);
        match kind {
            0x0809 => depth += 1,
            0x000A => depth -= 1,
            // CONTINUE
            0x003C => {
                if let Some(record) = records.last_mut() {
                    record.pieces.push(data.to_vec());
                }
                continue;
            }
            _ => {}
        }
        // What is inside of a chart on the sheet is not of the sheet.
        if depth <= 1 {
            records.push(Record { kind, pieces: vec![data.to_vec()] });
        }
        if depth <= 0 && kind == 0x000A {
            break;
        }
    }
    records
}

#[derive(Default)]
struct Workbook {
    /// Name, offset, whether it is hidden.
    sheets: Vec<(String, usize, bool)>,
    texts: Vec<String>,
    formats: Vec<(u16, NumberKind)>,
    cell_formats: Vec<u16>,
    since_1904: bool,
}

impl Workbook {
    fn learn(&mut self, record: &Record) -> Result<(), Problem> {
        let Some(data) = record.pieces.first() else { return Ok(()) };
        match record.kind {
            // FILEPASS
            0x002F => return Err(Problem::Encrypted),
            // DATEMODE
            0x0022 => self.since_1904 = u16_at(data, 0) == Some(1),
            // BOUNDSHEET; charts and macros are sheets of other kinds
            0x0085 => {
                if let (Some(offset), Some(0)) = (u32_at(data, 0), data.get(5)) {
                    let name = Text::new(&record.pieces, 6).short().unwrap_or_default();
                    let hidden = data.get(4).is_some_and(|state| state & 3 != 0);
                    self.sheets.push((name, offset as usize, hidden));
                }
            }
            // SST
            0x00FC => {
                let count = u32_at(data, 4).unwrap_or(0);
                let mut text = Text::new(&record.pieces, 8);
                for _ in 0..count {
                    let Some(found) = text.rich() else { break };
                    self.texts.push(found);
                }
            }
            // FORMAT
            0x041E => {
                if let Some(id) = u16_at(data, 0) {
                    let code = Text::new(&record.pieces, 2).rich().unwrap_or_default();
                    self.formats.push((id, kind_of_format(&code)));
                }
            }
            // XF
            0x00E0 => self.cell_formats.push(u16_at(data, 2).unwrap_or(0)),
            _ => {}
        }
        Ok(())
    }

    fn number(&self, value: f64, style: u16) -> String {
        let format = self.cell_formats.get(usize::from(style)).copied().unwrap_or(0);
        let own = self.formats.iter().find(|(id, _)| *id == format).map(|(_, kind)| *kind);
        let kind = own.unwrap_or_else(|| NumberKind::of_built_in(i64::from(format)));
        number(value, kind, self.since_1904, &value.to_string())
    }

    fn read_sheet(&self, records: &[Record], sheet: &mut Sheet) -> Result<(), String> {
        let mut formula_at = None;
        for record in records {
            let Some(data) = record.pieces.first() else { continue };
            let place = || Some((u32::from(u16_at(data, 0)?) + 1, u32::from(u16_at(data, 2)?) + 1));
            let Some((row, column)) = place() else { continue };
            let style = u16_at(data, 4).unwrap_or(0);
            match record.kind {
                // LABELSST
                0x00FD => {
                    let text = u32_at(data, 6).and_then(|at| self.texts.get(at as usize));
                    sheet.set(row, column, text.cloned().unwrap_or_default())?;
                }
                // LABEL
                0x0204 => sheet.set(row, column, Text::new(&record.pieces, 6).rich().unwrap_or_default())?,
                // NUMBER
                0x0203 => sheet.set(
                    row,
                    column,
                    f64_at(data, 6).map(|value| self.number(value, style)).unwrap_or_default(),
                )?,
                // RK
                0x027E => sheet.set(
                    row,
                    column,
                    u32_at(data, 6).map(|packed| self.number(unpacked(packed), style)).unwrap_or_default(),
                )?,
                // MULRK: a row's cells side by side
                0x00BD => {
                    let mut at = 4;
                    let mut column = column;
                    while at + 6 <= data.len().saturating_sub(2) {
                        if let (Some(style), Some(packed)) = (u16_at(data, at), u32_at(data, at + 2)) {
                            sheet.set(row, column, self.number(unpacked(packed), style))?;
                        }
                        at += 6;
                        column += 1;
                    }
                }
                // BOOLERR
                0x0205 => {
                    let (value, is_error) = (data.get(6).copied().unwrap_or(0), data.get(7) == Some(&1));
                    sheet.set(row, column, truth(value, is_error))?;
                }
                // FORMULA
                0x0006 => {
                    let result = data.get(6..14).unwrap_or_default();
                    match (result.get(6..8), result.first()) {
                        (Some([0xFF, 0xFF]), Some(0)) => formula_at = Some((row, column)),
                        (Some([0xFF, 0xFF]), Some(1)) => sheet.set(row, column, truth(result[2], false))?,
                        (Some([0xFF, 0xFF]), Some(2)) => sheet.set(row, column, truth(result[2], true))?,
                        (Some([0xFF, 0xFF]), _) => {}
                        _ => sheet.set(
                            row,
                            column,
                            f64_at(data, 6).map(|value| self.number(value, style)).unwrap_or_default(),
                        )?,
                    }
                }
                // STRING: the text that the formula before gave
                0x0207 => {
                    if let Some((row, column)) = formula_at.take() {
                        sheet.set(row, column, Text::new(&record.pieces, 0).rich().unwrap_or_default())?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn truth(value: u8, is_error: bool) -> String {
    let text = match (is_error, value) {
        (false, 0) => "FALSE",
        (false, _) => "TRUE",
        (true, 0x00) => "#NULL!",
        (true, 0x07) => "#DIV/0!",
        (true, 0x0F) => "#VALUE!",
        (true, 0x17) => "#REF!",
        (true, 0x1D) => "#NAME?",
        (true, 0x24) => "#NUM!",
        (true, _) => "#N/A",
    };
    text.to_owned()
}

/// A number of thirty bits: the upper half of a floating-point number or a whole one, a hundredth of it or not.
fn unpacked(packed: u32) -> f64 {
    let value = if packed & 2 != 0 {
        f64::from(packed.cast_signed() >> 2)
    } else {
        f64::from_bits(u64::from(packed & 0xFFFF_FFFC) << 32)
    };
    if packed & 1 != 0 { value / 100.0 } else { value }
}

/// Reads texts out of the pieces of a record.
struct Text<'a> {
    pieces: &'a [Vec<u8>],
    piece: usize,
    at: usize,
}

impl<'a> Text<'a> {
    fn new(pieces: &'a [Vec<u8>], at: usize) -> Self {
        Self { pieces, piece: 0, at }
    }

    fn byte(&mut self) -> Option<u8> {
        loop {
            let piece = self.pieces.get(self.piece)?;
            if let Some(byte) = piece.get(self.at) {
                self.at += 1;
                return Some(*byte);
            }
            self.piece += 1;
            self.at = 0;
        }
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    fn skip(&mut self, mut count: usize) -> Option<()> {
        while count > 0 {
            let left = self.pieces.get(self.piece)?.len().saturating_sub(self.at);
            let step = left.min(count);
            self.at += step;
            count -= step;
            if count > 0 {
                self.piece += 1;
                self.at = 0;
            }
        }
        Some(())
    }

    /// A text whose length is a byte.
    fn short(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        let flags = self.byte()?;
        self.letters(length, flags & 1 != 0)
    }

    /// A text whose length is a word, with what may follow it.
    fn rich(&mut self) -> Option<String> {
        let length = usize::from(self.word()?);
        let flags = self.byte()?;
        let runs = if flags & 8 != 0 { usize::from(self.word()?) } else { 0 };
        let phonetic =
            if flags & 4 != 0 { u32::from(self.word()?) | u32::from(self.word()?) << 16 } else { 0 };
        let text = self.letters(length, flags & 1 != 0)?;
        // What follows the last text may be cut.
        let _ = self.skip(runs * 4 + phonetic as usize);
        Some(text)
    }

    fn letters(&mut self, length: usize, mut wide: bool) -> Option<String> {
        let mut units: Vec<u16> = Vec::with_capacity(length);
        while units.len() < length {
            let piece = self.pieces.get(self.piece)?;
            if self.at >= piece.len() {
                self.piece += 1;
                self.at = 0;
                wide = self.byte()? & 1 != 0;
                continue;
            }
            units.push(if wide { self.word()? } else { u16::from(self.byte()?) });
        }
        Some(String::from_utf16_lossy(&units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers() {
        assert_eq!(unpacked(0x3FF0_0000), 1.0);
        assert_eq!(unpacked(4 << 2 | 2), 4.0);
        assert_eq!(unpacked(1234 << 2 | 3), 12.34);
        assert_eq!(unpacked((-5i32 << 2 | 2).cast_unsigned()), -5.0);
    }

    #[test]
    fn a_text_over_a_border_changes_its_width() {
        let pieces = [vec![4, 0, 0, b'a', b'b'], vec![1, b'c', 0, 0x3c, 0x04]];
        assert_eq!(Text::new(&pieces, 0).rich().as_deref(), Some("abcм"));
        assert_eq!(Text::new(&[vec![200, 0, 1, b'a']], 0).rich(), None);
    }
}
