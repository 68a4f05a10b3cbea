//! The tool of `tool-reading`.
//!
//! Decides where a document may come from and how much of a long one is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Document, ReadingOptions, to_markdown};
use crate::servers::files;

#[derive(Debug, Deserialize, JsonSchema)]
struct Convert {
    /// The path of the document, or its file: or http(s) address.
    uri: String,
    /// The character of the text to go on from, where an earlier call showed only a part.
    offset: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct ReadingTools {
    options: Arc<ReadingOptions>,
}

#[tool_router]
impl ReadingTools {
    pub(super) fn new(options: Arc<ReadingOptions>) -> Self {
        Self { options }
    }

    #[tool(
        description = "Reads a document and returns its text as Markdown: PDF, Word, PowerPoint, Excel, OpenDocument, \
                       EPUB, ZIP archives of such files, HTML, CSV, JSON, XML, plain text, source code. A long \
                       document comes in parts."
    )]
    async fn convert_to_markdown(
        &self,
        Parameters(Convert { uri, offset }): Parameters<Convert>,
    ) -> Result<String, String> {
        let options = Arc::clone(&self.options);
        let offset = usize::try_from(offset.unwrap_or(0)).unwrap_or(usize::MAX);
        let page = options.page;
        let uri = uri.trim().to_owned();
        let fetched = match is_remote(&uri) {
            true => Some(fetch(&uri, &options).await?),
            false => None,
        };
        let read = tokio::task::spawn_blocking(move || match fetched {
            Some((bytes, name)) => to_markdown(&bytes, &name).map_err(|error| format!("{error}.")),
            None => read(&uri, &options),
        })
        .await;
        let read = read.map_err(|_| "The document could not be read: its reader failed.".to_owned());
        Ok(part(&read.flatten()?, offset, page))
    }
}

#[tool_handler(name = "tool-reading")]
impl ServerHandler for ReadingTools {}

fn is_remote(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(scheme, _)| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// The bytes behind an address, and a name for them.
#[cfg(feature = "egress")]
async fn fetch(uri: &str, options: &ReadingOptions) -> Result<(Vec<u8>, String), String> {
    let Some(egress) = &options.egress else { return Err(only_local(uri)) };
    let fetched = files::fetch(egress, uri, options.file_limit).await?;
    let kind = fetched.content_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    // An ending that is part of a word in an address is no format; what the server says of its text counts more.
    let told = [("html", "html"), ("text/csv", "csv"), ("json", "json"), ("markdown", "md")];
    let ending = told.iter().find(|(word, _)| kind.contains(word)).map(|(_, ending)| *ending);
    let name = if fetched.name.is_empty() { "document".to_owned() } else { fetched.name };
    Ok((fetched.body, ending.map_or(name.clone(), |ending| format!("{name}.{ending}"))))
}

#[cfg(not(feature = "egress"))]
async fn fetch(uri: &str, _: &ReadingOptions) -> Result<(Vec<u8>, String), String> {
    Err(only_local(uri))
}

fn only_local(uri: &str) -> String {
    format!(
        "`{uri}` was not fetched: this tool reads local files only. Use a tool that reads web pages for it."
    )
}

fn read(uri: &str, options: &ReadingOptions) -> Result<Document, String> {
    let path = local_path(uri.trim())?;
    let (bytes, path) = files::read(&path, &options.allowed_roots, options.file_limit)?;
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    to_markdown(&bytes, &name).map_err(|error| format!("{error}."))
}

/// The path that a model means.
fn local_path(uri: &str) -> Result<PathBuf, String> {
    match uri.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
            Err(only_local(uri))
        }
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => {
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            };
            if !path.starts_with('/') {
                return Err(format!(
                    "`{uri}` names another machine; give a path on this one, like file:///dir/name."
                ));
            }
            Ok(PathBuf::from(super::convert::percent::percent_decoded(path)))
        }
        _ if uri.is_empty() => Err("`uri` is empty; give the path of a document.".into()),
        _ => Ok(Path::new(uri).to_owned()),
    }
}

/// The part from `offset`, with a note where it is not the whole.
fn part(document: &Document, offset: usize, page: usize) -> String {
    let text = &document.markdown;
    let total = text.chars().count();
    if total == 0 {
        return "(The document is empty.)".into();
    }
    if offset == 0 && total <= page {
        return text.clone();
    }
    if offset >= total {
        return format!("[The document has {total} characters, so there is nothing from {offset} on.]");
    }
    let end = offset.saturating_add(page).min(total);
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let next = if end < total { format!(" Call again with offset {end} for more.") } else { String::new() };
    format!(
        "[The document has {total} characters; shown are {offset} to {end}.{next}]\n\n{}",
        &text[byte(offset)..byte(end)]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_are_paths() {
        let check = |uri: &str, expected: Option<&str>| {
            assert_eq!(local_path(uri).ok(), expected.map(PathBuf::from), "{uri}");
        };
        check("/a/b c.txt", Some("/a/b c.txt"));
        check("notes: today.md", Some("notes: today.md"));
        check("file:///a/b%20c%2.txt", Some("/a/b c%2.txt"));
        check("FILE://localhost/a", Some("/a"));
        check("file:/a", Some("/a"));
        for bad in ["", "file://host/a", "http://x/y", "HTTPS://x"] {
            check(bad, None);
        }
    }

    #[test]
    fn parts_cover_a_long_document() {
        let document =
            Document { markdown: "äbcdefghij".into(), title: None, format: "text", encoding: "UTF-8" };
        let check =
            |offset: usize, page: usize, expected: &str| assert_eq!(part(&document, offset, page), expected);
        check(0, 10, "äbcdefghij");
        check(
            0,
            4,
            "[The document has 10 characters; shown are 0 to 4. Call again with offset 4 for more.]\n\näbcd",
        );
        check(8, 4, "[The document has 10 characters; shown are 8 to 10.]\n\nij");
        check(10, 4, "[The document has 10 characters, so there is nothing from 10 on.]");
    }
}
