//! Writes a cassette, line by line. Decides when a line is safe; what is in it is decided by the format.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use core_protocol::Completion;
use serde::Serialize;
use serde_json::Value;

use super::{CASSETTE_VERSION, CassetteError, Header, Line, MODEL, ModelRequest, ModelResponse, Scrub};
use crate::{ChatRequest, LlmError};

/// A cassette that is being recorded.
pub struct CassetteWriter {
    path: String,
    scrub: Scrub,
    inner: Mutex<Inner>,
    syncer: Mutex<Option<Syncer>>,
}

struct Inner {
    file: File,
    /// Parts that were written, by their text.
    parts: HashMap<String, usize>,
}

impl CassetteWriter {
    /// Creates the file, which must not be there, and writes the header.
    ///
    /// # Errors
    ///
    /// [`CassetteError::Write`].
    pub fn create(path: &Path, header: &Header, scrub: Scrub) -> Result<Self, CassetteError> {
        let name = path.display().to_string();
        let wrong = |error: io::Error| CassetteError::Write {
            path: name.clone(),
            detail: match error.kind() {
                io::ErrorKind::AlreadyExists => "the file is there already and is not overwritten".to_owned(),
                _ => error.to_string(),
            },
        };
        let file = OpenOptions::new().create_new(true).append(true).open(path).map_err(wrong)?;
        let syncer = file.try_clone().and_then(Syncer::start).map_err(wrong)?;
        let writer = Self {
            path: name.clone(),
            scrub,
            inner: Mutex::new(Inner { file, parts: HashMap::new() }),
            syncer: Mutex::new(Some(syncer)),
        };
        let line = Line::Cassette { version: CASSETTE_VERSION, header: Box::new(header.clone()) };
        let mut inner = writer.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.write(&line, &writer.scrub).map_err(wrong)?;
        drop(inner);
        writer.sync();
        Ok(writer)
    }

    /// Adds an exchange of the caller's own kind. `name` says what it is about, for people.
    ///
    /// # Errors
    ///
    /// [`CassetteError::Write`].
    pub fn exchange(
        &self,
        of: &str,
        name: &str,
        request: Value,
        response: Value,
    ) -> Result<(), CassetteError> {
        self.write(|inner, scrub| {
            let line = Line::Exchange { of: of.to_owned(), name: name.to_owned(), request, response };
            inner.write(&line, scrub)
        })
    }

    /// Adds a try of a model call.
    pub(crate) fn model(
        &self,
        request: &ChatRequest,
        result: &Result<Completion, LlmError>,
    ) -> Result<(), CassetteError> {
        self.write(|inner, scrub| {
            let response = match result {
                Ok(completion) => ModelResponse::Completion(Box::new(completion.clone())),
                Err(error) => ModelResponse::Error(error.clone()),
            };
            let mut messages = Vec::with_capacity(request.messages.len());
            for message in &request.messages {
                messages.push(inner.part(&**message, scrub)?);
            }
            let request = ModelRequest {
                system: inner.part(&*request.system, scrub)?,
                messages,
                tools: match request.tools.is_empty() {
                    true => None,
                    false => Some(inner.part(&*request.tools, scrub)?),
                },
                continue_final_message: request.continue_final_message,
            };
            let line = Line::Exchange {
                of: MODEL.to_owned(),
                name: String::new(),
                request: serde_json::to_value(request)?,
                response: serde_json::to_value(response)?,
            };
            inner.write(&line, scrub)
        })
    }

    /// Waits until the disk has everything.
    ///
    /// # Errors
    ///
    /// [`CassetteError::Write`].
    pub fn close(&self) -> Result<(), CassetteError> {
        if let Some(syncer) = self.syncer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            syncer.stop();
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.file.sync_all().map_err(|error| self.wrong(&error))
    }

    fn write(&self, write: impl FnOnce(&mut Inner, &Scrub) -> io::Result<()>) -> Result<(), CassetteError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let written = write(&mut inner, &self.scrub).map_err(|error| self.wrong(&error));
        drop(inner);
        self.sync();
        written
    }

    fn sync(&self) {
        if let Some(syncer) = &*self.syncer.lock().unwrap_or_else(PoisonError::into_inner) {
            syncer.request();
        }
    }

    fn wrong(&self, error: &io::Error) -> CassetteError {
        CassetteError::Write { path: self.path.clone(), detail: error.to_string() }
    }
}

impl fmt::Debug for CassetteWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CassetteWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Inner {
    fn write(&mut self, line: &Line, scrub: &Scrub) -> io::Result<()> {
        let mut text = scrub(serde_json::to_string(line)?);
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }

    /// The id of a part, which is written if it is new.
    fn part(&mut self, value: &(impl Serialize + ?Sized), scrub: &Scrub) -> io::Result<usize> {
        let text = serde_json::to_string(value)?;
        if let Some(id) = self.parts.get(&text) {
            return Ok(*id);
        }
        let id = self.parts.len();
        self.write(&Line::Part { id, value: serde_json::from_str(&text)? }, scrub)?;
        self.parts.insert(text, id);
        Ok(id)
    }
}

/// Asks the disk to keep what was written, off the run's threads.
struct Syncer {
    requests: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Syncer {
    fn start(file: File) -> io::Result<Self> {
        let (requests, due) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new().name("cassette-sync".to_owned()).spawn(move || {
            while due.recv().is_ok() {
                if let Err(error) = file.sync_data() {
                    tracing::warn!(%error, "the disk did not confirm the cassette");
                }
            }
        })?;
        Ok(Self { requests, thread })
    }

    /// One request in waiting is enough: it covers everything written before it is served.
    fn request(&self) {
        let _ = self.requests.try_send(());
    }

    fn stop(self) {
        drop(self.requests);
        let _ = self.thread.join();
    }
}
