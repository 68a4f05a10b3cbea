//! Getting a page as text.
//!
//! Decides between the Jina reader, which runs a page's scripts, and fetching it directly; and what kind of document
//! an answer is. What comes of a document is the reading server's.

use serde_json::{Map, Value};

use super::super::Web;
use super::super::request::{hidden, status_words, with_retries};
use super::super::services::Service;
use super::{LONGEST_PAGE, start};
use crate::egress::{FetchRequest, Fetched, ServiceRequest, shown};
use crate::servers::library::Library;
use crate::servers::reading::to_markdown;

/// What links to documents of the library begin with.
const LIBRARY: &str = "library://";
/// Pages of a document of the library that are put together.
const LIBRARY_PAGES: usize = 50;

/// What a page says.
#[derive(Debug)]
pub(super) struct Page {
    /// Markdown, its title first.
    pub(super) text: String,
    /// The page is longer.
    pub(super) cut: bool,
}

impl Page {
    fn of(text: &str) -> Self {
        let kept = start(text, LONGEST_PAGE);
        Self { text: kept.to_owned(), cut: kept.len() < text.len() }
    }
}

/// Gets a page. Errors are texts for the model.
pub(super) async fn get(web: &Web, url: &str, headers: &Map<String, Value>) -> Result<Page, String> {
    let url = url.trim();
    if let Some(id) = url.strip_prefix(LIBRARY) {
        return document(web, id).await;
    }
    let checked = web.egress.check(url).map_err(|error| format!("{error}."))?;
    let headers: Vec<(String, String)> =
        headers.iter().filter_map(|(name, value)| header(name, value)).collect();
    let Some(jina) = &web.services.jina else { return direct(web, url, headers).await };
    match through_jina(web, jina, checked.as_str(), &headers).await {
        Ok(page) => Ok(page),
        Err(Refused::ByPolicy(problem)) => Err(problem),
        Err(Refused::ByReader(problem)) => {
            tracing::debug!(problem, "a page is fetched directly");
            let fetched = direct(web, url, headers).await;
            fetched.map_err(|second| format!("{second} Before that, {problem}"))
        }
    }
}

fn header(name: &str, value: &Value) -> Option<(String, String)> {
    let value = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some((name.to_owned(), value))
}

/// Why the reader gave no page.
enum Refused {
    /// Where it was led to must not be read.
    ByPolicy(String),
    /// Anything else: the page may be had directly.
    ByReader(String),
}

async fn through_jina(
    web: &Web,
    jina: &Service,
    url: &str,
    headers: &[(String, String)],
) -> Result<Page, Refused> {
    let request = || {
        // Its own settings are headers that begin with `x-`; others are for nobody but the page.
        let mut sent: Vec<(String, String)> =
            headers.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-")).cloned().collect();
        sent.push(("Authorization".into(), format!("Bearer {}", jina.key.expose())));
        sent.push(("Accept".into(), "application/json".into()));
        ServiceRequest { url: format!("{}/{url}", jina.base_url), headers: sent, ..ServiceRequest::default() }
    };
    let secrets = [jina.key.expose()];
    let failed =
        |problem: &str| Refused::ByReader(hidden(&format!("the Jina reader failed: {problem}."), &secrets));
    let fetched = with_retries(web.pause, || web.egress.ask_service(request()))
        .await
        .map_err(|error| failed(&error.to_string()))?;
    if !fetched.is_success() {
        return Err(failed(&status_words(&fetched, &secrets)));
    }
    let Ok(answer) = serde_json::from_slice::<Value>(&fetched.body) else {
        // Readers that speak its protocol may answer with the text alone.
        let text = String::from_utf8_lossy(&fetched.body);
        return if text.trim().is_empty() {
            Err(failed("its answer is empty"))
        } else {
            Ok(Page::of(text.trim()))
        };
    };
    let text = |key: &str| {
        answer.pointer(&format!("/data/{key}")).and_then(Value::as_str).unwrap_or_default().trim()
    };
    // Where the page really came from: the reader follows redirects by itself.
    if !text("url").is_empty() {
        web.egress.check(text("url")).map_err(|error| Refused::ByPolicy(format!("{error}.")))?;
    }
    match (text("title"), text("content")) {
        (_, "") => Err(failed("it found no text on the page")),
        ("", content) => Ok(Page::of(content)),
        (title, content) if content.trim_start_matches(['#', ' ']).starts_with(title) => {
            Ok(Page::of(content))
        }
        (title, content) => Ok(Page::of(&format!("# {title}\n\n{content}"))),
    }
}

