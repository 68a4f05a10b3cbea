//! The event log of a run: `events.jsonl`, one event a line, and `blobs/` for what is too large for a line.
//!
//! Decides what is written and when it is safe: each event is handed to the system before the run goes on, so a
//! killed process loses none, and the disk is asked to keep them at the end of each turn. Secrets are replaced
//! before anything is written or passed on.

mod read;
mod stored;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use core_protocol::event::{BLOB_THRESHOLD, Event, EventBody};
use orchestrator::{EventSink, SinkError, Stamp};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::lock::{FolderLock, LockError};
use crate::scrub::Scrubber;
use stored::Results;

pub use read::{LogError, RunRecord};

/// Name of the lock in a run's directory.
pub const LOCK_NAME: &str = "lock";
/// Name of the log in a run's directory.
pub const LOG_NAME: &str = "events.jsonl";
/// Name of the folder of large texts in a run's directory.
pub const BLOBS_NAME: &str = "blobs";

/// Gets every event as it happens, already without secrets: the event and its line of JSON.
pub type Observer = dyn Fn(&Event, &str) + Send + Sync;

/// The open log of a run.
pub struct RunLog {
    run_id: String,
    blobs: PathBuf,
    scrubber: Scrubber,
    observer: Option<Box<Observer>>,
    writer: Mutex<Writer>,
    syncer: Option<Syncer>,
    _lock: Option<FolderLock>,
}

struct Writer {
    file: File,
    next: u64,
    /// Bytes of the file that hold whole lines.
    length: u64,
    results: Results,
    /// Why nothing more can be written: a line that failed must stay the last.
    broken: Option<String>,
}

/// Asks the disk to keep what was written, off the run's threads.
struct Syncer {
    requests: SyncSender<()>,
    thread: JoinHandle<()>,
    /// Blobs that the disk has not confirmed.
    blobs: Arc<Mutex<Vec<PathBuf>>>,
    /// How often the disk was asked.
    syncs: Arc<AtomicU64>,
}

impl RunLog {
    /// Creates the log of a new run in `run_dir`, which exists.
    ///
    /// # Errors
    ///
    /// Where the file cannot be created.
    pub fn create(
        run_dir: &Path,
        run_id: &str,
        scrubber: Scrubber,
        observer: Option<Box<Observer>>,
    ) -> io::Result<Self> {
        let lock = FolderLock::take(&run_dir.join(LOCK_NAME)).map_err(|error| match error {
            LockError::Held(_) => io::Error::other("another process writes to it"),
            LockError::Io(error) => error,
        })?;
        let file = OpenOptions::new().create_new(true).append(true).open(run_dir.join(LOG_NAME))?;
        Self::open(run_dir, run_id, file, (0, 0), Some(lock), (scrubber, observer))
    }

    /// Opens the log of an interrupted run to go on with it. A last line that was cut off is taken away; nothing else
    /// is changed.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened or written.
    pub(crate) fn reopen(
        record: &RunRecord,
        lock: Option<FolderLock>,
        scrubber: Scrubber,
        observer: Option<Box<Observer>>,
    ) -> io::Result<Self> {
        let mut file = OpenOptions::new().append(true).open(record.dir.join(LOG_NAME))?;
        file.set_len(record.valid_bytes)?;
        let mut length = record.valid_bytes;
        if record.unterminated {
            file.write_all(b"\n")?;
            length += 1;
        }
        let next = record.events.len() as u64;
        Self::open(&record.dir, &record.run_id, file, (next, length), lock, (scrubber, observer))
    }

    fn open(
        run_dir: &Path,
        run_id: &str,
        file: File,
        (next, length): (u64, u64),
        lock: Option<FolderLock>,
        (scrubber, observer): (Scrubber, Option<Box<Observer>>),
    ) -> io::Result<Self> {
        let syncer = Syncer::start(file.try_clone()?)?;
        Ok(Self {
            run_id: run_id.to_owned(),
            blobs: run_dir.join(BLOBS_NAME),
            scrubber,
            observer,
            writer: Mutex::new(Writer { file, next, length, results: Results::default(), broken: None }),
            syncer: Some(syncer),
            _lock: lock,
        })
    }

