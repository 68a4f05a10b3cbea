//! Which calls may be made again where nobody knows whether they were carried out.
//!
//! Decides by what is configured for the server, else by what the server says of the tool, else by the tool's name:
//! searching, reading and scraping change nothing.

use rmcp::model::ToolAnnotations;

/// Tools that only search, read or scrape, whichever server has them.
const READERS: &[&str] = &[
    "google_search",
    "sogou_search",
    "web_search",
    "search",
    "scrape",
    "scrape_website",
    "scrape_and_extract_info",
    "search_and_browse",
    "fetch",
    "read",
    "read_file",
    "read_document",
    "search_library",
    "list_documents",
    "convert_to_markdown",
    "get_current_time",
];

/// Whether a call to the tool may be made again.
pub(crate) fn is_repeatable(
    configured: Option<bool>,
    annotations: Option<&ToolAnnotations>,
    tool: &str,
) -> bool {
    let told = annotations.and_then(|told| match (told.read_only_hint, told.idempotent_hint) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        (None, None) => None,
    });
    configured.or(told).unwrap_or_else(|| READERS.contains(&tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let told = |read_only: Option<bool>, idempotent: Option<bool>| {
            let mut annotations = ToolAnnotations::default();
            annotations.read_only_hint = read_only;
            annotations.idempotent_hint = idempotent;
            Some(annotations)
        };
        for (configured, annotations, tool, expected) in [
            (None, None, "google_search", true),
            (None, None, "send_mail", false),
            (None, told(Some(true), None), "send_mail", true),
            (None, told(Some(false), Some(true)), "set_title", true),
            (None, told(Some(false), None), "search", false),
            (None, told(None, None), "search", true),
            (Some(true), told(Some(false), None), "send_mail", true),
            (Some(false), told(Some(true), None), "search", false),
        ] {
            assert_eq!(is_repeatable(configured, annotations.as_ref(), tool), expected, "{tool}");
        }
    }
}
