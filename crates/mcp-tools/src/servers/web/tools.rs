//! The tools of the web servers.
//!
//! Decides names, arguments and descriptions; they are those that prompts and models know.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ServerConfig;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::search::{self, Query};
use super::{Web, scrape};
use crate::servers::info;

#[derive(Debug, Deserialize, JsonSchema)]
struct GoogleArguments {
    /// What to search for.
    q: String,
    /// Country of the results, two letters. Default: us.
    gl: Option<String>,
    /// Language of the results, two letters. Default: en.
    hl: Option<String>,
    /// Place to search from, such as "Berlin, Germany".
    location: Option<String>,
    /// How many results. Default: 10.
    num: Option<u64>,
    /// Only results of the last hour (qdr:h), day (qdr:d), week (qdr:w), month (qdr:m) or year (qdr:y).
    tbs: Option<String>,
    /// Page of the results. Default: 1.
    page: Option<u64>,
    /// Whether spelling mistakes are corrected.
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
    num: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(non_snake_case, reason = "the names that models know")]
struct QueryAndCount {
    /// What to search for.
    Query: String,
    /// How many results: 10, 20, 30, 40 or 50. Default: 10.
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
    custom_headers: Option<Map<String, Value>>,
}

/// The tools of one of the servers.
#[derive(Clone)]
pub(super) struct WebTools {
    name: &'static str,
    tools: ToolRouter<Self>,
    web: Arc<Web>,
}

impl WebTools {
    /// Those of the server of that name; none for another name.
    pub(super) fn of(name: &str, web: Arc<Web>) -> Option<Self> {
        let (name, tools) = match name {
            "search_and_scrape_webpage" => ("search_and_scrape_webpage", Self::google() + Self::sogou()),
            "tool-google-search" => ("tool-google-search", Self::google() + Self::website()),
            "tool-sogou-search" => ("tool-sogou-search", Self::sogou_by_query() + Self::website()),
            "jina_scrape_llm_summary" => ("jina_scrape_llm_summary", Self::extraction()),
            _ => return None,
        };
        Some(Self { name, tools, web })
    }
}

#[tool_router(router = google)]
impl WebTools {
    #[tool(
        description = "Search the web. Returns JSON with `organic`, a list of results with title, link, snippet and \
                       position. Words in \"double quotes\" must stand together."
    )]
    async fn google_search(
        &self,
        Parameters(arguments): Parameters<GoogleArguments>,
    ) -> Result<String, String> {
        search::google(&self.web, arguments.into_query()).await
    }
}

/// What is said of Sogou, whatever its arguments are called.
const SOGOU: &str = "Search the web with Sogou, which knows Chinese pages best. Returns JSON with `organic`, a list \
                     of results with title, link, snippet, position and date.";

#[tool_router(router = sogou)]
impl WebTools {
    #[tool(description = SOGOU)]
    async fn sogou_search(
        &self,
        Parameters(arguments): Parameters<SogouArguments>,
    ) -> Result<String, String> {
        let query = Query { q: arguments.q, num: arguments.num, ..Query::default() };
        search::sogou(&self.web, query).await
    }
}

#[tool_router(router = sogou_by_query)]
impl WebTools {
    #[tool(name = "sogou_search", description = SOGOU)]
    async fn sogou_search_by_query(
        &self,
        Parameters(arguments): Parameters<QueryAndCount>,
    ) -> Result<String, String> {
        let query = Query { q: arguments.Query, num: arguments.Cnt, ..Query::default() };
        search::sogou(&self.web, query).await
    }
}

#[tool_router(router = website)]
impl WebTools {
    #[tool(description = "Read a web page or a document on the web, such as a PDF, as Markdown.")]
    async fn scrape_website(
        &self,
        Parameters(arguments): Parameters<PageArguments>,
    ) -> Result<String, String> {
        scrape::website(&self.web, &arguments.url).await
    }
}

#[tool_router(router = extraction)]
impl WebTools {
    #[tool(
        description = "Read a web page or a document on the web, such as a PDF, and report what it says about one \
                       question. Returns JSON with `success`, `extracted_info` and `error`."
    )]
    async fn scrape_and_extract_info(
        &self,
        Parameters(arguments): Parameters<ExtractArguments>,
    ) -> Result<String, String> {
        let ExtractArguments { url, info_to_extract, custom_headers } = arguments;
        let answer = scrape::extract(&self.web, &url, &info_to_extract, custom_headers).await;
        let text = answer.to_json();
        if answer.success { Ok(text) } else { Err(text) }
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for WebTools {
    fn get_info(&self) -> ServerConfig {
        info(self.name)
    }
}
