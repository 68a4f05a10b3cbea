//! The commands beside `ask`, and the forms of output.

use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, search};

#[tokio::test]
async fn text_puts_the_answer_alone_on_stdout() {
    let server = ScriptedServer::start(vec![
        Reply::text(search("a")).usage(100, 10),
        Reply::text("It is \\boxed{42}").usage(100, 10),
        Reply::text("It is \\boxed{42}").usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let said = home.run(&["ask", "What?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "42\n"), "{}", said.stderr);
    assert!(said.stderr.contains("research.google_search q=\"a\""), "{}", said.stderr);
    assert!(!said.stderr.contains('\u{1b}'), "colours without a terminal");
    let quiet = home.run(&["ask", "-q", "What?"]).await;
    assert_eq!(quiet.stderr.lines().filter(|line| line.contains("google_search")).count(), 0);
}

#[tokio::test]
async fn events_are_json_lines_and_the_same_as_in_the_log() {
    let server = ScriptedServer::start(vec![
        Reply::text(search("a")).usage(100, 10),
        Reply::text("It is \\boxed{42}").usage(100, 10),
        Reply::text("It is \\boxed{42}").usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let said = home.run(&["ask", "--output", "events", "What?"]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let streamed: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_delta = |event: &&Value| matches!(event["type"].as_str(), Some("text_delta" | "thinking_delta"));
    assert!(streamed.iter().any(|event| event["type"] == "text_delta"));
    let stored: Vec<&Value> = streamed.iter().filter(|event| !is_delta(event)).collect();
    let log = home.events();
    assert_eq!(stored, log.iter().collect::<Vec<_>>());
    assert_eq!(log[0]["type"], "run_started");
    assert_eq!(log[0]["question"], "What?");
    let last = log.last().unwrap();
    assert_eq!((last["type"].as_str(), last["answer"].as_str()), (Some("run_finished"), Some("42")));
    // Every message of a view was told before it was sent.
    let mut known = std::collections::BTreeSet::new();
    for event in &log {
        if event["type"] == "message" {
            assert!(known.insert(event["id"].as_str().unwrap()), "a message is told once");
        }
        for id in event["view"].as_array().into_iter().flatten() {
            assert!(known.contains(id.as_str().unwrap()), "{id}");
        }
    }
}

#[tokio::test]
async fn the_question_may_come_from_standard_input_or_with_a_file() {
    let server = ScriptedServer::start_with(|_| Reply::text("\\boxed{42}").usage(100, 10)).await;
    let home = Home::with_model(&server).with_research();
    let file = home.write("notes.md", "# Notes\n\nThe bridge opened in 1883.\n");
    let mut command = home.command(&["ask", "-", "-q", "-f", file.to_str().unwrap()]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut child.stdin.take().unwrap(), b"When did it open?\n")
        .await
        .unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let task = server.bodies()[0]["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(task.starts_with("When did it open?\n"), "{task}");
    assert!(task.contains("## notes.md") && task.contains("opened in 1883"), "{task}");
}

#[tokio::test]
async fn the_reader_answers_without_any_model() {
    let home = Home::new();
    let said = home.run(&["ask", "In which year was Johannes Kepler born?"]).await;
    assert_eq!((said.code, said.stdout.trim()), (0, "1571"), "{}", said.stderr);
    assert!(said.stderr.lines().next().unwrap().contains("reader"), "{}", said.stderr);
    // The question of the README's first command.
    let readme = include_str!("../../README.md");
    let question = readme.split("-- ask \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let said = home.run(&["ask", question]).await;
    assert_eq!((said.code, said.stdout.trim()), (0, "1797"), "{question}: {}", said.stderr);
    let (_, value) = home.ask("Which colour has the sky over the planet of the third wizard?").await;
    assert_eq!(value["status"], "no_answer", "{value}");
}

#[tokio::test]
async fn folders_of_ones_own_are_searched() {
    let home = Home::new();
    home.write(
        "papers/bridge.md",
        "# Ferrow Bridge\n\nThe Ferrow Bridge was opened on 3 May 1883 by the mayor.\n",
    );
    home.write("papers/mill.md", "# Ferrow Mill\n\nThe Ferrow Mill ground corn until 1911.\n");
    let said = home.run(&["ask", "--docs", "papers", "In which year was the Ferrow Bridge opened?"]).await;
    assert_eq!((said.code, said.stdout.trim()), (0, "1883"), "{}", said.stderr);
    let added = home.run(&["library", "add", "papers", "--name", "mine"]).await;
    assert_eq!(added.code, 0, "{}", added.stderr);
    let listed = home.run(&["library", "list", "--output", "json"]).await.json();
    assert_eq!(
        (&listed["libraries"][0]["name"], &listed["libraries"][0]["documents"]),
        (&"mine".into(), &2.into())
    );
    let said = home.run(&["ask", "In which year was the Ferrow Bridge opened?"]).await;
    assert_eq!((said.code, said.stdout.trim()), (0, "1883"), "{}", said.stderr);
    assert_eq!(home.run(&["library", "remove", "mine"]).await.code, 0);
    assert_eq!(home.run(&["library", "remove", "mine"]).await.code, 2);
}

#[tokio::test]
async fn configuration_is_shown_with_origins_and_without_secrets() {
    let home = Home::new().set("llm.api_key=sk-secret-0123456789").set("agent.main_agent.max_turns=7");
    let shown = home.run(&["config", "show"]).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("max_turns: 7") && !shown.stdout.contains("sk-secret"), "{}", shown.stdout);
    let as_json = home.run(&["config", "show", "--output", "json"]).await.json();
    assert_eq!(as_json["config"]["agent"]["main_agent"]["max_turns"], 7);
    let checked = home.run(&["config", "check"]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let wrong = Home::new().set("agent.max_turns=7").run(&["config", "check"]).await;
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("agent.max_turns"), "{}", wrong.stderr);
}

#[tokio::test]
async fn tools_doctor_completions_and_the_rest() {
    let home = Home::new();
    let tools = home.run(&["tools", "list", "--output", "json"]).await.json();
    let names: Vec<&str> =
        tools["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"library") && names.contains(&"tool-python"), "{names:?}");
    let called = home.run(&["tools", "call", "library", "search_library", r#"{"q": "Kepler"}"#]).await;
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert!(called.stdout.contains("Johannes Kepler"), "{}", called.stdout);
    // Without a key the web is the library, also where the agent does not use the server.
    let web = ["tools", "call", "search_and_scrape_webpage", "google_search", r#"{"q": "Kepler"}"#];
    let called = home.run(&web).await;
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert!(called.stdout.contains("\"link\":\"library://fathom/"), "{}", called.stdout);
    let doctor = home.run(&["doctor", "--output", "json"]).await;
    assert_eq!(doctor.code, 0, "{}", doctor.stderr);
    assert!(doctor.json()["findings"].as_array().unwrap().iter().any(|finding| finding["area"] == "sandbox"));
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).await;
        assert!(script.code == 0 && script.stdout.contains("fathom"));
    }
    assert!(home.run(&["--version"]).await.stdout.starts_with("fathom "));
    let resumed = home.run(&["resume", "runs/x"]).await;
    assert!(resumed.code == 2 && resumed.stderr.contains("not the directory of a run"), "{}", resumed.stderr);
}

#[tokio::test]
async fn a_built_in_server_speaks_mcp_over_standard_input_and_output() {
    let home = Home::new();
    let mut command = home.command(&["mcp", "serve", "library"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    ] {
        tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{line}\n").as_bytes()).await.unwrap();
    }
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let mut names = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("\"id\":2") {
            names = line;
            break;
        }
    }
    assert!(names.contains("search_library") && names.contains("read_document"), "{names}");
    drop(stdin);
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_call_by_hand_starts_its_server_and_no_other() {
    let home = Home::new().with_research();
    let file = home.path("mcp.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let begun = home.path("begun");
    config["mcpServers"]["mute"] =
        json!({"command": "sh", "args": ["-c", format!("touch {}; sleep 60", begun.display())]});
    home.write("mcp.json", &config.to_string());
    let scrape = |url: &str| json!({ "url": url }).to_string();

    let said = home
        .run(&["tools", "call", "research", "scrape_website", &scrape("https://example.org/picture")])
        .await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.stdout.trim(), "Before it.\n[image: image/png, 9 bytes; --output json has it]");
    assert!(!begun.exists(), "another server was started");

    // A page of 200 kB is cut; the file that the text names has the whole of it.
    let said =
        home.run(&["tools", "call", "research", "scrape_website", &scrape("https://example.org/200")]).await;
    let first = said.stdout.lines().next().unwrap();
    let start = first.find('/').unwrap();
    let path: String =
        first[start..].chars().take_while(|c| !c.is_whitespace() && !"]`\")".contains(*c)).collect();
    let path = path.trim_end_matches('.');
    assert_eq!(std::fs::read_to_string(path).unwrap().matches("word ").count(), 200 * 200, "{first}");
    std::fs::remove_dir_all(std::path::Path::new(path).ancestors().nth(2).unwrap()).unwrap();

    let said = home.run(&["tools", "call", "reserch", "scrape_website", "{}"]).await;
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("`research`"), "{}", said.stderr);
    let said = home.run(&["tools", "call", "research", "scrape", "{}"]).await;
    assert_eq!(said.code, 1);
    assert!(said.stdout.contains("scrape_website"), "{}", said.stdout);
}

#[tokio::test]
async fn files_below_the_current_folder_are_read_by_hand() {
    let home = Home::new();
    home.write("docs/a.md", "# About bees\n");
    let convert = |uri: &str| json!({ "uri": uri }).to_string();
    let here = home.path("").canonicalize().unwrap();
    for uri in ["docs/a.md".to_owned(), here.join("docs/a.md").display().to_string()] {
        let said = home.run(&["tools", "call", "tool-reading", "convert_to_markdown", &convert(&uri)]).await;
        assert!(
            said.code == 0 && said.stdout.contains("About bees"),
            "{uri}: {} {}",
            said.stdout,
            said.stderr
        );
    }
    let outside = ["tools", "call", "tool-reading", "convert_to_markdown", &convert("/etc/hostname")];
    let said = home.run(&outside).await;
    assert!(said.code == 1 && said.stdout.contains("tools.reading.allowed_roots"), "{}", said.stdout);
}

#[tokio::test]
async fn secrets_of_servers_are_nowhere() {
    let home = Home::new();
    let config = json!({"mcpServers": {
        "dies": {
            "command": "sh",
            "args": ["-c", "echo \"no use for FOO_KEY=$FOO_KEY\" >&2; exit 3"],
            "env": {"FOO_KEY": "sk-of-the-server-0123"},
        },
        "far": {"url": "http://127.0.0.1:9/mcp?api_key=in-the-address-0123"},
    }});
    home.write("mcp.json", &config.to_string());
    let home = home.set("agent.main_agent.tools=[dies, far]").set("llm.provider=reader");
    for arguments in [
        &["tools", "list"][..],
        &["tools", "list", "--output", "json"],
        &["doctor"],
        &["tools", "call", "dies", "x"],
        &["ask", "-v", "What?"],
    ] {
        let output = home.command(arguments).env("FATHOM_LOG", "info").output().await.unwrap();
        let said = crate::support::Said::from(output);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains("FOO_KEY=***"), "{arguments:?}: {all}");
        for secret in ["sk-of-the-server-0123", "in-the-address-0123"] {
            assert!(!all.contains(secret), "{arguments:?}: {all}");
        }
    }
}
