//! Whole runs with the settings that are off by default: facts, reports, summaries, a choice of tools; and what a run
//! says when something about it failed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, Said, call, processes_with, search, wait_until};

const BOXED: &str = "The answer is \\boxed{42}";

fn own_call(server: &str, tool: &str, arguments: &Value) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>{server}</server_name>\n<tool_name>{tool}</tool_name>\n<arguments>\n{arguments}\n</arguments>\n</use_mcp_tool>"
    )
}

fn replies(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::text(*text).usage(1_000, 50)).collect()
}

fn of_type(home: &Home, name: &str) -> Vec<Value> {
    home.events().into_iter().filter(|event| event["type"] == name).collect()
}

#[tokio::test]
async fn facts_are_before_the_model_when_it_answers() {
    let fact = own_call(
        "findings",
        "record_finding",
        &json!({"name": "birth year", "text": "Kepler was born in 1571.", "source": "https://example.org/1"}),
    );
    let server = ScriptedServer::start(replies(&[&search("Kepler"), &fact, "I know enough.", BOXED])).await;
    let home =
        Home::with_model(&server).with_research().set("agent.findings=true").set("agent.keep_tool_result=0");
    let (said, result) = home.ask("When was Kepler born?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    let last = server.requests()[3].last_content().to_owned();
    assert!(
        last.contains("- birth year: Kepler was born in 1571. (source: https://example.org/1)"),
        "{last}"
    );
    assert_eq!(of_type(&home, "finding").len(), 1);
    assert_eq!(result["tool_calls"]["by_tool"]["record_finding"], 1);
    assert_eq!(home.calls().len(), 1, "the research server is not asked for facts");
}

#[tokio::test]
async fn a_report_is_the_answer() {
    let report = "# Kepler\n\nBorn 1571 [1](https://example.org/1), in Weil [2](https://elsewhere.org/x).";
    let server = ScriptedServer::start(replies(&[&search("Kepler"), "Enough.", report])).await;
    let home = Home::with_model(&server).with_research().set("agent.answer_format=report");
    let (said, result) = home.ask("Who was Kepler?").await;
    assert_eq!((said.code, result["status"].as_str()), (0, Some("answered")), "{}", said.stderr);
    let checked = format!("{} [unverified source].", report.trim_end_matches('.'));
    assert_eq!((&result["answer"], &result["final_text"]), (&json!(checked), &json!(report)));
    assert_eq!(
        result["citations"],
        json!({"total": 2, "verified": 1, "unknown": ["https://elsewhere.org/x"]})
    );
    assert!(said.stderr.contains("1 of 2 citations"), "{}", said.stderr);
    assert!(server.requests()[2].last_content().contains("Every citation is checked"));
    // The log holds the report once as it was written, once as it was checked.
    assert_eq!(of_type(&home, "final_answer")[0]["answer"], checked);
    assert_eq!(of_type(&home, "run_finished")[0]["answer"], Value::Null);
}

#[tokio::test]
async fn a_report_is_alone_on_stdout() {
    let server = ScriptedServer::start(replies(&["Enough.", "# Report\n\nNothing was found."])).await;
    let home = Home::with_model(&server).set("agent.answer_format=report");
    let said = home.run(&["ask", "Who?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "# Report\n\nNothing was found.\n"), "{}", said.stderr);
    assert!(!said.stderr.contains("Nothing was found."), "{}", said.stderr);
}

#[tokio::test]
async fn the_history_becomes_a_summary() {
    let server = ScriptedServer::start_with(|request| {
        let last = request.last_content();
        let text = if last.contains("sum up this conversation") {
            "Tried queries so far; nothing found yet.".to_owned()
        } else if last.contains("\\boxed{") {
            BOXED.to_owned()
        } else {
            call(
                "scrape_website",
                &json!({"url": format!("https://example.org/{}/4", request.body.to_string().len())}),
            )
        };
        Reply::text(text).usage(1_000, 50)
    })
    .await;
    let home = Home::with_model(&server)
        .with_research()
        .set("agent.summarize_every=3")
        .set("agent.main_agent.max_turns=7");
    let said = home.run(&["ask", "--output", "events", "What?"]).await;
    let events: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = events.last().unwrap();
    assert_eq!((said.code, &result["turns"]), (4, &json!(7)), "{}", said.stderr);
    let summaries: Vec<&Value> = events.iter().filter(|event| event["type"] == "compressed").collect();
    assert_eq!(summaries.len(), 2);
    for summary in &summaries {
        assert_eq!((&summary["adopted"], &summary["under_limit"]), (&json!(true), &json!(true)), "{summary}");
        assert!(summary["after"].as_u64() < summary["before"].as_u64(), "{summary}");
    }
    // The view of every request can be rebuilt: the messages of its ids, in order, are what was sent.
    let message = |id: &str| {
        let owner = events.iter().find(|event| event["type"] == "message" && event["id"] == id).unwrap();
        owner["message"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let bodies = server.bodies();
    let asked: Vec<&Value> = events.iter().filter(|event| event["type"] == "llm_request").collect();
    assert_eq!(asked.len(), bodies.len());
    for (request, body) in asked.iter().zip(&bodies) {
        let sent: Vec<&str> = body["messages"].as_array().unwrap()[1..]
            .iter()
            .map(|sent| sent["content"].as_str().unwrap())
            .collect();
        let ids = request["view"].as_array().unwrap();
        assert_eq!(ids.len(), sent.len());
        for (id, sent) in ids.iter().zip(sent) {
            let owned = message(id.as_str().unwrap());
            assert!(sent.starts_with(&owned), "{id}: {owned:?} is not {sent:?}");
        }
    }
    // A summary of a summary: the second one replaces the first with its note, and three rounds less the newest.
    assert_eq!(summaries[1]["replaced"].as_array().unwrap().len(), 2 + 6);
}

#[tokio::test]
async fn tools_of_a_stage() {
    let server = ScriptedServer::start(replies(&[&search("a"), &search("b"), "Done.", BOXED])).await;
    let home = Home::with_model(&server)
        .with_research()
        .set("agent.tool_selection=[{server: research, tools: [hold, scrape_website], from_turn: 2}]");
    let (said, _) = home.ask("What?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let shows = |index: usize, tool: &str| {
        server.bodies()[index]["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains(&format!("Tool name: {tool}\n"))
    };
    assert!(shows(0, "google_search") && !shows(0, "hold") && shows(1, "hold"));
    assert_eq!(of_type(&home, "system_prompt").len(), 2);
    let hidden: Vec<Value> =
        of_type(&home, "llm_request").into_iter().map(|event| event["hidden"].clone()).collect();
    assert_eq!(hidden[0], json!(["research.scrape_website", "research.hold"]));
    assert_eq!(hidden[1], Value::Null);
}

#[tokio::test]
async fn the_next_pass_knows_how_the_last_one_ended_even_without_its_summary() {
    let server = ScriptedServer::start_with(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let task = messages[1]["content"].as_str().unwrap_or_default();
        if request.last_content().contains("This attempt ends here")
            || messages.last().unwrap()["role"] == "assistant"
        {
            return Reply::status(400).body(r#"{"error": {"message": "no"}}"#);
        }
        let text = if task.contains("used up all of its turns") {
            BOXED.to_owned()
        } else {
            search(&format!("q{}", messages.len()))
        };
        Reply::text(text).usage(1_000, 50)
    })
    .await;
    let home = Home::with_model(&server)
        .with_research()
        .set("agent.main_agent.max_turns=2")
        .set("agent.context_compress_limit=1");
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    let told = result["failure_summaries"][0].as_str().unwrap();
    assert!(told.starts_with("Failure type: incomplete") && told.contains("after 2 turns"), "{told}");
}

#[tokio::test]
async fn an_interrupted_call_is_counted_and_stops_at_once() {
    let server = ScriptedServer::start(vec![Reply::text(call("hold", &json!({"seconds": 60})))]).await;
    let home = Home::with_model(&server).with_research();
    let child = home.command(&["ask", "--output", "json", "What?"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    wait_until(|| home.events_so_far().iter().any(|event| event["type"] == "tool_call_started")).await;
    let began = Instant::now();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(said.code, 130, "{}", said.stderr);
    assert_eq!(said.json()["tool_calls"], json!({"total": 1, "failed": 1, "by_tool": {"hold": 1}}));
    assert_eq!(processes_with(&home.path("calls.log").display().to_string()), Vec::<String>::new());
}

#[tokio::test]
async fn what_stops_a_run_is_said_once() {
    let server = ScriptedServer::start_with(|_| {
        Reply::status(401).body(r#"{"error": {"message": "Incorrect API key provided"}}"#)
    })
    .await;
    let said = Home::with_model(&server).run(&["ask", "Who?"]).await;
    assert_eq!(said.code, 1);
    assert_eq!(said.stderr.matches("Incorrect API key provided").count(), 1, "{}", said.stderr);
}
