//! Reading pages.
//!
//! Decides what of a page is passed on and in which shape. How a page is got is in `page`, how a model reads it in
//! `extract`.

mod extract;
mod page;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Web;
use page::Page;

/// Characters of a page that are read; longer ones are cut.
const LONGEST_PAGE: usize = 400_000;
/// Characters of a page that are the answer where no model reads it.
const SHOWN_WITHOUT_MODEL: usize = 20_000;

/// What `scrape_and_extract_info` answers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Extracted {
    pub(super) success: bool,
    url: String,
    extracted_info: String,
    error: String,
    scrape_stats: Stats,
    model_used: String,
    tokens_used: u64,
}

/// How much of the page there was.
#[derive(Debug, Default, Serialize)]
struct Stats {
    line_count: usize,
    char_count: usize,
    /// The line that the last character that was read stands in.
    last_char_line: usize,
    all_content_displayed: bool,
}

impl Stats {
    /// Of a page of which the first `read` characters were read.
    fn of(page: &Page, read: usize) -> Self {
        let char_count = page.text.chars().count();
        Self {
            line_count: page.text.lines().count(),
            char_count,
            last_char_line: start(&page.text, read).lines().count(),
            all_content_displayed: !page.cut && read >= char_count,
        }
    }
}

impl Extracted {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Gets a page and has a model read it for what is asked.
pub(super) async fn extract(
    web: &Web,
    url: &str,
    wanted: &str,
    headers: Option<Map<String, Value>>,
) -> Extracted {
    let mut answer = Extracted { url: url.to_owned(), ..Extracted::default() };
    if wanted.trim().is_empty() {
        answer.error = "`info_to_extract` is empty; say what the page is read for.".to_owned();
        return answer;
    }
    let page = match page::get(web, url, &headers.unwrap_or_default()).await {
        Ok(page) => page,
        Err(problem) => {
            answer.error = problem;
            return answer;
        }
    };
    let Some(model) = &web.model else {
        let read = SHOWN_WITHOUT_MODEL;
        answer.scrape_stats = Stats::of(&page, read);
        let part = if answer.scrape_stats.all_content_displayed { "text" } else { "beginning" };
        answer.extracted_info = format!(
            "[No model is set up that could read the page for this (`SUMMARY_LLM_BASE_URL` and \
             `SUMMARY_LLM_MODEL_NAME` set one up); here is its {part}.]\n\n{}",
            start(&page.text, read)
        );
        answer.success = true;
        return answer;
    };
    match extract::ask(&**model, &page, wanted).await {
        Ok(found) => {
            answer.scrape_stats = Stats::of(&page, found.read);
            answer.extracted_info = found.text;
            answer.model_used = found.model;
            answer.tokens_used = found.tokens;
            answer.success = true;
        }
        Err(problem) => {
            answer.scrape_stats = Stats::of(&page, 0);
            answer.model_used = model.name().to_owned();
            answer.error = problem;
        }
    }
    answer
}

/// What `scrape_website` answers: the page.
pub(super) async fn website(web: &Web, url: &str) -> Result<String, String> {
    let page = page::get(web, url, &Map::new()).await?;
    let note = if page.cut {
        format!("[The first {LONGEST_PAGE} characters of a longer page.]\n\n")
    } else {
        String::new()
    };
    Ok(format!("{note}{}", page.text))
}

/// The first characters of a text.
fn start(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}
