//! What cannot be run is said at the start, with the remedy; nothing is half-run, nothing overwritten.

use serde_json::{Value, json};

use crate::support::{Home, Said, counting_model};

#[tokio::test]
async fn errors_at_the_start() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    std::fs::write(
        home.path("bad.jsonl"),
        "{\"task_id\": \"1\", \"task_question\": \"Q?\"}\n{\"task_id\": \"2\"\n",
    )
    .unwrap();
    std::fs::write(home.path("empty.jsonl"), "\n").unwrap();
    std::fs::create_dir(home.path("foreign")).unwrap();
    std::fs::write(home.path("foreign/thesis.txt"), "years of work").unwrap();
    let tasks = home.tasks(2);
    let tasks = tasks.to_str().unwrap();
    for (arguments, parts) in [
        (vec!["run", "gaia-validatoin"], vec!["gaia-validatoin", "Did you mean `gaia-validation`?"]),
        (
            vec!["run", "gaia-validation", "--judge", "mock"],
            vec!["not here", "fathom-bench prepare gaia-validation"],
        ),
        (vec!["run", "absent.jsonl"], vec!["absent.jsonl", "cannot be read"]),
        (vec!["run", "bad.jsonl"], vec!["bad.jsonl:2", "--skip-bad-lines"]),
        (vec!["run", "empty.jsonl"], vec!["holds no tasks"]),
        (vec!["run", tasks, "--task", "11"], vec!["tasks has no task 11"]),
        (vec!["run", tasks, "--judge", "mock", "--out", "foreign"], vec!["foreign", "no benchmark run"]),
        (vec!["run", tasks, "--judge", "nobody"], vec!["--judge: there is no file `llm/nobody.yaml`"]),
        (
            vec!["run", tasks, "--judge", "mock", "-s", "agent.limits.cost=0.01", "--out", "unpriced"],
            vec!["agent.limits.cost", "no price is known of scripted", "llm.price"],
        ),
        (vec!["resume", "foreign"], vec!["no folder of a benchmark run"]),
        (vec!["report", "foreign"], vec!["no folder of a benchmark run"]),
        (vec!["score", "foreign"], vec!["no folder of a benchmark run"]),
        (vec!["import", "foreign", "--out", "new"], vec!["no task logs"]),
        (vec!["prepare", "smoke", "--from", "bad.jsonl"], vec!["no recipe for smoke"]),
        (vec!["prepare", "frames", "--from", "absent.tsv", "--out", "new"], vec!["absent.tsv"]),
    ] {
        let said = home.run(&arguments).await.expect(2);
        for part in parts {
            assert!(said.stderr.contains(part), "{arguments:?} says {}", said.stderr);
        }
        assert!(said.stdout.is_empty(), "{}", said.stdout);
    }
    assert!(server.requests().is_empty());
    let left: Vec<_> = std::fs::read_dir(home.path("foreign")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!home.path("unpriced").exists());
}

#[tokio::test]
async fn a_run_of_another_configuration_is_not_gone_on_with() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(2);
    let tasks = tasks.to_str().unwrap();
    home.run(&["run", tasks, "--judge", "mock", "--out", "out"]).await.expect(0);
    let before = std::fs::read(home.path("out/results.jsonl")).unwrap();
    for (more, part) in [
        (["--epochs", "2"], "epochs: 1 there, 2 asked for"),
        (["--limit", "1"], "tasks: 2 tasks there, 1 tasks asked for"),
        (["-s", "agent.main_agent.max_turns=3"], "config.agent.main_agent.max_turns"),
    ] {
        let arguments = [vec!["run", tasks, "--judge", "mock", "--out", "out"], more.to_vec()].concat();
        let said = home.run(&arguments).await.expect(2);
        assert!(said.stderr.contains(part) && said.stderr.contains("--out"), "{}", said.stderr);
    }
    assert_eq!(std::fs::read(home.path("out/results.jsonl")).unwrap(), before);
    // How many run at once is no other configuration.
    home.run(&["run", tasks, "--judge", "mock", "--out", "out", "--max-concurrent", "1"]).await.expect(0);
}

#[tokio::test]
async fn bad_lines_are_left_out_where_that_is_asked_for() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(3);
    let text = std::fs::read_to_string(&tasks).unwrap();
    std::fs::write(&tasks, text + "nonsense\n").unwrap();
    let tasks = tasks.to_str().unwrap();
    let said =
        home.run(&["run", tasks, "--judge", "mock", "--skip-bad-lines", "--out", "out"]).await.expect(0);
    assert!(said.stderr.contains("tasks.jsonl:4"), "{}", said.stderr);
    assert!(said.stdout.contains("bad records left out          1"), "{}", said.stdout);
}

