//! Suites from end to end.

use serde_json::json;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, counting_model, reply_to, wait_for};

#[tokio::test]
async fn our_own_suite_runs_offline() {
    let home = Home::new();
    let arguments = ["run", "smoke", "--llm", "reader", "--limit", "6", "--out", "smoke"];
    let said = home.run(&arguments).await.expect(0);
    assert!(said.stdout.contains("accuracy"), "{}", said.stdout);
    let report = home.report("smoke");
    assert_eq!(report["header"]["judge"]["judge"], "mock");
    assert_eq!(report["accuracy"]["samples"], 6);
    // The reader asks nobody, and that costs nothing.
    assert_eq!(report["effort"]["cost_usd"].as_f64(), Some(0.0));
    assert_eq!(report["header"]["prices"], json!({"input": 0.0, "output": 0.0, "cache_read": 0.0}));
    assert!(report["accuracy"]["mean"].as_f64().unwrap() >= 0.5, "{report}");
    // Once more: everything is done.
    home.run(&arguments).await.expect(0);
    assert_eq!(home.rows("smoke").len(), 6);
    let page = std::fs::read_to_string(home.path("smoke/report.html")).unwrap();
    assert!(page.contains("<figure>") && !page.contains("http://") && !page.contains("https://"));
    let listed = home.run(&["ls"]).await.expect(0).stdout;
    assert!(listed.contains("gaia-validation") && listed.contains("165"), "{listed}");
}

