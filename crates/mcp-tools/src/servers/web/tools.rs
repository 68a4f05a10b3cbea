//! The tools of the web servers.
//!
//! Decides names, arguments and descriptions; they are those that prompts and models know.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::search::{self, Query};
use super::{Web, scrape};
use crate::servers::schema;

#[derive(Debug, Deserialize, JsonSchema)]
struct GoogleArguments {
    /// What to search for.
    q: String,
    /// Country of the results, two letters. Default: us.
    #[serde(default)]
    gl: Option<String>,
    /// Language of the results, two letters. Default: en.
    #[serde(default)]
    hl: Option<String>,
    /// Place to search from, such as "Berlin, Germany".
    #[serde(default)]
    location: Option<String>,
    /// How many results. Default: 10.
    #[serde(default, deserialize_with = "schema::lenient_number")]
    num: Option<u64>,
    /// Only results of the last hour (qdr:h), day (qdr:d), week (qdr:w), month (qdr:m) or year (qdr:y).
    #[serde(default)]
    tbs: Option<String>,
    /// Page of the results. Default: 1.
    #[serde(default, deserialize_with = "schema::lenient_number")]
    page: Option<u64>,
    /// Whether spelling mistakes are corrected.
    #[serde(default)]
    autocorrect: Option<bool>,
}

impl GoogleArguments {
    fn into_query(self) -> Query {
        let given = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        Query {
            q: self.q,
            gl: given(self.gl).or_else(|| Some("us".to_owned())),
            hl: given(self.hl).or_else(|| Some("en".to_owned())),
            location: given(self.location),
            num: self.num,
            tbs: given(self.tbs),
            page: self.page,
            autocorrect: self.autocorrect,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SogouArguments {
    /// What to search for.
    q: String,
    /// How many results: 10, 20, 30, 40 or 50. Default: 10.
    #[serde(default, deserialize_with = "schema::lenient_number")]
    num: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(non_snake_case, reason = "the names that models know")]
struct QueryAndCount {
    /// What to search for.
    Query: String,
    /// How many results: 10, 20, 30, 40 or 50. Default: 10.
    #[serde(default, deserialize_with = "schema::lenient_number")]
    Cnt: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct PageArguments {
    /// The address of the page.
    url: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ExtractArguments {
    /// The address of the page.
    url: String,
    /// What to find on the page: a question, or the facts that are wanted.
    info_to_extract: String,
    /// HTTP headers for the request, where the page needs some.
    #[serde(default)]
    custom_headers: Option<Map<String, Value>>,
}

#[derive(Clone)]
pub(super) struct SearchAndScrape {
    pub(super) web: Arc<Web>,
}

#[tool_router]
impl SearchAndScrape {
    #[tool(
        description = "Search the web. Returns JSON with `organic`, a list of results with title, link, snippet and \
                       position. Words in \"double quotes\" must stand together.",
        input_schema = schema::arguments::<GoogleArguments>()
    )]
    async fn google_search(&self, Parameters(arguments): Parameters<GoogleArguments>) -> CallToolResult {
        told(search::google(&self.web, arguments.into_query()).await)
    }

    #[tool(
        description = "Search the web with Sogou, which knows Chinese pages best. Returns JSON with `organic`, a list \
                       of results with title, link, snippet, position and date.",
        input_schema = schema::arguments::<SogouArguments>()
    )]
    async fn sogou_search(&self, Parameters(arguments): Parameters<SogouArguments>) -> CallToolResult {
        let query = Query { q: arguments.q, num: arguments.num, ..Query::default() };
        told(search::sogou(&self.web, query).await)
    }
}

#[tool_handler(name = "search_and_scrape_webpage")]
impl ServerHandler for SearchAndScrape {}

#[derive(Clone)]
pub(super) struct GoogleSearch {
    pub(super) web: Arc<Web>,
}

#[tool_router]
impl GoogleSearch {
    #[tool(
        description = "Search the web. Returns JSON with `organic`, a list of results with title, link, snippet and \
                       position. Words in \"double quotes\" must stand together.",
        input_schema = schema::arguments::<GoogleArguments>()
    )]
    async fn google_search(&self, Parameters(arguments): Parameters<GoogleArguments>) -> CallToolResult {
        told(search::google(&self.web, arguments.into_query()).await)
    }

    #[tool(
        description = "Read a web page or a document on the web, such as a PDF, as Markdown.",
        input_schema = schema::arguments::<PageArguments>()
    )]
    async fn scrape_website(&self, Parameters(arguments): Parameters<PageArguments>) -> CallToolResult {
        told(scrape::website(&self.web, &arguments.url).await)
    }
}

#[tool_handler(name = "tool-google-search")]
impl ServerHandler for GoogleSearch {}

#[derive(Clone)]
pub(super) struct SogouSearch {
    pub(super) web: Arc<Web>,
}

#[tool_router]
impl SogouSearch {
    #[tool(
        description = "Search the web with Sogou, which knows Chinese pages best. Returns JSON with `organic`, a list \
                       of results with title, link, snippet, position and date.",
        input_schema = schema::arguments::<QueryAndCount>()
    )]
    async fn sogou_search(&self, Parameters(arguments): Parameters<QueryAndCount>) -> CallToolResult {
        let query = Query { q: arguments.Query, num: arguments.Cnt, ..Query::default() };
        told(search::sogou(&self.web, query).await)
    }

    #[tool(
        description = "Read a web page or a document on the web, such as a PDF, as Markdown.",
        input_schema = schema::arguments::<PageArguments>()
    )]
    async fn scrape_website(&self, Parameters(arguments): Parameters<PageArguments>) -> CallToolResult {
        told(scrape::website(&self.web, &arguments.url).await)
    }
}

#[tool_handler(name = "tool-sogou-search")]
impl ServerHandler for SogouSearch {}

#[derive(Clone)]
pub(super) struct Scrape {
    pub(super) web: Arc<Web>,
}

#[tool_router]
impl Scrape {
    #[tool(
        description = "Read a web page or a document on the web, such as a PDF, and report what it says about one \
                       question. Returns JSON with `success`, `extracted_info` and `error`.",
        input_schema = schema::arguments::<ExtractArguments>()
    )]
    async fn scrape_and_extract_info(
        &self,
        Parameters(arguments): Parameters<ExtractArguments>,
    ) -> CallToolResult {
        let ExtractArguments { url, info_to_extract, custom_headers } = arguments;
        let answer = scrape::extract(&self.web, &url, &info_to_extract, custom_headers).await;
        let text = answer.to_json();
        told(if answer.success { Ok(text) } else { Err(text) })
    }
}

#[tool_handler(name = "jina_scrape_llm_summary")]
impl ServerHandler for Scrape {}

fn told(answer: Result<String, String>) -> CallToolResult {
    match answer {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
    }
}
