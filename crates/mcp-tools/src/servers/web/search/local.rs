//! The local library as a search service, for those who have no other.

use super::super::Web;
use super::{Hit, Query};
use crate::servers::library::MAX_RESULTS;

pub(super) const NAME: &str = "local library";

/// What links to documents of the library begin with; the scraping tools read them.
pub(super) const SCHEME: &str = "library://";

pub(super) async fn search(web: &Web, query: Query) -> Result<Vec<Hit>, String> {
    let Some(library) = &web.library else {
        return Err(
            "No search service is set up here: set SERPER_API_KEY, SEARXNG_BASE_URL, BRAVE_API_KEY or TAVILY_API_KEY."
                .to_owned(),
        );
    };
    let num = usize::try_from(query.results()).unwrap_or(MAX_RESULTS);
    let before = usize::try_from(query.page() - 1).unwrap_or_default().saturating_mul(num);
    let wanted = before.saturating_add(num).min(MAX_RESULTS);
    let found = library.with(move |library| library.search(&query.q, wanted)).await;
    let answer = found.map_err(|problem| format!("The search in the local library failed: {problem}"))?;
    let hit = |result: crate::servers::library::SearchResult| Hit {
        title: result.title,
        link: format!("{SCHEME}{}", result.id),
        snippet: result.snippet,
        date: None,
        source: Some(result.source).filter(|source| !source.is_empty()),
    };
    Ok(answer.results.into_iter().skip(before).map(hit).collect())
}
