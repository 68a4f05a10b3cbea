//! JSON lines, and JSON files that are a list of objects or an object of lists and objects.

use serde_json::Value;

use super::{BadRecord, Record, RecordsError};

/// One object a line; empty lines are none.
pub(super) fn lines(name: &str, bytes: &[u8]) -> Vec<Result<Record, BadRecord>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| {
            let bad = |problem| BadRecord { file: name.to_owned(), line: index + 1, problem };
            match serde_json::from_slice(line) {
                Ok(Value::Object(fields)) => Ok(Record { line: index + 1, fields }),
                Ok(_) => Err(bad("not a JSON object".to_owned())),
                Err(error) => Err(bad(format!("no JSON: {error}"))),
            }
        })
        .collect()
}

/// A list of objects, or an object with exactly one list of objects in it (`{"data": […]}`).
pub(super) fn whole(name: &str, bytes: &[u8]) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    let broken = |problem: String| RecordsError::Broken { file: name.to_owned(), problem };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| broken(format!("no JSON: {error}")))?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => {
            let lists: Vec<String> =
                object.iter().filter(|(_, value)| value.is_array()).map(|(key, _)| key.clone()).collect();
            match lists.as_slice() {
                [only] => object.remove(only).and_then(|list| match list {
                    Value::Array(list) => Some(list),
                    _ => None,
                }),
                _ => None,
            }
            .ok_or_else(|| broken("neither a list of records nor an object with one such list".to_owned()))?
        }
        _ => return Err(broken("neither a list of records nor an object with one such list".to_owned())),
    };
    Ok(list
        .into_iter()
        .enumerate()
        .map(|(index, value)| match value {
            Value::Object(fields) => Ok(Record { line: index + 1, fields }),
            _ => Err(BadRecord {
                file: name.to_owned(),
                line: index + 1,
                problem: "not a JSON object".to_owned(),
            }),
        })
        .collect())
}