    /// Waits until the disk has everything and closes the log.
    ///
    /// # Errors
    ///
    /// Where the disk does not take it.
    pub fn close(mut self) -> io::Result<()> {
        if let Some(syncer) = self.syncer.take() {
            syncer.stop();
        }
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).file.sync_all()
    }

    fn write(&self, stamp: Stamp<'_>, body: EventBody) -> io::Result<()> {
        let stored = body.is_stored();
        let ends_turn = matches!(
            body,
            EventBody::RunStarted { .. }
                | EventBody::RunResumed { .. }
                | EventBody::ContextChecked { .. }
                | EventBody::PassFinished { .. }
        );
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(broken) = &writer.broken {
            return Err(io::Error::other(broken.clone()));
        }
        let mut event = Event {
            seq: writer.next,
            ts: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            run_id: self.run_id.clone(),
            pass: stamp.pass,
            turn: stamp.turn,
            agent: stamp.agent.to_owned(),
            body,
        };
        let mut line = serde_json::to_string(&event)?;
        if self.scrubber.finds_secret(&line) {
            line = self.scrubber.scrub(line);
            // Whoever watches sees what is written, not what was.
            event = serde_json::from_str(&line)?;
        }
        if stored {
            self.store(&mut writer, &event, &line)?;
        }
        // Told under the lock, so that observers see events in the order of the log.
        if let Some(observer) = &self.observer {
            observer(&event, &line);
        }
        drop(writer);
        if ends_turn && let Some(syncer) = &self.syncer {
            syncer.request();
        }
        Ok(())
    }

    /// Appends an event's line. What failed is taken back, as far as the disk lets it, and nothing follows it.
    fn store(&self, writer: &mut Writer, event: &Event, line: &str) -> io::Result<()> {
        let appended = self.stored_line(writer, event, line).and_then(|kept| {
            writer.file.write_all(kept.as_bytes())?;
            Ok(kept.len() as u64)
        });
        match appended {
            Ok(length) => {
                writer.length += length;
                writer.next += 1;
                writer.results.remember(event);
                Ok(())
            }
            Err(error) => {
                let _ = writer.file.set_len(writer.length);
                writer.broken = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// The line as it is kept, with its blobs written before it.
    fn stored_line(&self, writer: &Writer, event: &Event, line: &str) -> io::Result<String> {
        let mut kept = match stored::differs(event, line, &writer.results) {
            Some(mut value) => {
                self.move_blobs(&mut value)?;
                serde_json::to_string(&value)?
            }
            None if line.len() > BLOB_THRESHOLD => {
                let mut value: Value = serde_json::from_str(line)?;
                self.move_blobs(&mut value)?;
                serde_json::to_string(&value)?
            }
            None => line.to_owned(),
        };
        kept.push('\n');
        Ok(kept)
    }

    fn move_blobs(&self, value: &mut Value) -> io::Result<()> {
        match value {
            Value::String(text) if text.len() > BLOB_THRESHOLD => {
                let name = self.keep_blob(text.as_bytes())?;
                *value = serde_json::json!({ "$blob": name, "bytes": text.len() });
            }
            Value::Array(items) => {
                for item in items {
                    self.move_blobs(item)?;
                }
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.move_blobs(field)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes a blob unless it is there already, so that the same text is kept once. A blob has its name only when it
    /// is whole.
    fn keep_blob(&self, bytes: &[u8]) -> io::Result<String> {
        let name = hex::encode(Sha256::digest(bytes));
        let path = self.blobs.join(&name);
        let is_there = std::fs::metadata(&path).is_ok_and(|facts| facts.len() == bytes.len() as u64);
        if !is_there {
            std::fs::create_dir_all(&self.blobs)?;
            let unfinished = self.blobs.join(format!("{name}.part"));
            std::fs::write(&unfinished, bytes)?;
            std::fs::rename(&unfinished, &path)?;
        }
        if let Some(syncer) = &self.syncer {
            syncer.blobs.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        }
        Ok(name)
    }
}

impl EventSink for RunLog {
    fn emit(&self, stamp: Stamp<'_>, body: EventBody) -> Result<(), SinkError> {
        self.write(stamp, body).map_err(|error| SinkError(error.to_string()))
    }
}

impl Syncer {
    fn start(file: File) -> io::Result<Self> {
        let (requests, due) = sync_channel::<()>(1);
        let blobs = Arc::new(Mutex::new(Vec::<PathBuf>::new()));
        let syncs = Arc::new(AtomicU64::new(0));
        let (unsynced, count) = (Arc::clone(&blobs), Arc::clone(&syncs));
        let thread = std::thread::Builder::new().name("log-sync".to_owned()).spawn(move || {
            while due.recv().is_ok() {
                let paths = std::mem::take(&mut *unsynced.lock().unwrap_or_else(PoisonError::into_inner));
                // Blobs first: a line on the disk must not refer to a text that is not.
                let synced = paths
                    .iter()
                    .try_for_each(|path| File::open(path)?.sync_data())
                    .and_then(|()| file.sync_data());
                count.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = synced {
                    tracing::warn!(%error, "the disk did not confirm the run's log");
                }
            }
        })?;
        Ok(Self { requests, thread, blobs, syncs })
    }

    /// One request in waiting is enough: it covers everything written before it is served.
    fn request(&self) {
        let _ = self.requests.try_send(());
    }

    fn stop(self) {
        // The last request covers blobs that no turn has.
        let _ = self.requests.send(());
        drop(self.requests);
        let _ = self.thread.join();
        tracing::debug!(syncs = self.syncs.load(Ordering::Relaxed), "the run's log is closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex as StdMutex;

    const STAMP: Stamp<'static> = Stamp { pass: 1, turn: 2, agent: "main" };

    fn lines(dir: &Path) -> Vec<Value> {
        std::fs::read_to_string(dir.join(LOG_NAME))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn events_are_numbered_stamped_and_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::new(StdMutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        let observer = Box::new(move |event: &Event, _: &str| shared.lock().unwrap().push(event.seq));
        let log = RunLog::create(dir.path(), "r1", Scrubber::default(), Some(observer)).unwrap();
        log.emit(STAMP, EventBody::Recovered { after: 1 }).unwrap();
        log.emit(STAMP, EventBody::TextDelta { text: "a".into() }).unwrap();
        log.emit(STAMP, EventBody::Recovered { after: 2 }).unwrap();
        log.close().unwrap();
        let lines = lines(dir.path());
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["seq"], 1);
        assert_eq!(lines[1]["type"], "recovered");
        assert_eq!(lines[1]["turn"], 2);
        assert!(lines[1]["ts"].as_str().unwrap().ends_with('Z'));
        assert_eq!(*seen.lock().unwrap(), [0, 1, 1]);
    }

    #[test]
    fn large_texts_become_blobs_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = RunLog::create(dir.path(), "r1", Scrubber::default(), None).unwrap();
        let text = "é".repeat(BLOB_THRESHOLD);
        for _ in 0..2 {
            log.emit(STAMP, EventBody::SystemPrompt { text: text.clone() }).unwrap();
        }
        log.close().unwrap();
        let lines = lines(dir.path());
        let name = lines[0]["text"]["$blob"].as_str().unwrap();
        assert_eq!(lines[0]["text"]["bytes"], text.len());
        assert_eq!(std::fs::read_to_string(dir.path().join(BLOBS_NAME).join(name)).unwrap(), text);
        assert_eq!(std::fs::read_dir(dir.path().join(BLOBS_NAME)).unwrap().count(), 1);
    }

    #[test]
    fn secrets_do_not_get_in() {
        let dir = tempfile::tempdir().unwrap();
        let scrubber = Scrubber::new(["sk-very-\"secret\"-key"]);
        let log = RunLog::create(dir.path(), "r1", scrubber, None).unwrap();
        log.emit(STAMP, EventBody::SystemPrompt { text: "the key is sk-very-\"secret\"-key!".into() })
            .unwrap();
        log.close().unwrap();
        let text = std::fs::read_to_string(dir.path().join(LOG_NAME)).unwrap();
        assert!(!text.contains("very-") && text.contains("the key is ***!"), "{text}");
    }

    #[test]
    fn an_existing_log_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOG_NAME), "kept").unwrap();
        assert!(RunLog::create(dir.path(), "r1", Scrubber::default(), None).is_err());
        assert_eq!(std::fs::read_to_string(dir.path().join(LOG_NAME)).unwrap(), "kept");
    }
}
