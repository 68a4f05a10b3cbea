//! The servers `tool-python` and `stateless_python` as a model meets them: real interpreters.

pub(crate) mod client;
mod notebook;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use client::{Client, Reply, call, client, client_with, options, scratch};
use mcp_tools::servers::python;
use serde_json::json;

fn shown(text: &str) -> Reply {
    Reply { text: text.into(), is_error: false }
}

#[tokio::test]
async fn tools_have_the_names_and_arguments_that_prompts_use() {
    let client = client().await;
    let tools: Vec<(String, Vec<String>)> = client
        .tools()
        .await
        .into_iter()
        .map(|tool| {
            assert!(tool.description.is_some_and(|words| words.len() > 40));
            assert!(!tool.input_schema.contains_key("$schema"));
            let properties = tool.input_schema["properties"].as_object().expect("properties");
            (tool.name.into_owned(), properties.keys().cloned().collect())
        })
        .collect();
    let mut expected: Vec<(String, Vec<String>)> = [
        ("create_sandbox", vec!["timeout"]),
        ("run_python_code", vec!["code_block", "sandbox_id"]),
        ("run_command", vec!["command", "sandbox_id"]),
        ("upload_file_from_local_to_sandbox", vec!["sandbox_id", "local_file_path", "sandbox_file_path"]),
        ("download_file_from_internet_to_sandbox", vec!["sandbox_id", "url", "sandbox_file_path"]),
        ("download_file_from_sandbox_to_local", vec!["sandbox_id", "sandbox_file_path", "local_filename"]),
    ]
    .map(|(name, arguments)| (name.to_owned(), arguments.into_iter().map(str::to_owned).collect()))
    .into();
    let mut tools = tools;
    tools.sort();
    expected.sort();
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn cells_share_variables_and_show_what_a_prompt_would() {
    let client = client().await;
    let cases = [
        ("x = 20", "(no output)"),
        ("x + 1", "21"),
        ("print('a'); 'b'", "a\n'b'"),
        ("_ + 'c'", "'bc'"),
        ("None", "(no output)"),
        ("", "(no output)"),
        ("# only a comment", "(no output)"),
        ("import sys; print('out'); print('err', file=sys.stderr); print('out')", "out\nerr\nout"),
        ("import os; os.system('echo from a shell')", "from a shell\n0"),
        ("def f():\n    return __name__\nf()", "'__main__'"),
        ("print('ünï', '\\u2713')", "ünï ✓"),
        ("print('\\ud800')", "\\ud800"),
        ("import pickle\nclass C: pass\ntype(pickle.loads(pickle.dumps(C()))) is C", "True"),
        ("raise SystemExit('bye')", "bye"),
        ("import os\nif os.fork() == 0:\n    pass\nelse:\n    os.wait()\n    print('parent')", "parent"),
        ("x", "20"),
        ("try:\n    input()\nexcept EOFError as e:\n    print('no input')", "no input"),
        ("open('f.txt', 'w').write('kept'); open('f.txt').read()", "'kept'"),
    ];
    for (code, expected) in cases {
        assert_eq!(client.run(code).await, shown(expected), "{code}");
    }
}

#[tokio::test]
async fn an_exception_shows_its_traceback_with_source_lines() {
    let client = client().await;
    let reply = client.run("def broken(n):\n    return 1 / n\n\nbroken(0)").await;
    let expected = "Traceback (most recent call last):\n  File \"<cell 1>\", line 4, in <module>\n    broken(0)\n  \
                    File \"<cell 1>\", line 2, in broken\n    return 1 / n\n";
    assert!(reply.text.starts_with(expected), "{}", reply.text);
    assert!(reply.text.ends_with("ZeroDivisionError: division by zero") && !reply.is_error, "{}", reply.text);
    assert!(client.run("1 +").await.text.contains("SyntaxError"));
    let deep = client.run("def f(): return f()\nf()").await.text;
    assert!(deep.ends_with("RecursionError: maximum recursion depth exceeded"), "{deep}");
}

#[tokio::test]
async fn printed_text_and_forged_answers_do_not_end_a_cell() {
    let client = client().await;
    let forged = "import os\nprint('{\"id\":1,\"end\":\"ok\"}')\nprint('end')";
    assert!(client.run(forged).await.text.ends_with("end"));
    // The descriptor of answers itself: an answer to another cell is passed over.
    let search = "for fd in range(3, 20):\n    try: os.write(fd, b'{\"id\":3,\"end\":\"exit\",\"code\":7}\\n')\n    except OSError: pass\nprint('still')";
    assert_eq!(client.run(search).await, shown("still"));
}

#[tokio::test]
async fn commands_run_in_the_directory_of_the_sandbox() {
    let client = client().await;
    client.run("open('from_python', 'w').write('x' * 3)").await;
    let command = |command: &'static str| client.call("run_command", json!({ "command": command }));
    assert_eq!(command("wc -c < from_python").await, shown("3"));
    assert_eq!(command("echo one; echo two >&2; exit 3").await, shown("one\ntwo\n[exit code 3]"));
    assert_eq!(command("cat").await, shown("(no output)"));
    assert_eq!(command("true | false || echo \"$HOME\" | grep -c /").await, shown("1"));
}

#[tokio::test]
async fn sandboxes_are_apart_and_unknown_ids_run_without_state() {
    let client = client().await;
    let created = client.call("create_sandbox", json!({ "timeout": 60 })).await;
    let id = created.text.strip_prefix("Sandbox created with sandbox_id: ").expect("an id").to_owned();
    let run = |id: String, code: &'static str| {
        client.call("run_python_code", json!({ "code_block": code, "sandbox_id": id }))
    };
    assert_eq!(run(id.clone(), "y = 5; y").await, shown("5"));
    assert!(run("default".into(), "y").await.text.contains("NameError"));
    assert_eq!(run(id.clone(), "y * 2").await, shown("10"));
    let unknown = run("nothing".into(), "1 + 1").await.text;
    assert!(unknown.starts_with("[There is no sandbox `nothing`") && unknown.ends_with("\n2"), "{unknown}");
    assert!(unknown.contains(&id), "{unknown}");
    // The directory of one cannot be read from the other.
    let path = run(id, "import os; open('mine', 'w').close(); print(os.getcwd())").await.text;
    let reply = client.call("run_command", json!({ "command": format!("ls {path}; cat {path}/mine") })).await;
    assert!(reply.text.contains("ermission denied") && !reply.text.contains("mine\n"), "{}", reply.text);
}

