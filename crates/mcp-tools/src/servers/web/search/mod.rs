//! Searching.
//!
//! Decides which of several services is asked, what a query is, what a result looks like whatever found it, and what is
//! asked again in other words. What is peculiar to a service is in the module of its name.

mod brave;
mod local;
mod searxng;
mod serper;
mod sogou;
mod tavily;
mod tc3;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::request::{hidden, status_words, with_retries};
use super::{Services, Web};
use crate::egress::ServiceRequest;

/// Results where a call does not say how many.
const DEFAULT_RESULTS: u64 = 10;
/// More are not asked for.
const MOST_RESULTS: u64 = 100;

/// What is searched for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Query {
    pub(super) q: String,
    /// Country, two letters.
    pub(super) gl: Option<String>,
    /// Language, two letters.
    pub(super) hl: Option<String>,
    pub(super) location: Option<String>,
    pub(super) num: Option<u64>,
    /// A span of time, as Google writes it: `qdr:d`, `qdr:w`, `qdr:m`, `qdr:y`.
    pub(super) tbs: Option<String>,
    /// From 1.
    pub(super) page: Option<u64>,
    pub(super) autocorrect: Option<bool>,
}

impl Query {
    fn results(&self) -> u64 {
        self.num.unwrap_or(DEFAULT_RESULTS).clamp(1, MOST_RESULTS)
    }

    fn page(&self) -> u64 {
        self.page.unwrap_or(1).clamp(1, 100)
    }

    /// The span of time as one of four words, for services that know no other.
    fn span<'a>(&self, words: [&'a str; 4]) -> Option<&'a str> {
        let letter = self.tbs.as_deref()?.split("qdr:").nth(1)?.chars().next()?;
        let at = match letter {
            'h' | 'd' => 0,
            'w' => 1,
            'm' => 2,
            'y' => 3,
            _ => return None,
        };
        Some(words[at])
    }

    /// The same without quotation marks; none where it has none.
    fn unquoted(&self) -> Option<Self> {
        let marks = ['"', '\u{201c}', '\u{201d}', '\u{201e}', '\u{00ab}', '\u{00bb}'];
        let q = self.q.replace(marks, " ");
        let q = q.split_whitespace().collect::<Vec<_>>().join(" ");
        (self.q.contains(marks) && !q.is_empty()).then(|| Self { q, ..self.clone() })
    }
}

/// One result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Hit {
    title: String,
    link: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    /// Where a document of the library comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

impl Hit {
    /// A result from the texts under these keys; none where it leads nowhere.
    fn read(value: &Value, title: &str, link: &str, snippet: &str, date: &str) -> Option<Self> {
        let text =
            |key: &str| value.get(key).and_then(Value::as_str).map(plain).filter(|text| !text.is_empty());
        Some(Self {
            title: text(title).unwrap_or_default(),
            link: value
                .get(link)
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|link| !link.is_empty())?
                .to_owned(),
            snippet: text(snippet).unwrap_or_default(),
            date: text(date),
            source: None,
        })
    }

    fn read_all(list: Option<&Value>, title: &str, link: &str, snippet: &str, date: &str) -> Vec<Self> {
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| Self::read(item, title, link, snippet, date)).collect()
    }
}

/// A text without the marks that some services put around the words of the query.
fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    for (marked, bare) in [
        ("<strong>", ""),
        ("</strong>", ""),
        ("<em>", ""),
        ("</em>", ""),
        ("<b>", ""),
        ("</b>", ""),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        if plain.contains(marked) {
            plain = plain.replace(marked, bare);
        }
    }
    plain.trim().to_owned()
}

/// How one service is asked over HTTP.
pub(super) trait Wire: Send + Sync {
    /// Its name, for results and messages.
    fn name(&self) -> &'static str;
    fn request(&self, query: &Query) -> ServiceRequest;
    /// The results in an answer, or what the service says instead.
    fn hits(&self, answer: &Value) -> Result<Vec<Hit>, String>;
    /// What must not be shown.
    fn secrets(&self) -> Vec<&str>;
    /// What to do about a status, where that is known.
    fn advice(&self, _status: u16) -> Option<&'static str> {
        None
    }
}

/// What sets up a service that searches, in the order in which services are taken.
pub(super) const VARIABLES: &str = "SERPER_API_KEY, SEARXNG_BASE_URL, BRAVE_API_KEY, TAVILY_API_KEY";

/// The service that `google_search` uses: the first that is set up. None: the local library.
pub(super) fn service(services: &Services) -> Option<Box<dyn Wire>> {
    fn boxed<W: Wire + 'static>(wire: W) -> Box<dyn Wire> {
        Box::new(wire)
    }
    let Services { serper, searxng, brave, tavily, .. } = services.clone();
    let serper = serper.map(serper::Serper).map(boxed);
    let searxng = searxng.map(searxng::SearXng).map(boxed);
    let brave = brave.map(brave::Brave).map(boxed);
    let tavily = tavily.map(tavily::Tavily).map(boxed);
    serper.or(searxng).or(brave).or(tavily)
}

