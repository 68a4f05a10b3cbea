//! The sandboxes of one server, by id.
//!
//! Decides which sandbox a call means, when one is started anew, and how long one lives. What happens
//! inside is left to `session`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::DEFAULT_ID;
use super::interpreter::{self, Interpreter};
use super::scratch::{self, ScratchRoot};
use super::session::{End, Outcome, Request, Session};
use super::space::{Excess, SpaceWatch};
use super::{PythonError, PythonOptions};
use crate::sandbox::{Sandbox, Totals, is_passable};
use crate::spawn::ChildSetup;

/// All sandboxes of a server. They end with it.
#[derive(Debug)]
pub(super) struct Sandboxes {
    options: PythonOptions,
    sandbox: Sandbox,
    ready: OnceCell<Result<Ready, PythonError>>,
    places: Mutex<BTreeMap<String, Arc<Place>>>,
}

/// What is found out once, before the first sandbox.
#[derive(Debug)]
struct Ready {
    interpreter: Interpreter,
    root: ScratchRoot,
}

/// One sandbox: a directory that stays and an interpreter that can be replaced.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) scratch: PathBuf,
    pub(super) user: Option<(u32, u32)>,
    lifetime: Duration,
    last_used: Mutex<Instant>,
    live: AsyncMutex<Live>,
    /// Watches the space that its files take.
    pub(super) space: SpaceWatch,
    /// Limits on all that runs in it; goes after the interpreter.
    totals: Option<Totals>,
}

#[derive(Debug, Default)]
struct Live {
    session: Option<Session>,
    /// An interpreter was there before, so its variables are lost.
    lost: bool,
    /// Between two calls its files came to be too much, so its processes were killed.
    overflowed: Option<Excess>,
    /// The sandbox has ended, its directory gone.
    ended: bool,
}

/// What a call came to, with what the model must know about the sandbox.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    /// Variables of earlier calls were lost before this one.
    pub(super) fresh: bool,
    /// Between the calls its files came to be too much.
    pub(super) overflowed: Option<Excess>,
    /// Its files take more than they may, from before.
    pub(super) is_full: bool,
}

impl Sandboxes {
    pub(super) fn new(options: PythonOptions) -> Self {
        let sandbox = Sandbox::examine(options.sandbox, options.limits.clone());
        Self { options, sandbox, ready: OnceCell::new(), places: Mutex::default() }
    }

    pub(super) fn options(&self) -> &PythonOptions {
        &self.options
    }

    /// The interpreter in use.
    pub(super) async fn interpreter(&self) -> Result<Interpreter, PythonError> {
        Ok(self.ready().await?.interpreter.clone())
    }

    async fn ready(&self) -> Result<&Ready, PythonError> {
        self.ready.get_or_init(|| self.find()).await.as_ref().map_err(Clone::clone)
    }

    /// The first interpreter that starts inside a sandbox.
    async fn find(&self) -> Result<Ready, PythonError> {
        if let Some(refusal) = self.sandbox.report().refusal {
            return Err(PythonError::Refused(refusal));
        }
        let root =
            ScratchRoot::make(&self.options.scratch_root, self.sandbox.changes_user()).map_err(|error| {
                PythonError::Scratch { path: self.options.scratch_root.clone(), problem: error.to_string() }
            })?;
        let search_path = std::env::var_os("PATH");
        let mut problems = Vec::new();
        for candidate in interpreter::candidates(self.options.python.as_deref(), search_path.as_deref()) {
            match self.try_out(&candidate, &root).await {
                Ok(interpreter) => {
                    tracing::debug!(program = %interpreter.program.display(), version = interpreter.version, "cells are run by");
                    return Ok(Ready { interpreter, root });
                }
                Err(problem) => problems.push(format!("{}: {problem}", candidate.display())),
            }
        }
        Err(PythonError::NoInterpreter { tried: problems })
    }

    async fn try_out(&self, candidate: &Path, root: &ScratchRoot) -> Result<Interpreter, String> {
        let interpreter = interpreter::ask(candidate).await?;
        let real = interpreter.program.canonicalize().map_err(|error| error.to_string())?;
        if self.sandbox.changes_user() && !is_passable(&real) {
            return Err("the users of sandboxes may not enter the directory that it is in".into());
        }
        let place = self.place(root).map_err(|error| error.to_string())?;
        let started = self.start(&interpreter, &place).await;
        let outcome = match started {
            Ok(mut session) => {
                session.end().await;
                Ok(interpreter)
            }
            Err(error) => Err(error.to_string()),
        };
        place.end().await;
        outcome
    }