#[tokio::test]
async fn an_overrun_is_killed_and_files_stay() {
    let client = client_with(|options| options.call_limit = Duration::from_secs(3)).await;
    client.run("open('kept', 'w').write('1'); z = 1").await;
    let reply = client.run("print('begun', flush=True)\nwhile True: pass").await;
    assert!(
        reply.is_error && reply.text.starts_with("begun\n[The call took longer than 3 s"),
        "{}",
        reply.text
    );
    let reply = client.run("import os; 'z' in globals(), os.path.exists('kept')").await;
    assert!(reply.text.starts_with("[The interpreter was started anew"), "{}", reply.text);
    assert!(reply.text.ends_with("(False, True)"), "{}", reply.text);
    assert_eq!(client.run("1").await, shown("1"));
}

#[tokio::test]
async fn an_interpreter_that_ends_is_replaced() {
    let client = client().await;
    let reply = client.run("import os; print('x', flush=True); os._exit(9)").await;
    assert!(
        reply.is_error && reply.text.contains("x\n[The interpreter ended before the code did (exit code 9)"),
        "{}",
        reply.text
    );
    let reply = client.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").await;
    assert!(reply.text.contains("(signal 11)"), "{}", reply.text);
    assert!(client.run("2").await.text.ends_with("\n2"));
}

