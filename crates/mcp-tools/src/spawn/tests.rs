//! Children as they are seen from outside: real processes, whose ends show as the end of a pipe.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use super::*;

/// More than a loaded machine needs for anything here.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shell with its output piped.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Reads until every process that holds the output has ended.
async fn to_the_end(child: &mut Child) -> String {
    let mut text = String::new();
    let mut output = child.stdout.take().expect("its output");
    let read = tokio::time::timeout(PATIENCE, output.read_to_string(&mut text)).await;
    read.expect("the end of all its processes").expect("text");
    text
}

fn hard(grace: Duration) -> ChildSetup {
    ChildSetup { watchdog: Some(grace), ..ChildSetup::default() }
}

/// Starts a shell and reads its first line.
async fn started(script: &str, setup: ChildSetup) -> (Child, String) {
    let mut child = spawn(shell(script), setup).await.expect("a child");
    let mut line = Vec::new();
    let output = child.stdout.as_mut().expect("its output");
    while !line.ends_with(b"\n") {
        line.push(output.read_u8().await.expect("a line"));
    }
    (child, String::from_utf8(line).expect("text"))
}

#[tokio::test]
async fn exit_codes_come_through_the_watchdog() {
    for (script, expected) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + 9), ("kill -11 $$", 128 + 11)]
    {
        for setup in [ChildSetup::tied_to_parent(), hard(Duration::ZERO)] {
            let mut child = spawn(shell(script), setup).await.expect("a child");
            assert_eq!(child.wait().await.expect("its end").code(), Some(expected), "{script}");
        }
    }
}

#[tokio::test]
async fn a_program_that_is_missing_is_an_error() {
    for setup in [ChildSetup::default(), ChildSetup::tied_to_parent()] {
        let error = spawn(Command::new("/nowhere/program"), setup).await.expect_err("no program");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn a_stop_reaches_the_whole_tree() {
    // One in the group, one in a session of its own, one that hears no TERM, one whose parents have gone.
    let script = "sleep 300 & setsid sleep 300 & (trap '' TERM; exec sleep 300) & (setsid sh -c 'sleep 300' &) ; echo up; wait";
    for grace in [Duration::ZERO, Duration::from_millis(200)] {
        let (mut child, _) = started(script, hard(grace)).await;
        stop(&child);
        to_the_end(&mut child).await;
        assert!(child.wait().await.is_ok());
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let mut child = spawn(shell("(setsid sleep 300 &) ; sleep 300 & exit 3"), hard(Duration::ZERO))
        .await
        .expect("a child");
    to_the_end(&mut child).await;
    assert_eq!(child.wait().await.expect("its end").code(), Some(3));
}

#[tokio::test]
async fn a_program_has_time_to_end_by_itself() {
    // The group gets the signal once from here and once from the watchdog: the second one finds the trap gone.
    let script = "trap 'trap \"\" TERM; echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done";
    let (mut child, _) = started(script, hard(Duration::from_secs(60))).await;
    stop(&child);
    assert_eq!(to_the_end(&mut child).await, "bye\n");
    assert_eq!(child.wait().await.expect("its end").code(), Some(5));
}

#[tokio::test]
async fn a_second_stop_ends_the_grace() {
    let (mut child, _) =
        started("trap '' TERM; echo up; while :; do sleep 0.05; done", hard(Duration::from_secs(60))).await;
    let mut output = child.stdout.take().expect("its output");
    let mut rest = String::new();
    // Again and again, because one that comes while the watchdog sends its own is not told from that.
    let again = async {
        loop {
            stop(&child);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        read = output.read_to_string(&mut rest) => { read.expect("the end"); }
        () = again => {}
        () = tokio::time::sleep(PATIENCE) => panic!("still there"),
    }
}

#[tokio::test]
async fn descriptors_of_this_process_are_not_inherited() {
    // One without the flag that closes it at exec.
    let file = tempfile::tempfile().expect("a file");
    let kept = rustix::io::dup(&file).expect("a descriptor");
    rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).expect("its flag");
    for setup in [ChildSetup::default(), ChildSetup::tied_to_parent()] {
        let mut child = spawn(shell("ls /proc/self/fd | wc -l"), setup).await.expect("a child");
        // 0, 1, 2 and that of the listing.
        assert_eq!(to_the_end(&mut child).await.trim(), "4");
    }
}

#[tokio::test]
#[allow(clippy::unnecessary_cast, reason = "the type of these constants differs between C libraries")]
async fn limits_are_in_force() {
    let setup = ChildSetup {
        rlimits: vec![(libc::RLIMIT_NOFILE as u32, 77), (libc::RLIMIT_CORE as u32, 0)],
        ..ChildSetup::tied_to_parent()
    };
    let mut child = spawn(shell("ulimit -n; ulimit -c"), setup).await.expect("a child");
    assert_eq!(to_the_end(&mut child).await, "77\n0\n");
}

#[tokio::test]
async fn the_watchdog_gives_back_the_heap() {
    // As much as a large parent has, touched so that it is really there.
    let heap = vec![1u8; 64 << 20];
    let (child, _) = started("echo up; exec sleep 300", ChildSetup::tied_to_parent()).await;
    let statm = format!("/proc/{}/statm", child.id().expect("its id"));
    let resident = || {
        let pages = std::fs::read_to_string(&statm).expect("its memory");
        pages.split(' ').nth(1).expect("resident pages").parse::<u64>().expect("a number") * 4096
    };
    // The program may be up before the watchdog has come to it.
    let began = Instant::now();
    while resident() >= 32 << 20 {
        assert!(began.elapsed() < PATIENCE, "{} MiB are kept", resident() >> 20);
        std::thread::yield_now();
    }
    assert_eq!(heap[heap.len() - 1], 1);
    stop(&child);
}

#[tokio::test]
async fn children_are_spawned_side_by_side() {
    let children = (0..8).map(|_| async {
        let mut child = spawn(shell("exit 0"), ChildSetup::tied_to_parent()).await.expect("a child");
        child.wait().await.expect("its end").code()
    });
    let codes = futures_util::future::join_all(children).await;
    assert_eq!(codes, vec![Some(0); 8]);
}