    /// A new directory with, where that can be had, a user of its own.
    fn place(&self, root: &ScratchRoot) -> Result<Place, PythonError> {
        let user = self.sandbox.new_user();
        let scratch = root.path().join(format!("{:08x}", scratch::random()));
        self.sandbox.make_scratch(&scratch, user)?;
        let totals = self.sandbox.new_totals()?;
        let space = SpaceWatch::start(&scratch, self.options.limits.disk);
        Ok(Place {
            scratch,
            user,
            totals,
            space,
            lifetime: self.options.lifetime,
            last_used: Mutex::new(Instant::now()),
            live: AsyncMutex::default(),
        })
    }

    async fn start(&self, interpreter: &Interpreter, place: &Place) -> Result<Session, PythonError> {
        let (user, totals) = (place.user, place.totals.as_ref());
        #[cfg(feature = "egress")]
        let door = super::network::door(&self.options, &self.sandbox)
            .map_err(|error| PythonError::Start(format!("no network could be made: {error}")))?;
        #[cfg(feature = "egress")]
        if let Some((door, channel)) = door {
            let (scratch, readable) = (&place.scratch, &interpreter.readable);
            let setup = self.sandbox.child_with(scratch, readable, user, totals, Some(channel))?;
            let mut session = self.start_with(interpreter, place, setup).await?;
            let proxy = door.open();
            session.keep(proxy.map_err(|error| PythonError::Start(format!("it has no network: {error}")))?);
            return Ok(session);
        }
        let setup = self.sandbox.child(&place.scratch, &interpreter.readable, user, totals)?;
        self.start_with(interpreter, place, setup).await
    }

    async fn start_with(
        &self,
        interpreter: &Interpreter,
        place: &Place,
        setup: ChildSetup,
    ) -> Result<Session, PythonError> {
        let limits = (self.options.output_limit, self.options.start_limit);
        let session = Session::start(interpreter, &place.scratch, setup, limits.0, limits.1)
            .await
            .map_err(PythonError::Start)?;
        place.space.include(session.process());
        Ok(session)
    }

    /// Makes a sandbox with a new id, its interpreter started. It ends when it was not used for
    /// `lifetime`.
    pub(super) async fn create(self: &Arc<Self>, lifetime: Option<Duration>) -> Result<String, PythonError> {
        let id = format!("sandbox-{:08x}", scratch::random());
        self.add(&id, lifetime).await?;
        Ok(id)
    }

    async fn add(self: &Arc<Self>, id: &str, lifetime: Option<Duration>) -> Result<Arc<Place>, PythonError> {
        let ready = self.ready().await?;
        let in_use = self.ids();
        if in_use.len() >= self.options.most_sandboxes {
            return Err(PythonError::TooMany { ids: in_use });
        }
        let mut place = self.place(&ready.root)?;
        place.lifetime =
            lifetime.map_or(self.options.lifetime, |asked| asked.min(self.options.longest_lifetime));
        let session = match self.start(&ready.interpreter, &place).await {
            Ok(session) => session,
            Err(error) => {
                place.end().await;
                return Err(error);
            }
        };
        place.live.lock().await.session = Some(session);
        let place = Arc::new(place);
        let rival = {
            let mut places = self.places();
            match places.get(id) {
                Some(first) => Some(Arc::clone(first)),
                None => {
                    places.insert(id.to_owned(), Arc::clone(&place));
                    None
                }
            }
        };
        if let Some(first) = rival {
            // Two first calls at a time: the second goes where the first went.
            place.end().await;
            return Ok(first);
        }
        tokio::spawn(expire(Arc::downgrade(self), id.to_owned(), Arc::downgrade(&place)));
        tokio::spawn(keep_small(Arc::downgrade(&place)));
        Ok(place)
    }

    /// The sandbox of that id; none where it is unknown or has ended. The default one is always there.
    pub(super) async fn get(self: &Arc<Self>, id: &str) -> Result<Option<Arc<Place>>, PythonError> {
        let known = self.places().get(id).cloned();
        match known {
            Some(place) => Ok(Some(place)),
            None if id == DEFAULT_ID => self.add(id, None).await.map(Some),
            None => Ok(None),
        }
    }

