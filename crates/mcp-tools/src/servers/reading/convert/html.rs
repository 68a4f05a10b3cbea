//! Pages to Markdown.
//!
//! Decides what of a page is kept: the article where there is one, else the body without what is not
//! for reading. Runs on a thread of its own with a large stack, so that neither the depth of a page nor
//! a fault in a parser reaches the caller.

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown};

use super::nesting;

/// A page as text.
pub(super) struct Page {
    pub(super) markdown: String,
    pub(super) title: Option<String>,
}

/// Not for reading, wherever they are.
#[rustfmt::skip]
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "head", "select",
    "button", "input", "textarea", "dialog",
];

/// Deepest nesting that is parsed; sensible pages stay below 100.
const DEEPEST: usize = 600;
/// Bytes of stack, of which the deepest page takes a small part.
const STACK: usize = 64 << 20;
/// Largest page in which an article is looked for: the search is not linear.
const LARGEST_ARTICLE: usize = 4 << 20;

pub(super) fn markdown(html: String) -> Result<Page, String> {
    apart(html, read)
}

/// All of a page, article or not.
pub(super) fn whole(html: String) -> Result<String, String> {
    Ok(apart(html, |html| Ok(Page { markdown: convert(html)?, title: None }))?.markdown)
}

fn apart(html: String, read: fn(&str) -> Result<Page, String>) -> Result<Page, String> {
    if nesting::depth(&html) > DEEPEST {
        return Err(format!("its elements are nested deeper than {DEEPEST} levels"));
    }
    std::thread::Builder::new()
        .name("page-reader".into())
        .stack_size(STACK)
        .spawn(move || read(&html))
        .map_err(|error| error.to_string())?
        .join()
        .map_err(|_| "its parser failed".to_owned())?
}

fn read(html: &str) -> Result<Page, String> {
    if html.len() <= LARGEST_ARTICLE
        && let Some(page) = article(html)?
    {
        return Ok(page);
    }
    Ok(Page { markdown: convert(html)?, title: None })
}

/// The readable article of a page, where it is probably one and keeps most of what there is.
fn article(html: &str) -> Result<Option<Page>, String> {
    let Ok(mut reader) = dom_smoothie::Readability::new(html, None, None) else { return Ok(None) };
    let title = Some(reader.get_article_title().trim().to_owned()).filter(|title| !title.is_empty());
    if !reader.is_probably_readable() {
        return Ok(Some(Page { markdown: convert(html)?, title }));
    }
    let Ok(article) = reader.parse() else { return Ok(None) };
    let body = convert(&article.content)?;
    let title = Some(article.title.trim().to_owned()).filter(|title| !title.is_empty()).or(title);
    let heading = title.as_deref().filter(|title| !body.trim_start_matches(['#', ' ']).starts_with(title));
    let byline = article.byline.as_deref().map(str::trim).filter(|byline| !byline.is_empty());
    let mut parts: Vec<String> = Vec::new();
    parts.extend(heading.map(|title| format!("# {title}")));
    match (byline, &article.published_time) {
        (None, None) => {}
        (byline, time) => {
            let words: Vec<&str> = byline.into_iter().chain(time.as_deref()).collect();
            parts.push(words.join(", "));
        }
    }
    parts.push(body);
    Ok(Some(Page { markdown: parts.join("\n\n"), title }))
}

fn convert(html: &str) -> Result<String, String> {
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .add_handler(vec!["img"], picture)
        .scripting_enabled(false)
        .build();
    let markdown = converter.convert(html).map_err(|error| error.to_string())?;
    Ok(without_gaps(&markdown))
}

/// A picture that is in the page itself would be thousands of characters of nothing: its description
/// stays.
fn picture(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let attribute = |name: &str| {
        element
            .attrs
            .iter()
            .find(|attribute| &*attribute.name.local == name)
            .map(|attribute| attribute.value.trim().to_owned())
    };
    if attribute("src").is_some_and(|source| source.starts_with("data:")) {
        let description = attribute("alt").filter(|words| !words.is_empty());
        return description.map(|words| format!("[Image: {words}]").into());
    }
    handlers.fallback(element)
}

/// At most one empty line in a row, none at the ends.
fn without_gaps(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut empty = 0usize;
    for line in markdown.lines() {
        let line = if line.trim().is_empty() { "" } else { line };
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 && !(line.is_empty() && out.is_empty()) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}
