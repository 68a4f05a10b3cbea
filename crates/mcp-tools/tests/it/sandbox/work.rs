//! Honest work that must go on inside.

use serde_json::json;

use super::cell;

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
    ];
    for (code, expected) in cases {
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

#[tokio::test]
async fn numpy_works_where_it_is_installed() {
    let Some(client) = cell().await else { return };
    let reply =
        client.run("import numpy as np\nfloat((np.ones((200, 200)) @ np.ones((200, 200))).sum())").await;
    if reply.text.contains("ModuleNotFoundError") {
        println!("skipped: numpy is not installed for the interpreter of the sandbox");
        return;
    }
    assert_eq!(reply.text, "8000000.0");
}