    /// Runs one cell in a sandbox; none where it has ended meanwhile.
    pub(super) async fn run(
        &self,
        place: &Place,
        request: Request<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<Ran>, PythonError> {
        let ready = self.ready().await?;
        place.touch();
        // Calls into one sandbox run one after another.
        let mut live = tokio::select! {
            () = cancel.cancelled() => return Err(PythonError::Cancelled),
            live = place.live.lock() => live,
        };
        if live.ended {
            return Ok(None);
        }
        let mut session = match live.session.take() {
            Some(session) => session,
            None => self.start(&ready.interpreter, place).await?,
        };
        let fresh = std::mem::replace(&mut live.lost, true);
        let overflowed = live.overflowed.take();
        // Taken out while it runs: should this future be dropped, the session goes with it and is not
        // found half way through a cell.
        let mut outcome = session.run(request, self.options.call_limit, cancel, &place.space).await;
        self.explain(place, &mut outcome.end);
        if matches!(outcome.end, End::Full(_)) {
            place.space.settle().await;
        }
        if outcome.end.leaves_it_alive() {
            live.session = Some(session);
            live.lost = false;
        }
        place.touch();
        let is_full = place.space.is_full() && outcome.end.leaves_it_alive();
        Ok(Some(Ran { outcome, fresh, overflowed, is_full }))
    }

    /// Says of an interpreter that is gone where its memory was the reason.
    fn explain(&self, place: &Place, end: &mut End) {
        if let (End::Gone(how), Some(totals)) = (end, &place.totals)
            && totals.ran_out_of_memory()
        {
            *how = format!(
                "the processes of the sandbox used up its memory of {} MiB",
                self.options.limits.total_memory >> 20
            );
        }
    }

    /// Runs one cell in a sandbox of its own, which ends with it.
    pub(super) async fn run_once(
        &self,
        request: Request<'_>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, PythonError> {
        let ready = self.ready().await?;
        let place = self.place(&ready.root)?;
        let outcome = match self.start(&ready.interpreter, &place).await {
            Ok(mut session) => {
                let limit = self.options.call_limit;
                let mut outcome = session.run(request, limit, cancel, &place.space).await;
                self.explain(&place, &mut outcome.end);
                session.end().await;
                Ok(outcome)
            }
            Err(error) => Err(error),
        };
        place.end().await;
        outcome
    }

    /// Ids in use.
    pub(super) fn ids(&self) -> Vec<String> {
        self.places().keys().cloned().collect()
    }

    /// Ends all sandboxes and waits until their processes have gone.
    pub(super) async fn end(&self) {
        let places = std::mem::take(&mut *self.places());
        futures_util::future::join_all(places.values().map(|place| place.end())).await;
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// A file in it, as a model is told of it.
    pub(super) fn shown(&self, file: &Path, size: u64) -> String {
        let whole = self.scratch.join(file);
        format!("{} ({size} bytes), which is `{}` for code.", whole.display(), file.display())
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn expires(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) + self.lifetime
    }

    /// Kills what runs in it and removes its directory.
    async fn end(&self) {
        let mut live = self.live.lock().await;
        live.ended = true;
        if let Some(mut session) = live.session.take() {
            session.end().await;
        }
        let scratch = self.scratch.clone();
        let _ = tokio::task::spawn_blocking(move || scratch::remove(&scratch)).await;
    }
}

/// Ends what runs in a sandbox between its calls where its files come to be too much.
async fn keep_small(place: Weak<Place>) {
    while let Some(exceeded) = place.upgrade().map(|place| place.space.exceeded()) {
        if exceeded.await.is_none() {
            return;
        }
        let Some(place) = place.upgrade() else { return };
        // Where a call runs, it sees to that itself.
        let mut live = place.live.lock().await;
        let Some(excess) = place.space.excess().filter(|_| !live.ended) else { continue };
        if let Some(mut session) = live.session.take() {
            session.end().await;
            live.overflowed = Some(excess);
        }
        place.space.settle().await;
    }
}

/// Ends a sandbox that was not used for its lifetime.
async fn expire(sandboxes: Weak<Sandboxes>, id: String, place: Weak<Place>) {
    while let Some(at) = place.upgrade().map(|place| place.expires()) {
        tokio::time::sleep_until(at).await;
        let (Some(sandboxes), Some(place)) = (sandboxes.upgrade(), place.upgrade()) else { return };
        if place.expires() > Instant::now() {
            continue;
        }
        // One in the middle of a call is in use, however long that takes.
        if place.live.try_lock().is_err() {
            place.touch();
            continue;
        }
        sandboxes.places().remove(&id);
        place.end().await;
        return;
    }
}