#[tokio::test]
async fn other_prompts_and_other_columns_are_another_configuration() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(2);
    std::fs::create_dir_all(home.path("conf/prompts")).unwrap();
    let run = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out", "--conf-dir", "conf"];
    home.run(&run).await.expect(0);
    let column = "benchmark.data.field_mapping.ground_truth_field=task_id";
    let said = home.run(&[&run[..], &["-s", column]].concat()).await.expect(2);
    assert!(said.stderr.contains("field_mapping.ground_truth_field"), "{}", said.stderr);
    std::fs::write(home.path("conf/prompts/role_main.md"), "You are somebody else.\n").unwrap();
    for again in [&run[..], &["resume", "out"]] {
        let said = home.run(again).await.expect(2);
        assert!(said.stderr.contains("config.prompts.role_main.md"), "{}", said.stderr);
    }
    std::fs::remove_file(home.path("conf/prompts/role_main.md")).unwrap();
    home.run(&run).await.expect(0);
}

#[tokio::test]
async fn other_tool_servers_are_another_configuration() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(2);
    let run = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    // Runs go on without a server that does not start.
    let servers = |argument: &str, key: &str| {
        let server = json!({ "command": "true", "args": [argument], "env": { "PROBE_KEY": key } });
        let text = json!({ "mcpServers": { "probe": server } }).to_string();
        std::fs::write(home.path("mcp.json"), text).unwrap();
    };
    servers("one", "key-of-the-probe-1");
    home.run(&run).await.expect(0);
    let header = std::fs::read_to_string(home.path("out/header.json")).unwrap();
    assert!(header.contains("\"probe\"") && !header.contains("key-of-the-probe"), "{header}");
    // From elsewhere the servers are those of then.
    let elsewhere = tempfile::tempdir().unwrap();
    let out = home.path("out");
    let mut resume = home.command(&["resume", out.to_str().unwrap()]);
    Said::from(resume.current_dir(elsewhere.path()).output().await.unwrap()).expect(0);
    // A new key is no other server.
    servers("one", "key-of-the-probe-2");
    home.run(&run).await.expect(0);
    servers("two", "key-of-the-probe-2");
    for again in [&run[..], &["resume", "out"]] {
        let said = home.run(again).await.expect(2);
        assert!(said.stderr.contains("servers.probe.args: ["), "{}", said.stderr);
    }
    std::fs::remove_file(home.path("mcp.json")).unwrap();
    let said = home.run(&run).await.expect(2);
    assert!(
        said.stderr.contains("servers.probe: {") && said.stderr.contains("null asked for"),
        "{}",
        said.stderr
    );
    // The header of a version that did not keep them says nothing about them.
    let mut header: Value = serde_json::from_str(&header).unwrap();
    header.as_object_mut().unwrap().remove("servers").unwrap();
    std::fs::write(home.path("out/header.json"), header.to_string()).unwrap();
    home.run(&run).await.expect(0);
    // That of a later version is not read as if it were of this one.
    header["schema"] = json!(1_000);
    std::fs::write(home.path("out/header.json"), header.to_string()).unwrap();
    let said = home.run(&["report", "out"]).await.expect(2);
    assert!(said.stderr.contains("of a later fathom-bench (version 1000"), "{}", said.stderr);
}

#[tokio::test]
async fn a_folder_in_which_a_run_was_about_to_begin_is_free() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(2);
    std::fs::create_dir(home.path("out")).unwrap();
    std::fs::write(home.path("out/.lock"), "").unwrap();
    std::fs::write(home.path("out/header.part"), "{\"schema\":").unwrap();
    home.run(&["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"]).await.expect(0);
    assert_eq!(home.rows("out").len(), 2);
}

/// Half a file of training data is worse than none when nobody is told.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_behind_standard_output_is_no_success() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(2);
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    for arguments in [&run[..], &["report", "out"], &["export", "out", "--to", "chatml"]] {
        let child = home.command(arguments).stdout(full()).spawn().unwrap();
        let said = Said::from(child.wait_with_output().await.unwrap()).expect(2);
        assert!(said.stderr.contains("standard output cannot be written"), "{}", said.stderr);
    }
    // The run itself is whole.
    assert_eq!(home.rows("out").len(), 2);
    assert!(home.report("out")["complete"] == true);
}
