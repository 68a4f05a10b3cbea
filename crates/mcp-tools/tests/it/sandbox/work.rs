//! Honest work that must go on inside.

use serde_json::json;

use super::cell;
use crate::python::client::client_with;

#[tokio::test]
async fn the_standard_library_works() {
    let Some(client) = cell().await else { return };
    let cases = [
        ("import math, statistics, decimal, fractions; statistics.mean([1, 2, 3])", "2"),
        ("import hashlib; hashlib.sha256(b'x').hexdigest()[:8]", "'2d711642'"),
        (
            "import ssl, sqlite3\nc = sqlite3.connect('t.db'); c.execute('create table t(a)'); c.execute('insert into t values (7)'); c.commit(); c.execute('select a from t').fetchone()",
            "(7,)",
        ),
        (
            "import subprocess; subprocess.run(['sh', '-c', 'echo sub'], capture_output=True, text=True).stdout",
            "'sub\\n'",
        ),
        (
            "import tempfile\nwith tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as f: print(f.write(b'abc'))",
            "3",
        ),
        (
            "import shutil, os\nopen('a', 'w').write('x'); shutil.copy('a', 'b'); shutil.copy2('a', 'c'); shutil.move('c', 'd'); sorted(os.listdir('.'))[:3]",
            "['a', 'b', 'd']",
        ),
        (
            "import zipfile, tarfile\nwith tarfile.open('x.tgz', 'w:gz') as t: t.add('a')\ntarfile.open('x.tgz').extractall('out'); open('out/a').read()",
            "'x'",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(4).map(lambda x: x * x, range(5)))",
            "[0, 1, 4, 9, 16]",
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('true')\n    return await p.wait()\nasyncio.run(f())",
            "0",
        ),
        (
            "import multiprocessing as m\nq, r = m.Pipe()\np = m.get_context('fork').Process(target=r.send, args=(5,)); p.start(); v = q.recv(); p.join(); v",
            "5",
        ),
        (
            "import datetime, zoneinfo; datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone.utc).isoformat()",
            "'2024-07-01T00:00:00+00:00'",
        ),
        (
            "import json, re, csv, collections, itertools, random, uuid, platform, os; os.cpu_count() > 0",
            "True",
        ),
        (
            "import signal, time\ndef h(*_): raise TimeoutError\nsignal.signal(signal.SIGALRM, h); signal.setitimer(signal.ITIMER_REAL, 0.01)\ntry:\n    time.sleep(5)\nexcept TimeoutError: print('in time')",
            "in time",
        ),
        ("import subprocess\np = subprocess.Popen(['sleep', '60']); p.kill(); p.wait()", "-9"),
        ("open('mod.py', 'w').write('v = 11'); import mod; mod.v", "11"),
        (
            "import threading, queue\nq = queue.Queue()\nts = [threading.Thread(target=lambda n=n: q.put(n * n)) for n in range(8)]\n[t.start() for t in ts]; [t.join() for t in ts]\nsorted(q.queue)[-1]",
            "49",
        ),
        (
            "import mmap\nwith open('m', 'wb') as f: f.write(bytes(8192))\nwith open('m', 'r+b') as f, mmap.mmap(f.fileno(), 0) as v: v[:3] = b'abc'\nopen('m', 'rb').read(3)",
            "b'abc'",
        ),
        (
            "import sqlite3\nc = sqlite3.connect('w.db'); c.execute('pragma journal_mode=wal').fetchone()[0]",
            "'wal'",
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(client.run(code).await.text, expected, "{code}");
    }
}

#[tokio::test]
async fn processes_share_locks_and_memory_where_namespaces_are_in_force() {
    let Some(client) = cell().await else { return };
    if !super::in_force("namespaces").await {
        return;
    }
    for (code, expected) in [
        (
            "import multiprocessing as m\nwith m.get_context('fork').Pool(3) as p: r = p.map(len, ['a', 'bb', 'ccc'])\nr",
            "[1, 2, 3]",
        ),
        (
            "from multiprocessing import shared_memory as s\na = s.SharedMemory(create=True, size=100); a.buf[0] = 7\nb = s.SharedMemory(name=a.name); v = b.buf[0]; b.close(); a.close(); a.unlink(); v",
            "7",
        ),
        ("import os\nos.listdir('/dev/shm')", "[]"),
    ] {
        assert_eq!(client.run(code).await.text, expected, "{code}");
    }
}

#[tokio::test]
async fn usual_commands_work() {
    let Some(client) = cell().await else { return };
    let cases = [
        ("printf 'b\\na\\n' | sort | head -1", "a"),
        ("echo '#!/bin/sh\necho script' > s.sh; sh s.sh", "script"),
        ("mkdir -p d/e && cp s.sh d/e && find d -type f && rm -r d", "d/e/s.sh"),
        ("echo x > f; cat <(cat f)", "x"),
        ("date -d @0 -u +%Y", "1970"),
        ("ls / >/dev/null 2>&1 || echo closed", "closed"),
        ("dd if=/dev/zero of=z bs=1k count=3 2>/dev/null; wc -c < z", "3072"),
        (
            "awk 'BEGIN { print 6 * 7 }' | sed 's/4/four/' | grep -o four2 | tar --version >/dev/null && echo ok",
            "ok",
        ),
    ];
    for (command, expected) in cases {
        assert_eq!(
            client.call("run_command", json!({ "command": command })).await.text,
            expected,
            "{command}"
        );
    }
}

/// What the tests of libraries were written for.
const SCIENCE: [&str; 2] = ["numpy==2.4.6", "matplotlib==3.11.2"];

#[tokio::test]
async fn numpy_and_plots_work() {
    let python = tokio::task::spawn_blocking(|| crate::installed::python("science", &SCIENCE))
        .await
        .expect("a thread");
    let Some(python) = python else { return };
    let client = client_with(|options| options.python = Some(python)).await;
    let sum =
        client.run("import numpy as np\nfloat((np.ones((200, 200)) @ np.ones((200, 200))).sum())").await;
    if cell().await.is_none() {
        return;
    }
    assert_eq!(sum.text, "8000000.0");
    let code = "import matplotlib.pyplot as p\np.plot([1, 4, 9]); p.title('squares'); p.savefig('plot.png')\nopen('plot.png', 'rb').read(8)";
    let reply = client.run(code).await;
    assert!(reply.text.ends_with("b'\\x89PNG\\r\\n\\x1a\\n'"), "{}", reply.text);
}
