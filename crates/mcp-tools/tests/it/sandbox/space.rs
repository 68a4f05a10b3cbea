//! Space on disk: what fills it is ended, and what only looks large is not.

use mcp_tools::servers::python;
use serde_json::json;

use super::{cell, mark, running, until};
use crate::python::client::{self, Client, client_with};

/// Bytes that the files of a sandbox may take in these tests.
const MOST: u64 = 64 << 20;

/// A small sandbox.
async fn small() -> Client {
    client_with(|options| options.limits.disk = MOST).await
}

/// What the files below a folder take.
fn taken(folder: &std::path::Path) -> u64 {
    let output = std::process::Command::new("du").args(["-s", "-B1"]).arg(folder).output().expect("du");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// Each fills the disk in its own way, without end.
#[tokio::test]
async fn whatever_fills_the_disk_is_ended() {
    if cell().await.is_none() {
        return;
    }
    let fill = async |(code, part): (&str, &str)| {
        let client = small().await;
        let reply = client.run(code).await;
        assert!(reply.is_error && reply.text.contains(part), "{code}\n→ {reply:?}");
        // It was noticed in time: what passes in one look is far below what a disk has.
        let left = taken(client.scratch.path());
        println!("{} MiB were left by:\n{code}\n", left >> 20);
        assert!(left < 3 << 30, "{code}: {left}");
        client.stop().await;
    };
    let ways = [
        // Many files, each within the limit of a file.
        (
            "i = 0\nwhile True:\n    open(f'f{i}', 'wb').write(b'x' * 1000000)\n    i += 1",
            "took more than 64 MiB",
        ),
        // Names alone.
        ("i = 0\nwhile True:\n    open(f'e{i}', 'w').close()\n    i += 1", "took more than 64 MiB"),
        // At once.
        (
            "import os\ni = 0\nwhile True:\n    f = open(f'a{i}', 'wb')\n    os.posix_fallocate(f.fileno(), 0, 900 << 20)\n    i += 1",
            "took more than 64 MiB",
        ),
        // Without a name.
        (
            "import os\nkept = []\ni = 0\nwhile True:\n    if len(kept) < 200:\n        kept.append(open('x', 'wb'))\n        os.unlink('x')\n    f = kept[i % len(kept)]\n    f.write(b'x' * (1 << 20))\n    f.flush()\n    i += 1",
            "took more than 64 MiB",
        ),
        // By a program that it starts and does not wait for.
        (
            "import subprocess, time\nsubprocess.Popen(['sh', '-c', 'i=0; while :; do head -c 1000000 /dev/zero > b$i; i=$((i+1)); done'], start_new_session=True)\ntime.sleep(200)",
            "took more than 64 MiB",
        ),
        // Where nobody can look.
        (
            "import os, time\nwhile True:\n    for i in range(120):\n        os.mkdir('d'); os.chdir('d')\n    open('f', 'wb').write(b'x' * 1000)\n    time.sleep(200)",
            "too deep inside one another",
        ),
        // In folders that their owner has closed.
        (
            "import os\ni = 0\nwhile True:\n    os.mkdir(f'c{i}', 0o700)\n    open(f'c{i}/f', 'wb').write(b'x' * 1000000)\n    os.chmod(f'c{i}', 0)\n    i += 1",
            "took more than 64 MiB",
        ),
    ];
    futures_util::future::join_all(ways.map(fill)).await;
}

#[tokio::test]
async fn what_only_looks_large_is_not() {
    if cell().await.is_none() {
        return;
    }
    let client = small().await;
    let code = "import os, time\n\
                f = open('sparse', 'wb'); f.seek(900 << 20); f.write(b'x'); f.close()\n\
                open('file', 'wb').write(b'x' * (20 << 20))\n\
                for i in range(50): os.link('file', f'name{i}')\n\
                os.symlink('/usr', 'link')\n\
                os.makedirs('/'.join('d' * 60))\n\
                for i in range(30): open('again', 'wb').write(b'x' * (30 << 20)); time.sleep(0.01)\n\
                os.path.getsize('sparse')";
    let reply = client.run(code).await;
    assert_eq!((reply.text.as_str(), reply.is_error), ("943718401", false));
}

/// Files stay, and can be removed; nothing can be added before.
#[tokio::test]
async fn a_full_sandbox_can_be_emptied() {
    if cell().await.is_none() {
        return;
    }
    let client = small().await;
    client.run("x = 1").await;
    let fill = "i = 0\nwhile True:\n    open(f'f{i}', 'wb').write(b'x' * 1000000)\n    i += 1";
    let reply = client.run(fill).await;
    assert!(reply.text.contains("variables are gone, files are still there. Remove files"), "{reply:?}");
    let names = client.run("import os\nlen(os.listdir('.')) > 50").await;
    assert!(
        names.text.contains("take more space than they may: remove some") && names.text.contains("True"),
        "{names:?}"
    );
    let again = client.run(&fill.replace("f{i}", "g{i}")).await;
    assert!(again.is_error && again.text.contains("took more than 64 MiB"), "{again:?}");
    let upload = json!({ "sandbox_id": "default", "local_file_path": "Cargo.toml" });
    let refused = client.call("upload_file_from_local_to_sandbox", upload).await;
    assert!(refused.is_error && refused.text.contains("may take 64 MiB"), "{refused:?}");
    let removed = client.call("run_command", json!({ "command": "rm -f f* g*; ls | wc -l" })).await;
    assert!(!removed.is_error && removed.text.contains('0'), "{removed:?}");
    let written =
        client.run("import time\nopen('new', 'wb').write(b'x' * 10000000)\ntime.sleep(0.3)\n7").await;
    assert!(!written.is_error && written.text.ends_with('7'), "{written:?}");
    assert!(!client.run("8").await.text.contains("remove some"));
}

/// A program that a call has left behind.
#[tokio::test]
async fn between_calls_it_is_watched_too() {
    if cell().await.is_none() {
        return;
    }
    let client = small().await;
    let mark = mark(4);
    let leave = format!(
        "import subprocess\nx = 1\nsubprocess.Popen(['sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done; i=0; while :; do head -c 1000000 /dev/zero > b$i; i=$((i+1)); done', '{mark}'], start_new_session=True).pid > 0"
    );
    assert_eq!(client.run(&leave).await.text, "True");
    until(|| running(&mark) > 0, "it runs").await;
    // It begins when the call is over, and is ended without another.
    for server in std::fs::read_dir(client.scratch.path()).expect("the root").flatten() {
        for sandbox in std::fs::read_dir(server.path()).expect("a server").flatten() {
            if sandbox.path().is_dir() {
                std::fs::write(sandbox.path().join("go"), "").expect("a file");
            }
        }
    }
    until(|| running(&mark) == 0, "it is ended").await;
    let reply = client.run("x").await;
    assert!(
        reply.text.contains("[Between the calls the files of the sandbox took more than 64 MiB"),
        "{reply:?}"
    );
    assert!(reply.text.contains("NameError"), "{reply:?}");
}

#[tokio::test]
async fn a_call_in_a_sandbox_of_its_own_is_watched() {
    if cell().await.is_none() {
        return;
    }
    let scratch = client::scratch();
    let mut options = client::options(&scratch);
    options.limits.disk = MOST;
    let client = Client::connect(python::stateless_server(options), scratch).await;
    let code = "i = 0\nwhile True:\n    open(f'f{i}', 'wb').write(b'x' * 1000000)\n    i += 1";
    let reply = client.call("python", json!({ "code": code })).await;
    assert!(reply.is_error && reply.text.contains("its files removed. Keep less in files.]"), "{reply:?}");
    assert!(taken(client.scratch.path()) < 1 << 20);
}
