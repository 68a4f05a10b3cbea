//! The tool server `library`: `search_library` and `read_document`.
//!
//! Decides what a model is told. The server answers at once; indexes are opened on a thread of their own, and the
//! first calls wait for them, so that a search never sees half of a library. A damaged index is built anew and the
//! call tried once more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::JsonSchema;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::LibraryError;
use super::library::{Library, LibraryOptions};
use crate::{InProcessServer, serve_handler};

/// The server's name.
pub const SERVER_NAME: &str = "library";
/// Results where a call does not say how many.
const DEFAULT_RESULTS: u64 = 10;
/// How long a call waits for a library that is still being indexed before it says so.
const READY_LIMIT: Duration = Duration::from_secs(240);

/// The built-in server `library` over these collections.
///
/// It starts without waiting for the indexes. Collections that turn out to be unreadable are named in
/// the results of searches; where there are no others, calls are errors that say why.
///
/// # Errors
///
/// Names that cannot be used or are used twice, folders that are not there.
pub fn server(options: LibraryOptions) -> Result<Arc<dyn InProcessServer>, LibraryError> {
    options.check()?;
    Ok(Arc::new(LibraryServer { shelf: Arc::new(Shelf::new(options)) }))
}

struct LibraryServer {
    shelf: Arc<Shelf>,
}

#[async_trait]
impl InProcessServer for LibraryServer {
    fn name(&self) -> &str {
        SERVER_NAME
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        self.shelf.open_in_background();
        serve_handler(Handler { shelf: self.shelf.clone() }, io, stop).await;
    }
}

impl Drop for LibraryServer {
    fn drop(&mut self) {
        self.shelf.stop.store(true, Ordering::Relaxed);
    }
}

/// The library of a server, once it is open.
struct Shelf {
    options: LibraryOptions,
    state: watch::Sender<State>,
    started: AtomicBool,
    stop: AtomicBool,
    done: AtomicUsize,
    total: AtomicUsize,
}

#[derive(Clone)]
enum State {
    Opening,
    Open(Arc<Library>),
    Failed(String),
}

impl Shelf {
    fn new(options: LibraryOptions) -> Self {
        Self {
            options,
            state: watch::Sender::new(State::Opening),
            started: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
        }
    }

    /// Starts the thread that opens the library; one for all sessions.
    fn open_in_background(self: &Arc<Self>) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let shelf = self.clone();
        let spawned = std::thread::Builder::new().name("library".into()).spawn(move || {
            let state = shelf.open();
            shelf.state.send_replace(state);
        });
        if let Err(error) = spawned {
            self.state
                .send_replace(State::Failed(format!("cannot start a thread to open the library: {error}")));
        }
    }

    fn open(&self) -> State {
        let progress = |done, total| {
            self.done.store(done, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
        };
        let open = || Library::open_available(&self.options, &progress, &self.stop);
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(library) => match library.failure() {
                Some(error) => State::Failed(error.to_string()),
                None => State::Open(Arc::new(library)),
            },
            Err(_) => State::Failed("the library cannot be opened: its index fails".to_owned()),
        }
    }

    async fn ready(&self) -> Result<Arc<Library>, String> {
        let mut state = self.state.subscribe();
        let opened = state.wait_for(|state| !matches!(state, State::Opening));
        match tokio::time::timeout(READY_LIMIT, opened).await {
            Ok(Ok(state)) => match &*state {
                State::Open(library) => Ok(library.clone()),
                State::Failed(problem) => Err(problem.clone()),
                State::Opening => Err("the library is not open".to_owned()),
            },
            Ok(Err(_)) => Err("the library was closed".to_owned()),
            Err(_) => {
                let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
                Err(format!(
                    "the library is still being indexed ({done} of {total} files): try again in a minute"
                ))
            }
        }
    }

    /// Runs a call on the library, off the asynchronous threads.
    async fn with<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl Fn(&Library) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, String> {
        let library = self.ready().await?;
        let shelf = self.clone();
        let ran = tokio::task::spawn_blocking(move || match call(&library) {
            Err(LibraryError::Index { .. }) if library.discard_damaged() => match shelf.open() {
                State::Open(rebuilt) => {
                    let answer = call(&rebuilt);
                    shelf.state.send_replace(State::Open(rebuilt));
                    answer.map_err(|error| error.to_string())
                }
                State::Failed(problem) => Err(problem),
                State::Opening => Err("the library is not open".to_owned()),
            },
            answer => answer.map_err(|error| error.to_string()),
        });
        ran.await.unwrap_or_else(|error| Err(format!("the call did not end: {error}")))
    }
}

/// A library for other servers of this process, opened at the first call.
#[cfg(feature = "web")]
pub(crate) struct LazyLibrary(LibraryServer);

#[cfg(feature = "web")]
impl LazyLibrary {
    /// Checks the options and opens nothing yet.
    pub(crate) fn new(options: LibraryOptions) -> Result<Self, LibraryError> {
        options.check()?;
        Ok(Self(LibraryServer { shelf: Arc::new(Shelf::new(options)) }))
    }

    /// Runs a call on the library, off the asynchronous threads; its errors are texts for the model.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        call: impl Fn(&Library) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, String> {
        self.0.shelf.open_in_background();
        self.0.shelf.with(call).await
    }
}

#[derive(Clone)]
struct Handler {
    shelf: Arc<Shelf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchArguments {
    /// What to look for: a few content words or a name. Words in "double quotes" must follow each
    /// other.
    q: String,
    /// How many results, 1 to 50. Default: 10.
    num: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadArguments {
    /// The `id` of a search result.
    id: String,
    /// Where to start, in characters. Default: 0. The page before says where the next one starts.
    offset: Option<u64>,
}

#[tool_router]
impl Handler {
    #[tool(description = "Search the local library: documents that the user has put at hand and reference \
                       works. Returns JSON with `results`, each with `id`, `title`, `source`, `snippet` and \
                       `score`. Read a document with read_document and its id.")]
    async fn search_library(
        &self,
        Parameters(SearchArguments { q, num }): Parameters<SearchArguments>,
    ) -> Result<String, String> {
        let num = usize::try_from(num.unwrap_or(DEFAULT_RESULTS)).unwrap_or(usize::MAX);
        self.shelf
            .with(move |library| {
                let answer = library.search(&q, num)?;
                Ok(serde_json::to_string_pretty(&answer).unwrap_or_default())
            })
            .await
    }

    #[tool(
        description = "Read a document of the local library as Markdown, in pages of about 8000 characters. \
                       The heading says title, source, length and where the next page starts."
    )]
    async fn read_document(
        &self,
        Parameters(ReadArguments { id, offset }): Parameters<ReadArguments>,
    ) -> Result<String, String> {
        self.shelf.with(move |library| Ok(library.read(&id, offset.unwrap_or(0))?.to_markdown())).await
    }
}

#[tool_handler(name = "library")]
impl ServerHandler for Handler {}
