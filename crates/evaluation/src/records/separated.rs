//! Comma- and tab-separated files with a header. All values are texts; an empty one is null.

use serde_json::{Map, Value};

use super::{BadRecord, Record, RecordsError};

pub(super) fn records(
    name: &str,
    bytes: &[u8],
    delimiter: u8,
) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    let broken = |problem: String| RecordsError::Broken { file: name.to_owned(), problem };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(bytes);
    let header: Vec<String> = reader
        .headers()
        .map_err(|error| broken(format!("the header cannot be read: {error}")))?
        .iter()
        .map(|field| field.trim().to_owned())
        .collect();
    let mut records = Vec::new();
    let mut lines = Lines { bytes, at: 0, line: 1 };
    for row in reader.records() {
        records.push(match row {
            Ok(row) => {
                let line = lines.of(row.position());
                if row.len() == header.len() {
                    Ok(Record { line, fields: fields(&header, &row) })
                } else {
                    Err(BadRecord {
                        file: name.to_owned(),
                        line,
                        problem: format!("{} fields, the header has {}", row.len(), header.len()),
                    })
                }
            }
            Err(error) => {
                let line = lines.of(error.position());
                Err(BadRecord { file: name.to_owned(), line, problem: error.to_string() })
            }
        });
    }
    Ok(records)
}

/// Counts lines. The reader's own count is one short where lines end with CR LF, and takes empty lines before a record
/// for its beginning.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line on which a record begins; records are asked for in their order.
    fn of(&mut self, place: Option<&csv::Position>) -> usize {
        let begin =
            place.and_then(|place| usize::try_from(place.byte()).ok()).unwrap_or(self.at).max(self.at);
        let is_between = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let empty =
            self.bytes.get(begin..).unwrap_or_default().iter().take_while(|byte| is_between(byte)).count();
        let passed = self.bytes.get(self.at..begin + empty).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = begin + empty;
        self.line
    }
}

fn fields(header: &[String], row: &csv::StringRecord) -> Map<String, Value> {
    let value = |field: &str| if field.is_empty() { Value::Null } else { Value::String(field.to_owned()) };
    header.iter().zip(row).map(|(name, field)| (name.clone(), value(field))).collect()
}
