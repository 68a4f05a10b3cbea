//! Suites from end to end.

use serde_json::json;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, counting_model, reply_to};

#[tokio::test]
async fn our_own_suite_runs_offline() {
    let home = Home::new();
    let arguments = ["run", "smoke", "--llm", "reader", "--limit", "6", "--out", "smoke"];
    let said = home.run(&arguments).await.expect(0);
    assert!(said.stdout.contains("accuracy"), "{}", said.stdout);
    let report = home.report("smoke");
    assert_eq!(report["header"]["judge"]["judge"], "mock");
    assert_eq!(report["accuracy"]["samples"], 6);
    assert!(report["accuracy"]["mean"].as_f64().unwrap() >= 0.5, "{report}");
    // Once more: everything is done.
    home.run(&arguments).await.expect(0);
    assert_eq!(home.rows("smoke").len(), 6);
    let page = std::fs::read_to_string(home.path("smoke/report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("https://"));
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

#[tokio::test]
async fn a_task_ends_with_its_first_right_epoch() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(6);
    let arguments =
        ["run", tasks.to_str().unwrap(), "--stop-on-pass", "3", "--judge", "mock", "--out", "out"];
    home.run(&arguments).await.expect(0);
    // Two tasks are never right and have three epochs; four need one.
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
