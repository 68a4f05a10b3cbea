//! Books (EPUB).
//!
//! Decides the order of chapters: that of the book's spine. Chapters are pages, and read as such.

use super::html;
use super::layout::{Blocks, one_line};
use super::package::{Package, resolve};
use super::percent::percent_decoded;
use super::xml::{Element, unescaped};
use super::{Converted, Converter, Problem, Source, encoding};

pub(super) struct Epub;

/// Bytes of Markdown that a book comes to.
const MOST_TEXT: usize = 64 << 20;

impl Converter for Epub {
    fn name(&self) -> &'static str {
        "an EPUB book"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let mut package = Package::open(source.bytes)?;
        let broken = |problem: &str| Problem::Broken(problem.to_owned());
        let container =
            package.xml("META-INF/container.xml")?.ok_or_else(|| broken("it has no table of contents"))?;
        let path = container
            .find("rootfile")
            .and_then(|file| file.attribute("full-path"))
            .ok_or_else(|| broken("it does not say where its book is"))?
            .to_owned();
        let book = package.xml(&path)?.ok_or_else(|| broken("its book is missing"))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text =
            |name: &str| book.find(name).map(|found| one_line(&found.text())).filter(|text| !text.is_empty());
        let title = text("title");
        let mut blocks = Blocks::default();
        if let Some(title) = &title {
            blocks.heading(1, title);
        }
        for (name, label) in
            [("creator", "Author"), ("publisher", "Publisher"), ("date", "Date"), ("language", "Language")]
        {
            if let Some(text) = text(name) {
                blocks.push(&format!("{label}: {text}"));
            }
        }
        let items: Vec<&Element> =
            book.child("manifest").into_iter().flat_map(|list| list.all("item")).collect();
        for chapter in book.child("spine").into_iter().flat_map(|spine| spine.all("itemref")) {
            let item = items.iter().find(|item| item.attribute("id") == chapter.attribute("idref"));
            let Some(item) = item else { continue };
            // The book's own list of chapters says nothing that they do not say.
            if item.attribute("properties").is_some_and(|kinds| kinds.split(' ').any(|kind| kind == "nav")) {
                continue;
            }
            let kind = item.attribute("media-type").unwrap_or_default();
            if !kind.contains("html") && !kind.contains("xml") {
                continue;
            }
            let path = resolve(folder, &decoded(item.attribute("href").unwrap_or_default()));
            let Some(bytes) = package.read(&path)? else { continue };
            let (page, _) = encoding::decode(&bytes, true);
            let markdown =
                html::whole(page).map_err(|problem| Problem::Broken(format!("`{path}`: {problem}")))?;
            blocks.push(&markdown);
            if blocks.len() > MOST_TEXT {
                return Err(Problem::TooLarge(format!("it has more than {MOST_TEXT} bytes of text")));
            }
        }
        Ok(Converted { markdown: blocks.finish(), title })
    }
}

/// `%20` and the like, and what is written for `&`.
fn decoded(href: &str) -> String {
    percent_decoded(&unescaped(href.split('#').next().unwrap_or_default()))
}