#[tokio::test]
async fn figures_over_epochs_levels_and_exports() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(9);
    let tasks = tasks.to_str().unwrap();
    home.run(&["run", tasks, "--epochs", "2", "--judge", "mock", "--out", "out"]).await.expect(0);
    let report = home.report("out");
    // 0, 3 and 6 are answered wrong, in both epochs.
    assert_eq!(report["accuracy"]["mean"].as_f64(), Some(2.0 / 3.0));
    assert_eq!(report["by_epoch"], json!([2.0 / 3.0, 2.0 / 3.0]));
    assert_eq!(report["correct_by"], json!({"equal": 12}));
    assert_eq!(report["groups"].as_array().unwrap().len(), 2);
    assert_eq!(report["pass"].as_array().unwrap().len(), 2);
    assert_eq!(report["effort"]["tokens"].as_f64(), Some(330.0));
    // Nobody knows what this model costs.
    assert!(report["effort"]["cost_usd"].is_null() && report["header"]["prices"] == json!({}), "{report}");

    let chats = home.run(&["export", "out", "--to", "chatml"]).await.expect(0).stdout;
    assert_eq!(chats.lines().count(), 12);
    let votes = home.run(&["vote", "out"]).await.expect(0).stdout;
    assert!(votes.lines().nth(1).unwrap().contains(r#""answer":"1","votes":2"#), "{votes}");
    home.run(&["export", "out", "--to", "mirothinker", "--out", "logs"]).await.expect(0);
    home.run(&["import", "logs/tasks", "--out", "imported"]).await.expect(0);
    let compared = home.run(&["compare", "out", "imported", "--json"]).await.expect(0).stdout;
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(
        (compared["paired"]["tasks"].as_u64(), compared["paired"]["difference"].as_f64()),
        (Some(9), Some(0.0))
    );
}

/// Predictions are not judged: the majority of the epochs goes into the file that the publishers take.
#[tokio::test]
async fn predictions_become_a_submission() {
    let asked = std::sync::Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    let server = ScriptedServer::start_with(move |request| {
        let text = request.body["messages"].to_string();
        let number = text.split("number<").nth(1).unwrap().split('>').next().unwrap().to_owned();
        let is_answer = !request.body["messages"][1]["content"].to_string().contains("use_mcp_tool")
            && request.body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .any(|message| message["role"] == "assistant");
        if !is_answer {
            return Reply::text("I know enough.");
        }
        let mut asked = asked.lock().unwrap();
        let epoch = asked.entry(number.clone()).or_insert(0);
        *epoch += 1;
        // One task after the other: the epochs of a task are asked in their order.
        let answers = match number.as_str() {
            "0" => ["Yes", "No", "yes."],
            "1" => ["12.5", "13", "14"],
            _ => ["?", "?", "?"],
        };
        Reply::text(format!("\\boxed{{{}}}", answers[(*epoch - 1) % 3]))
    })
    .await;
    let home = Home::with_model(&server)
        .set("benchmark.data.data_dir=predictions")
        .set("agent.skip_final_call=false");
    std::fs::create_dir(home.path("predictions")).unwrap();
    let tasks = std::fs::read_to_string(home.tasks(3)).unwrap();
    let open: String = tasks.lines().map(|line| line.replace("ground_truth", "deadline") + "\n").collect();
    std::fs::write(home.path("predictions/standardized_data.jsonl"), open).unwrap();
    let arguments = ["run", "futurex", "--epochs", "3", "--max-concurrent", "1", "--out", "out"];
    let said = home.run(&arguments).await.expect(0);
    assert!(
        said.stdout.contains("tasks without a right answer  all 3: nothing is judged"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("futurex: nothing is scored"), "{}", said.stdout);
    let said = home.run(&["vote", "out"]).await.expect(0);
    let file = std::fs::read_to_string(home.path("out/futurex_submission.jsonl")).unwrap();
    assert_eq!(
        file, "{\"id\":\"0\",\"prediction\":\"Yes\"}\n{\"id\":\"1\",\"prediction\":\"12.5\"}\n",
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("1 tasks are tied, and the answer of the earliest epoch was taken: 1"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("1 tasks have no answer, and left out"), "{}", said.stderr);
    let votes = home.run(&["vote", "out", "--to", "votes"]).await.expect(0).stdout;
    assert!(votes.contains(r#""tied_with":["13","14"]"#), "{votes}");
}

#[tokio::test]
async fn tasks_without_a_right_answer_are_counted_and_in_no_denominator() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let file = home.tasks(4);
    let tasks =
        std::fs::read_to_string(&file).unwrap().replace("\"ground_truth\":\"2\"", "\"ground_truth\":null");
    std::fs::write(&file, &tasks).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    let said = home.run(&arguments).await.expect(0);
    assert!(said.stderr.contains("warning: 1 of 4 tasks have no right answer"), "{}", said.stderr);
    assert!(
        said.stdout.contains("tasks without a right answer  1 of 4: not judged, in no denominator"),
        "{}",
        said.stdout
    );
    let report = home.report("out");
    assert_eq!(
        (&report["header"]["dataset"]["without_truth"], &report["accuracy"]["samples"]),
        (&json!(1), &json!(3))
    );
    assert_eq!((&report["not_scored"], &report["selected"]), (&json!(1), &json!(4)));
    // All of them: more likely a field of another name than a wish.
    std::fs::write(&file, tasks.replace("ground_truth", "solution")).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--judge", "mock", "--out", "none"];
    let said = home.run(&arguments).await.expect(0);
    assert!(said.stderr.contains("none of the 4 tasks has a right answer"), "{}", said.stderr);
    assert!(said.stderr.contains("field_mapping.ground_truth_field"), "{}", said.stderr);
}

/// Somebody else looks at the folder of a run from its beginning to its end.
#[tokio::test]
async fn a_run_is_watched_from_its_folder() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(24);
    let arguments =
        ["run", tasks.to_str().unwrap(), "--judge", "mock", "--max-concurrent", "1", "--out", "out"];
    let mut run = home.command(&arguments).spawn().unwrap();
    wait_for(&mut run, || home.rows_so_far("out") >= 1).await;
    // It ends by itself, and has seen the end.
    let watched = home.run(&["status", "out", "--watch"]).await.expect(0);
    let last = watched.stdout.lines().last().unwrap();
    assert!(last.starts_with("24/24 done · 16/24 correct · accuracy so far 66.7 % ["), "{}", watched.stdout);
    assert!(last.contains(" turns · 7920 tokens"), "{last}");
    assert!(run.wait().await.unwrap().success());

    // Of a run that was killed it says how to go on.
    let mut run = home.command(&[&arguments[..6], &["--out", "killed"]].concat()).spawn().unwrap();
    wait_for(&mut run, || home.rows_so_far("killed") >= 3).await;
    run.kill().await.unwrap();
    let watched = home.run(&["status", "killed", "--watch"]).await.expect(130);
    assert!(watched.stderr.contains("nobody is at work in killed"), "{}", watched.stderr);
    assert!(watched.stdout.contains("/24 done"), "{}", watched.stdout);
    let looked = home.run(&["status", "killed"]).await.expect(0);
    assert!(looked.stderr.contains("nobody is at work in killed"), "{}", looked.stderr);
    assert!(!looked.stdout.contains("running"), "{}", looked.stdout);
}

#[tokio::test]
async fn a_task_ends_with_its_first_right_epoch() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(6);
    let arguments =
        ["run", tasks.to_str().unwrap(), "--stop-on-pass", "3", "--judge", "mock", "--out", "out"];
    // Two tasks are never right and have three epochs; four need one. Nothing is left for the same command.
    for _ in 0..2 {
        let said = home.run(&arguments).await.expect(0);
        assert!(said.stderr.lines().last().unwrap().starts_with("10/10 done"), "{}", said.stderr);
    }
    assert_eq!(home.rows("out").len(), 2 * 3 + 4);
    let report = home.report("out");
    assert_eq!(report["any_of"]["share"]["mean"].as_f64(), Some(4.0 / 6.0));
    assert!(report["accuracy"].is_null() && report["complete"] == true, "{report}");
}

#[tokio::test]
async fn a_tool_that_shows_the_suite_contaminates_the_sample() {
    let server = counting_model().await;
    // The planner's answer repeats what was added to it.
    let home = Home::with_model(&server).set("benchmark.execution.canaries=[CANARY-4f9c1c4e-do-not-train]");
    let leaking = ScriptedServer::start_with(|request| {
        let reply = reply_to(request);
        let is_first = request.body["messages"].as_array().unwrap().len() == 2;
        let leaks = request.body.to_string().contains("number<1>");
        if is_first && leaks {
            return Reply::text(
                "<use_mcp_tool>\n<server_name>task_planner</server_name>\n<tool_name>add_todo</tool_name>\n<arguments>\n\
                 {\"titles\": [\"CANARY-4f9c1c4e-do-not-train\"]}\n</arguments>\n</use_mcp_tool>",
            );
        }
        reply
    })
    .await;
    let home = home.set(&format!("llm.base_url={}", leaking.base_url()));
    let tasks = home.tasks(3);
    home.run(&["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"]).await.expect(0);
    let rows = home.rows("out");
    let of = |id: &str| rows.iter().find(|row| row["task_id"] == id).unwrap();
    assert_eq!(
        (of("1")["state"].as_str(), of("1")["correct"].as_bool()),
        (Some("contaminated"), Some(false))
    );
    assert_eq!((of("2")["state"].as_str(), of("2")["correct"].as_bool()), (Some("answered"), Some(true)));
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_and_not_a_wrong_answer() {
    let server = ScriptedServer::start_with(|request| {
        if request.body.to_string().contains("number<1>") { Reply::status(401) } else { reply_to(request) }
    })
    .await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(3);
    let arguments = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    let said = home.run(&arguments).await.expect(1);
    let rows = home.rows("out");
    let failed = rows.iter().find(|row| row["task_id"] == "1").unwrap();
    assert_eq!(failed["state"], "error");
    assert!(said.stdout.contains("error"), "{}", said.stdout);
    // The same command tries it again, and only it.
    let before = server.requests().len();
    home.run(&arguments).await.expect(1);
    assert!(server.requests()[before..].iter().all(|request| request.body.to_string().contains("number<1>")));
    assert_eq!(home.rows("out").len(), 3);
}
