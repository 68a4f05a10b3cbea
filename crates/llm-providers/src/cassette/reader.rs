//! Reads a cassette back. Decides what is tolerated: a torn last line, lines of kinds that are not known yet.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::{CASSETTE_VERSION, CassetteError, Header, Line, MODEL, ModelRequest, canonical};

/// What a cassette holds.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) header: Header,
    pub(super) parts: Vec<Value>,
    /// Parts by their canonical text.
    pub(super) ids: HashMap<String, usize>,
    pub(super) exchanges: Vec<Exchange>,
}

/// One exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Its line, from 1.
    pub(super) line: usize,
    pub(super) of: String,
    pub(super) name: String,
    pub(super) request: Asked,
    pub(super) response: Value,
}

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    Model(ModelRequest),
    Other(Value),
}

pub(super) fn read(path: &Path) -> Result<Recorded, CassetteError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|error| CassetteError::Read { path: name.clone(), detail: error.to_string() })?;
    // What is torn inside a character is torn in the last line.
    parse(&String::from_utf8_lossy(&bytes), &name)
}

pub(super) fn parse(text: &str, path: &str) -> Result<Recorded, CassetteError> {
    let wrong = |line: usize, detail: String| CassetteError::Format { path: path.to_owned(), line, detail };
    let mut lines = text.split_inclusive('\n').enumerate().map(|(index, line)| (index + 1, line));
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let header = match serde_json::from_str::<Value>(first) {
        Ok(value) if value["kind"] == "cassette" && value["version"] != CASSETTE_VERSION => {
            return Err(wrong(1, format!("it is of version {}", value["version"])));
        }
        Ok(value) => match serde_json::from_value(value) {
            Ok(Line::Cassette { header, .. }) => *header,
            Ok(_) => return Err(wrong(1, "the header is missing".to_owned())),
            Err(error) => return Err(wrong(1, error.to_string())),
        },
        Err(error) => return Err(wrong(1, error.to_string())),
    };
    let mut recorded = Recorded { header, parts: Vec::new(), ids: HashMap::new(), exchanges: Vec::new() };
    for (number, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Line>(line) {
            Ok(line) => recorded.add(line, number).map_err(|detail| wrong(number, detail))?,
            Err(_) if !line.ends_with('\n') => {
                tracing::debug!(path, number, "the last line of the cassette is torn and passed over");
            }
            Err(error) => return Err(wrong(number, error.to_string())),
        }
    }
    Ok(recorded)
}

impl Recorded {
    fn add(&mut self, line: Line, number: usize) -> Result<(), String> {
        match line {
            Line::Cassette { .. } => return Err("a second header".to_owned()),
            Line::Part { id, value } => {
                if id != self.parts.len() {
                    return Err(format!("part {id} comes where part {} should", self.parts.len()));
                }
                // Parts that differed only in secrets are the same part here.
                self.ids.entry(canonical(&value)).or_insert(id);
                self.parts.push(value);
            }
            Line::Exchange { of, name, request, response } => {
                let request = if of == MODEL {
                    let request: ModelRequest =
                        serde_json::from_value(request).map_err(|error| error.to_string())?;
                    Asked::Model(self.with_first_ids(request)?)
                } else {
                    Asked::Other(request)
                };
                self.exchanges.push(Exchange { line: number, of, name, request, response });
            }
        }
        Ok(())
    }

    /// The request with each part replaced by the first of the same content.
    fn with_first_ids(&self, mut request: ModelRequest) -> Result<ModelRequest, String> {
        let ids = std::iter::once(&mut request.system).chain(&mut request.messages).chain(&mut request.tools);
        for id in ids {
            let value = self.parts.get(*id).ok_or_else(|| format!("part {id} is missing"))?;
            *id = self.ids.get(&canonical(value)).copied().unwrap_or(*id);
        }
        Ok(request)
    }
}
