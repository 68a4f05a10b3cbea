//! Markdown as plain text, for snippets.
//!
//! Decides what of a piece of Markdown is words. The piece may be cut anywhere, even in a table.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Tags of HTML that say nothing to a reader; others are kept, since they may be code or generics.
const MARKUP: &[&str] = &[
    "a", "b", "br", "center", "code", "details", "div", "em", "hr", "i", "img", "kbd", "p", "pre", "small",
    "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u",
];

/// The words of a Markdown text: one line for each paragraph, item, row or heading. Lines that end
/// without a stop get one where another follows, so that they can be joined.
pub(super) fn plain_text(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(words) | Event::Code(words) => text.push_str(&words),
            Event::InlineHtml(html) | Event::Html(html) if !is_markup(&html) => text.push_str(&html),
            Event::SoftBreak => text.push(' '),
            Event::HardBreak | Event::Rule => end_line(&mut text),
            Event::Start(Tag::Item) => end_line(&mut text),
            Event::End(TagEnd::TableCell) => text.push_str("; "),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::HtmlBlock,
            ) => end_line(&mut text),
            _ => {}
        }
    }
    text.truncate(text.trim_end().len());
    with_stops(&text)
}

fn with_stops(text: &str) -> String {
    let mut stopped = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(words) if words.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '"' | '%')) => {
                stopped.push_str(words);
                stopped.push_str(".\n");
            }
            _ => stopped.push_str(line),
        }
    }
    stopped
}

fn end_line(text: &mut String) {
    let kept = text.trim_end_matches([' ', ';', '\n']).len();
    text.truncate(kept);
    if !text.is_empty() {
        text.push('\n');
    }
}

fn is_markup(html: &str) -> bool {
    let html = html.trim_start();
    if html.starts_with("<!--") {
        return true;
    }
    let Some(tag) = html.strip_prefix('<') else { return false };
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).take(12).collect();
    MARKUP.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes_and_words_stay() {
        for (markdown, expected) in [
            ("# Title\n\nSome *emphasis* and `code`.", "Title.\nSome emphasis and code."),
            ("[text](https://x.example/a_b) ![alt](i.png)", "text alt"),
            ("- one\n- two\n  - three", "one.\ntwo.\nthree"),
            ("| a | b |\n|---|---|\n| 1 | 2 |\n", "a; b.\n1; 2"),
            ("a<br>b <sup>2</sup> Vec<T> <!-- no -->", "ab 2 Vec<T>"),
            ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
            ("two\nlines", "two lines"),
            ("- **Capital:** Paris\n- **Area:** 643,801 sq km", "Capital: Paris.\nArea: 643,801 sq km"),
            ("```rust\nfn main() {}\n```", "fn main() {}"),
            ("", ""),
        ] {
            assert_eq!(plain_text(markdown), expected, "{markdown}");
        }
    }
}
