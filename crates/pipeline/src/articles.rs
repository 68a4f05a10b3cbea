//! The documents that come with the program: short articles, and the project's own documentation.

use mcp_tools::servers::library::Document;

use crate::config::ConfTree;

/// The project's own documentation, as documents of the library.
const DOCUMENTATION: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../README.md")),
    ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
    ("core-protocol.md", include_str!("../../core-protocol/README.md")),
    ("llm-providers.md", include_str!("../../llm-providers/README.md")),
    ("mcp-tools.md", include_str!("../../mcp-tools/README.md")),
    ("answer-generator.md", include_str!("../../answer-generator/README.md")),
    ("orchestrator.md", include_str!("../../orchestrator/README.md")),
    ("pipeline.md", include_str!("../README.md")),
];

/// All of them, those of the documentation without their examples. An article of the user's own takes the place of one of the same name.
#[must_use]
pub fn shipped(conf: &ConfTree) -> Vec<Document> {
    let mut documents = Vec::new();
    for entry in conf.list("library") {
        let Some(id) = entry.name.strip_suffix(".md") else { continue };
        let Ok(Some(file)) = conf.read("library", &entry.name) else { continue };
        if let Some(text) = file.text() {
            documents.push(document(id, text, format!("fathom library: {}", entry.name)));
        }
    }
    for (name, text) in DOCUMENTATION {
        let id = name.strip_suffix(".md").unwrap_or(name).to_ascii_lowercase();
        let prose = without_code(text);
        documents.push(document(&format!("docs-{id}"), &prose, format!("fathom documentation: {name}")));
    }
    documents
}

/// The text without its code blocks: what an example asks is not what a document says.
fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

fn document(id: &str, text: &str, source: String) -> Document {
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(id).trim().to_owned();
    Document { id: id.to_owned(), title, body: text.to_owned(), source, license: None, group: None }
}
