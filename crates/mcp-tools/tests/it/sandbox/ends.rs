//! Using things up, and outliving the end.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::{attempt, cell, in_force, mark, running, until};
use crate::python::client::{call, client_with};

#[tokio::test]
async fn memory_is_limited() {
    let Some(client) = cell().await else { return };
    assert_eq!(attempt(&client, "x = bytearray(10 << 30)").await, "MemoryError");
    assert_eq!(attempt(&client, "x = []\nwhile True: x.append(bytearray(1 << 28))").await, "MemoryError");
    assert_eq!(attempt(&client, "import mmap; mmap.mmap(-1, 10 << 30)").await, "OSError");
    assert_eq!(client.run("'alive'").await.text, "'alive'");
}

#[tokio::test]
async fn memory_is_limited_as_a_whole() {
    if !in_force("totals").await {
        return;
    }
    let client = client_with(|options| options.limits.total_memory = 256 << 20).await;
    // Each by itself stays far below what a process may use. Those that are left end when the first was killed.
    let code = "import os\nr, w = os.pipe()\nfor n in range(8):\n    if os.fork() == 0:\n        os.close(w); x = bytearray(64 << 20); os.read(r, 1); os._exit(0)\nprint(os.wait()[1])\nos.close(w)\nfor n in range(7): print(os.wait()[1])";
    let reply = client.run(code).await;
    assert!(
        reply.text.contains("used up its memory of 256 MiB") || reply.text.contains('9'),
        "{}",
        reply.text
    );
    // The sandbox itself is as good as new, and one process may have most of it.
    let reply = client.run("len(bytearray(128 << 20))").await;
    assert!(reply.text.ends_with("134217728"), "{}", reply.text);
}

#[tokio::test]
async fn a_fork_bomb_is_stopped_and_killed() {
    let client = client_with(|options| {
        options.call_limit = Duration::from_secs(4);
        options.limits.processes = 30;
    })
    .await;
    if client.run("1").await.is_error {
        return;
    }
    let bomb = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        open('refused', 'w').close()\n        time.sleep(0.01)";
    let reply = client.run(bomb).await;
    assert!(reply.text.contains("took longer than 4 s"), "{}", reply.text);
    let reply = client.run("import os; os.path.exists('refused')").await;
    assert!(reply.text.ends_with("True"), "{}", reply.text);
    // All of it has gone: the next interpreter may start as many again.
    let count = "import subprocess\nps = [subprocess.Popen(['sleep', '20']) for _ in range(20)]\nlen(ps)";
    assert!(client.run(count).await.text.ends_with("20"));
}

#[tokio::test]
async fn threads_count_as_processes() {
    let client = client_with(|options| options.limits.processes = 20).await;
    if client.run("1").await.is_error {
        return;
    }
    let code = "import threading\nstop = threading.Event()\ntry:\n    for n in range(200): threading.Thread(target=stop.wait, daemon=True).start()\nexcept RuntimeError:\n    print('refused at', n < 40)\nstop.set()";
    assert_eq!(client.run(code).await.text, "refused at True");
}

#[tokio::test]
async fn files_are_limited_in_size() {
    let client = client_with(|options| options.limits.file_size = 1 << 20).await;
    if client.run("1").await.is_error {
        return;
    }
    let full = "with open('big', 'wb') as f:\n    while True: f.write(b'x' * 65536); f.flush()";
    assert_eq!(attempt(&client, full).await, "OSError");
    assert_eq!(attempt(&client, "open('sparse', 'wb').truncate(10 << 30)").await, "OSError");
    assert_eq!(
        attempt(&client, "os.posix_fallocate(os.open('f', os.O_RDWR | os.O_CREAT), 0, 10 << 30)").await,
        "OSError"
    );
    assert_eq!(client.run("import os; os.path.getsize('big')").await.text, "1048576");
}

#[tokio::test]
async fn open_files_are_limited() {
    let Some(client) = cell().await else { return };
    assert_eq!(attempt(&client, "x = [open('/dev/null') for _ in range(5000)]").await, "OSError");
}

#[tokio::test]
async fn limits_cannot_be_raised() {
    let Some(client) = cell().await else { return };
    for limit in ["RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CORE"] {
        let code =
            format!("import resource\nresource.setrlimit(resource.{limit}, (resource.RLIM_INFINITY,) * 2)");
        assert_eq!(attempt(&client, &code).await, "ValueError", "{limit}");
    }
}

#[tokio::test]
async fn an_endless_loop_that_ignores_signals_is_killed() {
    let client = client_with(|options| options.call_limit = Duration::from_secs(1)).await;
    if client.run("1").await.is_error {
        return;
    }
    let code = "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass";
    assert!(client.run(code).await.text.contains("took longer than 1 s"));
}

