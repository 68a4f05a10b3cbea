//! What the tests of the manager share: the fixture server, calls in one line, processes that end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcp_tools::{ManagerOptions, ServerSpec, ToolFailure, ToolManager, ToolOutcome, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The path of the fixture server.
pub(crate) fn fixture_path() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp_server.py");
    path.display().to_string()
}

/// A server run from this command line.
pub(crate) fn stdio(name: &str, command: &str, args: &[&str]) -> ServerSpec {
    let transport = Transport::Stdio {
        command: command.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    };
    let mut spec = ServerSpec::new(name, transport);
    spec.call_limit = Duration::from_secs(30);
    spec
}

/// The fixture server with these options.
pub(crate) fn fixture(name: &str, options: &[&str]) -> ServerSpec {
    let path = fixture_path();
    stdio(name, "python3", &[&[path.as_str()], options].concat())
}

/// One fixture server in a manager of its own, under the name `s`.
pub(crate) async fn started(options: &[&str]) -> ToolManager {
    started_with(options, ManagerOptions::default()).await
}

pub(crate) async fn started_with(options: &[&str], manager: ManagerOptions) -> ToolManager {
    let manager = ToolManager::start(vec![fixture("s", options)], manager).await;
    assert_eq!(manager.statuses()[0].error, None);
    manager
}

/// Calls a tool of the server `s`.
pub(crate) async fn call(manager: &ToolManager, tool: &str, arguments: Value) -> ToolOutcome {
    let arguments = arguments.as_object().expect("an object").clone();
    manager.call("s", tool, arguments, &CancellationToken::new()).await
}

/// The text of a call that must succeed.
pub(crate) async fn text_of(manager: &ToolManager, tool: &str, arguments: Value) -> String {
    let outcome = call(manager, tool, arguments).await;
    assert_eq!(outcome.failure, None, "{outcome:?}");
    assert!(!outcome.result.is_error, "{outcome:?}");
    outcome.result.joined_text()
}

/// The text of a call that must fail in this way.
pub(crate) async fn failure_of(
    manager: &ToolManager,
    tool: &str,
    arguments: Value,
    expected: ToolFailure,
) -> String {
    let outcome = call(manager, tool, arguments).await;
    assert_eq!(outcome.failure, Some(expected), "{outcome:?}");
    assert!(outcome.result.is_error, "{outcome:?}");
    outcome.result.joined_text()
}

/// A process whose end can be waited for, whoever's child it is.
pub(crate) struct Watched {
    pid: i32,
    handle: std::os::fd::OwnedFd,
}

impl Watched {
    /// A process that runs, by its id as text.
    pub(crate) fn new(pid: &str) -> Self {
        Self::found(pid).expect("it runs")
    }

    /// The same of a process that may have ended.
    pub(crate) fn found(pid: &str) -> Option<Self> {
        let pid: i32 = pid.trim().parse().expect("a process id");
        match pidfd_open(Pid::from_raw(pid).expect("an id"), PidfdFlags::empty()) {
            Ok(handle) => Some(Self { pid, handle }),
            Err(rustix::io::Errno::SRCH) => None,
            Err(error) => panic!("process {pid}: {error}"),
        }
    }

    /// Whether it ends within the limit; a zombie has ended.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
            match poll(&mut handles, Some(&timeout)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("process {}: {error}", self.pid),
            }
        }
    }

    /// Whether it runs now.
    pub(crate) fn runs(&self) -> bool {
        !self.ends_within(Duration::ZERO)
    }
}