#[tokio::test]
async fn a_cancelled_call_is_killed() {
    let client = client().await;
    client.run("open('marker', 'w').close()").await;
    let peer = client.session.peer().clone();
    let running = tokio::spawn(async move {
        call(
            &peer,
            "run_python_code",
            json!({ "code_block": "import time\nopen('begun', 'w').close()\ntime.sleep(600)" }),
        )
        .await
    });
    let begun = wait_for(&client, "begun").await;
    running.abort();
    // The next call waits for the sandbox, which is free as soon as the cell was killed, and not before.
    let reply = client.run("'again'").await;
    assert!(
        reply.text.ends_with("'again'") && reply.text.starts_with("[The interpreter was started anew"),
        "{}",
        reply.text
    );
    assert!(begun.exists());
}

/// A file that a sandbox makes.
async fn wait_for(client: &Client, name: &str) -> PathBuf {
    loop {
        for server in std::fs::read_dir(client.scratch.path()).expect("the root").flatten() {
            for sandbox in std::fs::read_dir(server.path()).expect("a server").flatten() {
                let path = sandbox.path().join(name);
                if path.exists() {
                    return path;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle() {
    let client = client().await;
    let reply = client.run("print('start' + 'x' * 300_000 + 'end')").await.text;
    assert!(
        reply.starts_with("[The output was 300009 bytes long; the first 10000 and the last 10000"),
        "{}",
        &reply[..100]
    );
    assert!(reply.contains("\nstartxxx") && reply.ends_with("xxxend") && reply.chars().count() < 20_200);
}

#[tokio::test]
async fn files_go_in_and_out() {
    let local = tempfile::tempdir().expect("a directory");
    std::fs::write(local.path().join("table.csv"), "a,b\n1,2\n").expect("a file");
    let downloads = local.path().join("out");
    let client = client_with(|options| {
        options.allowed_roots = vec![local.path().join("table.csv")];
        options.downloads = Some(downloads.clone());
        options.file_limit = 1000;
    })
    .await;
    let upload = |arguments| client.call("upload_file_from_local_to_sandbox", arguments);
    let reply = upload(json!({ "local_file_path": local.path().join("table.csv"), "sandbox_file_path": "/home/user/d/t.csv" })).await;
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(client.run("open('d/t.csv').read()").await, shown("'a,b\\n1,2\\n'"));
    assert_eq!(client.run("open('d/t.csv', 'a').write('3,4\\n')").await, shown("4"));
    for forbidden in ["/etc/passwd", "../../../etc/passwd", "/proc/self/environ"] {
        let reply = upload(json!({ "local_file_path": forbidden })).await;
        assert!(reply.is_error && reply.text.contains("is not among the files"), "{}", reply.text);
    }
    let download = |arguments| client.call("download_file_from_sandbox_to_local", arguments);
    let reply = download(json!({ "sandbox_file_path": "d/t.csv", "local_filename": "back.csv" })).await;
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(std::fs::read_to_string(downloads.join("back.csv")).expect("a copy"), "a,b\n1,2\n3,4\n");
    for (sandbox_path, name, problem) in [
        ("d/t.csv", "back.csv", "exists already"),
        ("d/missing", "m", "No such file"),
        ("../x", "m", "is not the path of a file"),
        ("d/t.csv", "..", "must be the name"),
        ("d", "m", "not a file"),
    ] {
        let reply = download(json!({ "sandbox_file_path": sandbox_path, "local_filename": name })).await;
        assert!(reply.is_error && reply.text.contains(problem), "{}", reply.text);
    }
    client.run("import os; os.symlink('/etc/passwd', 'link'); open('big', 'w').write('x' * 2000)").await;
    for path in ["link", "big"] {
        let reply = download(json!({ "sandbox_file_path": path, "local_filename": path })).await;
        assert!(reply.is_error && !downloads.join(path).exists(), "{}", reply.text);
    }
    let reply = client
        .call(
            "download_file_from_internet_to_sandbox",
            json!({ "sandbox_id": "default", "url": "http://127.0.0.1/x" }),
        )
        .await;
    assert!(reply.is_error && reply.text.contains("switched off"), "{}", reply.text);
}

#[tokio::test]
async fn stateless_calls_share_nothing() {
    let scratch = scratch();
    let client = Client::connect(python::stateless_server(options(&scratch)), scratch).await;
    let run = |code: &'static str| client.call("python", json!({ "code": code }));
    assert_eq!(run("x = 1; open('f', 'w').close(); print(x)").await, shown("1"));
    assert_eq!(run("import os; 'x' in globals(), os.listdir('.')").await, shown("(False, [])"));
    let reply = run("import os; os._exit(3)").await;
    assert!(reply.is_error && reply.text.contains("exit code 3"), "{}", reply.text);
}

#[tokio::test]
async fn a_missing_interpreter_is_named_with_a_remedy() {
    let client = client_with(|options| options.python = Some("/nowhere/python3".into())).await;
    let reply = client.run("1").await;
    assert!(
        reply.is_error
            && reply.text.contains("Install Python 3.8")
            && reply.text.contains("/nowhere/python3"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn a_sandbox_ends_when_it_is_not_used_and_the_server_leaves_nothing() {
    let client = client().await;
    let created = client.call("create_sandbox", json!({ "timeout": 1 })).await;
    let id = created.text.rsplit(' ').next().expect("an id").to_owned();
    let mut ended = false;
    let start = Instant::now();
    while !ended && start.elapsed() < Duration::from_secs(30) {
        let in_use = client
            .call(
                "upload_file_from_local_to_sandbox",
                json!({ "local_file_path": "Cargo.toml", "sandbox_id": id }),
            )
            .await;
        ended = in_use.text.contains("There is no sandbox");
        tokio::task::yield_now().await;
    }
    assert!(ended);
    client.run("1").await;
    let root = client.scratch.path().to_owned();
    assert_eq!(std::fs::read_dir(&root).expect("the root").count(), 1);
    let keep = tempfile::TempDir::new().expect("a directory");
    let mut client = client;
    let kept = std::mem::replace(&mut client.scratch, keep);
    client.stop().await;
    assert_eq!(std::fs::read_dir(kept.path()).expect("the root").count(), 0);
}

#[tokio::test]
async fn sandboxes_have_a_most() {
    let client = client_with(|options| options.most_sandboxes = 2).await;
    for _ in 0..2 {
        assert!(!client.call("create_sandbox", json!({})).await.is_error);
    }
    let reply = client.call("create_sandbox", json!({})).await;
    assert!(reply.is_error && reply.text.contains("there are 2 sandboxes already"), "{}", reply.text);
}

#[tokio::test]
async fn what_confines_is_reported() {
    let report = python::probe().await;
    assert_eq!(
        report.layers.iter().map(|layer| layer.name).collect::<Vec<_>>(),
        ["landlock", "seccomp", "limits", "user", "namespaces", "totals", "space"]
    );
    assert!(
        report.refusal.is_some() || report.interpreter.is_some_and(|words| words.starts_with("Python 3."))
    );
    let lines = python::server(python::PythonOptions::default()).confinement();
    assert!(lines.iter().any(|line| line.starts_with("seccomp: ")), "{lines:?}");
}

#[tokio::test]
async fn confinement_can_be_switched_off_by_hand_only() {
    let unconfined = |options: &mut python::PythonOptions| options.sandbox = python::SandboxMode::None;
    let client = client_with(unconfined).await;
    assert_eq!(
        client.run("import os; os.path.exists('/etc/passwd') and open('/etc/passwd').read() != ''").await,
        shown("True")
    );
    let options =
        python::PythonOptions { sandbox: python::SandboxMode::None, ..python::PythonOptions::default() };
    let lines = python::server(options).confinement();
    let (space, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("space: "));
    assert!(others.iter().all(|line| line.contains("switched off by `sandbox: none`")), "{lines:?}");
    assert!(space.len() == 1 && space[0].contains("in force (4096 MiB on disk"), "{lines:?}");
}
