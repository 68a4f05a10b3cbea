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
    for (index, row) in reader.records().enumerate() {
        records.push(match row {
            Ok(row) => {
                let line =
                    row.position().map_or(index + 2, |place| usize::try_from(place.line()).unwrap_or(0));
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
                let line = error.position().map_or(index + 2, |at| usize::try_from(at.line()).unwrap_or(0));
                Err(BadRecord { file: name.to_owned(), line, problem: error.to_string() })
            }
        });
    }
    Ok(records)
}

fn fields(header: &[String], row: &csv::StringRecord) -> Map<String, Value> {
    let value = |field: &str| if field.is_empty() { Value::Null } else { Value::String(field.to_owned()) };
    header.iter().zip(row).map(|(name, field)| (name.clone(), value(field))).collect()
}
