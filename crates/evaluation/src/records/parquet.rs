//! Parquet files, as dataset hubs keep them. Bytes that are no text become base64.

use base64::Engine as _;
use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Number, Value};

use super::{BadRecord, Record, RecordsError};

/// The reader panics on some damaged files; that is an error like any other here.
pub(super) fn records(name: &str, bytes: Vec<u8>) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    std::panic::catch_unwind(|| read(name, bytes)).unwrap_or_else(|_| {
        Err(RecordsError::Broken { file: name.to_owned(), problem: "the file is damaged".to_owned() })
    })
}

fn read(name: &str, bytes: Vec<u8>) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    let broken = |error: parquet::errors::ParquetError| RecordsError::Broken {
        file: name.to_owned(),
        problem: format!(
            "{error} (snappy, gzip and uncompressed files can be read; others can be converted with \
             `python3 -c \"import sys, pyarrow.parquet as p; p.write_table(p.read_table(sys.argv[1]), sys.argv[2], \
             compression='snappy')\" IN.parquet OUT.parquet`)"
        ),
    };
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(broken)?;
    let rows = reader.get_row_iter(None).map_err(broken)?;
    let mut records = Vec::new();
    for (index, row) in rows.enumerate() {
        // After a broken page nothing more can be read.
        let row = row.map_err(broken)?;
        records.push(Ok(Record { line: index + 1, fields: object(&row) }));
    }
    Ok(records)
}

fn object(row: &Row) -> Map<String, Value> {
    row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::Bool(*value),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::Float(number) => Number::from_f64(f64::from(*number)).map_or(Value::Null, Value::Number),
        Field::Double(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Field::Str(text) => Value::String(text.clone()),
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) => Value::String(text.to_owned()),
            Err(_) => Value::String(base64::engine::general_purpose::STANDARD.encode(bytes.data())),
        },
        Field::Group(row) => Value::Object(object(row)),
        Field::ListInternal(list) => Value::Array(list.elements().iter().map(value).collect()),
        other => Value::String(other.to_string()),
    }
}