async fn direct(web: &Web, url: &str, headers: Vec<(String, String)>) -> Result<Page, String> {
    let mut all = vec![
        ("Accept".to_owned(), "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8".to_owned()),
        ("Accept-Language".to_owned(), "en,*;q=0.5".to_owned()),
    ];
    all.extend(headers);
    let request = || web.egress.fetch(FetchRequest { headers: all.clone(), ..FetchRequest::new(url) });
    let fetched = with_retries(web.pause, request).await.map_err(|error| format!("{error}."))?;
    if !fetched.is_success() {
        return Err(format!("`{}` could not be read: {}.", shown(url), status_words(&fetched, &[])));
    }
    let name = document_name(&fetched);
    let body = fetched.body;
    let converted = tokio::task::spawn_blocking(move || to_markdown(&body, &name)).await;
    let document = match converted {
        Ok(Ok(document)) => document,
        Ok(Err(error)) => return Err(format!("`{}` could not be read: {error}.", shown(url))),
        Err(_) => return Err(format!("`{}` could not be read: its reader failed.", shown(url))),
    };
    if document.markdown.trim().is_empty() {
        return Err(format!(
            "`{}` has no text that could be read; it may be made by scripts. Use another source.",
            shown(url)
        ));
    }
    match document.title.filter(|title| !document.markdown.contains(title.as_str())) {
        Some(title) => Ok(Page::of(&format!("# {title}\n\n{}", document.markdown))),
        None => Ok(Page::of(&document.markdown)),
    }
}

/// Media types and the endings that mean the same, for documents whose address does not tell.
#[rustfmt::skip]
const ENDINGS: &[(&str, &str)] = &[
    ("text/html", "html"), ("application/xhtml+xml", "html"), ("application/pdf", "pdf"),
    ("application/json", "json"), ("text/csv", "csv"), ("text/tab-separated-values", "tsv"),
    ("text/markdown", "md"), ("text/xml", "xml"), ("application/xml", "xml"), ("application/epub+zip", "epub"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/msword", "doc"), ("application/vnd.ms-excel", "xls"), ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ods"), ("application/zip", "zip"), ("text/plain", "txt"),
];

/// A name whose ending says what the document is: the server's word first, since pages are called anything.
fn document_name(fetched: &Fetched) -> String {
    let kind = fetched.content_type.as_deref().and_then(|kind| kind.split(';').next()).map(str::trim);
    let ending = ENDINGS.iter().find(|(known, _)| kind.is_some_and(|kind| kind.eq_ignore_ascii_case(known)));
    let name = if fetched.name.is_empty() { "page" } else { &fetched.name };
    match ending {
        // Everything that is text may be sent as plain text.
        Some((_, "txt")) if name.contains('.') => name.to_owned(),
        Some((_, ending)) if !name.to_ascii_lowercase().ends_with(&format!(".{ending}")) => {
            format!("{name}.{ending}")
        }
        _ => name.to_owned(),
    }
}

async fn document(web: &Web, id: &str) -> Result<Page, String> {
    let Some(library) = &web.library else {
        return Err(format!("`{LIBRARY}{}` cannot be read: there is no library here.", shown(id)));
    };
    let id = id.trim().to_owned();
    let read = library.with(move |library: &Library| {
        let mut page = library.read(&id, 0)?;
        let mut text = page.text.clone();
        if !text.trim_start_matches(['#', ' ']).starts_with(&page.title) {
            text = format!("# {}\n\n{text}", page.title);
        }
        for _ in 1..LIBRARY_PAGES {
            let Some(next) = page.next else { break };
            page = library.read(&id, next)?;
            text.push_str(&page.text);
        }
        Ok(text)
    });
    read.await.map(|text| Page::of(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_documents() {
        let check = |name: &str, kind: Option<&str>, expected: &str| {
            let fetched = Fetched {
                url: "https://h/".parse().unwrap(),
                status: 200,
                content_type: kind.map(str::to_owned),
                name: name.to_owned(),
                retry_after: None,
                body: Vec::new(),
            };
            assert_eq!(document_name(&fetched), expected, "{name} {kind:?}");
        };
        check("", Some("text/html; charset=utf-8"), "page.html");
        check("", None, "page");
        check("paper", Some("application/pdf"), "paper.pdf");
        check("paper.pdf", Some("Application/PDF"), "paper.pdf");
        check("index.php", Some("text/html"), "index.php.html");
        check("main.rs", Some("text/plain"), "main.rs");
        check("readme", Some("text/plain"), "readme.txt");
        check("x.bin", Some("application/octet-stream"), "x.bin");
    }
}