#[tokio::test]
async fn endless_output_is_cut_and_ended() {
    let client = client_with(|options| options.call_limit = Duration::from_secs(2)).await;
    if client.run("1").await.is_error {
        return;
    }
    let reply = client.run("import os\nblock = b'y' * 65536\nwhile True: os.write(1, block)").await;
    assert!(reply.is_error && reply.text.chars().count() < 20_500, "{}", reply.text.len());
    assert!(reply.text.starts_with("[The output was "), "{}", &reply.text[..60]);
}

#[tokio::test]
async fn an_overrun_takes_everything_it_started_along() {
    let client = client_with(|options| options.call_limit = Duration::from_secs(4)).await;
    if client.run("1").await.is_error {
        return;
    }
    let mark = mark(1);
    // A child, one in a session of its own, and one whose parents have all gone.
    let code = format!(
        "import os, subprocess\nsubprocess.Popen(['sleep', '{mark}'])\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)\n\
         os.system('(setsid sh -c \"trap \\'\\' TERM HUP; sleep {mark}\" &) &')\nprint('begun', flush=True)\nwhile True: pass"
    );
    let reply = client.run(&code).await;
    assert!(reply.text.starts_with("begun\n[The call took longer"), "{}", reply.text);
    assert_eq!(running(&mark), 0);
}

#[tokio::test]
async fn background_processes_end_with_the_server() {
    let Some(client) = cell().await else { return };
    let mark = mark(2);
    let start =
        format!("(setsid sleep {mark} >/dev/null 2>&1 &) ; sleep {mark} >/dev/null 2>&1 & echo started");
    assert_eq!(client.call("run_command", json!({ "command": start })).await.text, "started");
    until(|| running(&mark) > 0, "processes run in the background").await;
    client.stop().await;
    assert_eq!(running(&mark), 0);
}

#[tokio::test]
async fn a_deep_tree_of_directories_is_removed() {
    let Some(client) = cell().await else { return };
    let code = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nos.chmod('.', 0)";
    // Where it is seen before the call is over, that ends the call; it is removed in any case.
    let text = client.run(code).await.text;
    assert!(text == "(no output)" || text.contains("too deep inside one another"), "{text}");
    let mut client = client;
    let scratch = std::mem::replace(&mut client.scratch, tempfile::tempdir().expect("a directory"));
    client.stop().await;
    assert_eq!(std::fs::read_dir(scratch.path()).expect("the root").count(), 0);
}

const AS_PARENT: &str = "SANDBOX_TEST_AS_PARENT";

/// Not a test by itself: the process that the next one kills.
#[tokio::test]
async fn parent_to_be_killed() {
    let Ok(mark) = std::env::var(AS_PARENT) else { return };
    let client = client_with(|_| {}).await;
    // A program has no command line yet for a moment after it was started: this one says when it has.
    let code = format!(
        "import subprocess\np = subprocess.Popen(['sh', '-c', 'echo up; sleep {mark}; :'], start_new_session=True, stdout=subprocess.PIPE)\np.stdout.readline()"
    );
    assert_eq!(client.run(&code).await.text, "b'up\\n'");
    println!("ready");
    call(
        &client.session,
        "run_python_code",
        json!({ "code_block": format!("import os; os.system('sleep {mark}')") }),
    )
    .await;
}

#[tokio::test]
async fn nothing_outlives_a_parent_that_is_killed() {
    if cell().await.is_none() {
        return;
    }
    let mark = mark(3);
    // The test's own directory inside stays behind when it is killed; what is in that must not.
    let temporary = crate::python::client::scratch();
    let mut parent = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "sandbox::ends::parent_to_be_killed", "--nocapture"])
        .env(AS_PARENT, &mark)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let mut output = parent.stdout.take().expect("its output");
    let mut text = String::new();
    let mut buffer = [0; 256];
    while !text.contains("ready") {
        let count = output.read(&mut buffer).expect("output");
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert_eq!(scratch_directories(temporary.path()).len(), 1);
    until(|| running(&mark) > 0, "a process runs in the background").await;
    parent.kill().expect("the end");
    parent.wait().expect("the end");
    until(|| running(&mark) == 0, "no process is left").await;
    until(|| scratch_directories(temporary.path()).is_empty(), "no directory is left").await;
}

/// Directories of servers, two levels down.
fn scratch_directories(temporary: &Path) -> Vec<PathBuf> {
    let below = |directory: PathBuf| {
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let all = below(temporary.to_owned()).flat_map(below);
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tool-python-")))
        .collect()
}