/// What `google_search` answers.
pub(super) async fn google(web: &Web, query: Query) -> Result<String, String> {
    match service(&web.services) {
        Some(wire) => search(web, &query, wire.name(), |query| over_http(web, &*wire, query)).await,
        None => search(web, &query, local::NAME, |query| local::search(web, query)).await,
    }
}

/// What `sogou_search` answers.
pub(super) async fn sogou(web: &Web, query: Query) -> Result<String, String> {
    let Some(tencent) = web.services.tencent.clone() else {
        return Err(
            "Sogou is not set up here: TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY are missing. Use \
                    another search tool."
                .to_owned(),
        );
    };
    let wire = sogou::Sogou::new(tencent);
    search(web, &query, wire.name(), |query| over_http(web, &wire, query)).await
}

/// Searches, in other words where the first find nothing, and writes down what was found.
async fn search<'a, F, R>(web: &Web, query: &'a Query, engine: &str, find: F) -> Result<String, String>
where
    F: Fn(Query) -> R,
    R: Future<Output = Result<Vec<Hit>, String>> + 'a,
{
    if query.q.trim().is_empty() {
        return Err("The query is empty; give a few words to search for.".to_owned());
    }
    let mut used = query.clone();
    let mut hits = find(used.clone()).await?;
    if hits.is_empty()
        && let Some(unquoted) = query.unquoted()
    {
        hits = find(unquoted.clone()).await?;
        used = unquoted;
    }
    Ok(written(web, &used, engine, hits))
}

/// Results as the model gets them; blocked pages are not among them.
fn written(web: &Web, query: &Query, engine: &str, hits: Vec<Hit>) -> String {
    let allowed = |hit: &Hit| hit.link.starts_with(local::SCHEME) || web.egress.check(&hit.link).is_ok();
    let organic: Vec<Value> = hits
        .into_iter()
        .filter(allowed)
        .enumerate()
        .map(|(at, hit)| {
            let mut entry =
                json!({ "title": hit.title, "link": hit.link, "snippet": hit.snippet, "position": at + 1 });
            for (key, value) in [("date", hit.date), ("source", hit.source)] {
                if let Some(value) = value {
                    entry[key] = value.into();
                }
            }
            entry
        })
        .collect();
    let mut parameters = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            parameters.insert(key.to_owned(), value);
        }
    };
    put("q", Some(query.q.clone().into()));
    put("gl", query.gl.clone().map(Value::from));
    put("hl", query.hl.clone().map(Value::from));
    put("location", query.location.clone().map(Value::from));
    put("tbs", query.tbs.clone().map(Value::from));
    put("num", Some(query.results().into()));
    put("page", query.page.map(Value::from));
    put("type", Some("search".into()));
    put("engine", Some(engine.into()));
    json!({ "organic": organic, "searchParameters": parameters }).to_string()
}

async fn over_http(web: &Web, wire: &dyn Wire, query: Query) -> Result<Vec<Hit>, String> {
    let (name, secrets) = (wire.name(), wire.secrets());
    let asked = with_retries(web.pause, || web.egress.ask_service(wire.request(&query))).await;
    let fetched =
        asked.map_err(|error| hidden(&format!("The search with {name} failed: {error}."), &secrets))?;
    if !fetched.is_success() {
        let advice = wire.advice(fetched.status).map(|advice| format!(" {advice}")).unwrap_or_default();
        return Err(format!("The search with {name} failed: {}.{advice}", status_words(&fetched, &secrets)));
    }
    let answer: Value = serde_json::from_slice(&fetched.body)
        .map_err(|_| format!("The search with {name} failed: its answer is no JSON."))?;
    wire.hits(&answer)
        .map_err(|problem| format!("The search with {name} failed: {}.", hidden(&problem, &secrets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_are_dropped_once() {
        let check = |q: &str, expected: Option<&str>| {
            let query = Query { q: q.to_owned(), ..Query::default() };
            assert_eq!(query.unquoted().map(|query| query.q).as_deref(), expected, "{q}");
        };
        check("\"exact words\" more", Some("exact words more"));
        check("\u{201c}exact\u{201d}", Some("exact"));
        check("plain words", None);
        check("\"\"", None);
    }

    #[test]
    fn spans_of_time() {
        let check = |tbs: Option<&str>, expected: Option<&str>| {
            let query = Query { tbs: tbs.map(str::to_owned), ..Query::default() };
            assert_eq!(query.span(["day", "week", "month", "year"]), expected, "{tbs:?}");
        };
        check(Some("qdr:d"), Some("day"));
        check(Some("qdr:w2"), Some("week"));
        check(Some("sbd:1,qdr:m"), Some("month"));
        check(Some("qdr:y"), Some("year"));
        check(Some("cdr:1,cd_min:1/1/2020"), None);
        check(Some("qdr:"), None);
        check(None, None);
    }

    #[test]
    fn marks_are_taken_out() {
        assert_eq!(plain(" <strong>Ada</strong> &amp; &quot;Charles&quot; "), "Ada & \"Charles\"");
        assert_eq!(plain("a < b"), "a < b");
    }
}
