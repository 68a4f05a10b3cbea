//! The five ways in which a run typically goes: it ends by itself, runs out of turns, is kept from repeating itself,
//! fails again and again, fills the context.

use serde_json::json;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, call, search};

fn replies(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::text(*text).usage(1000, 50)).collect()
}

const BOXED: &str = "The answer is \\boxed{42}";

#[tokio::test]
async fn it_ends_by_itself() {
    let scrape = call("scrape_website", &json!({"url": "https://example.org/page"}));
    let server = ScriptedServer::start(replies(&[
        &search("stock market 2026"),
        &scrape,
        &search("analysis"),
        "By this analysis the answer is 42.",
        BOXED,
    ]))
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(result["status"], "answered");
    assert_eq!(result["answer"], "42");
    assert_eq!(result["stop_reason"], "completed");
    assert_eq!((&result["turns"], &result["call_attempts"]), (&json!(4), &json!(4)));
    assert_eq!(result["tool_calls"]["by_tool"], json!({"google_search": 2, "scrape_website": 1}));
    assert_eq!(result["usage"]["input"], 5000);
    assert_eq!(result["usage"]["output"], 250);
    assert_eq!(
        home.decisions(),
        [
            "ask turn",
            "call",
            "ask turn",
            "call",
            "ask turn",
            "call",
            "ask turn",
            "ask final_answer",
            "stop completed"
        ]
    );
    assert_eq!(home.calls().len(), 3);
    // The prompt that asks for the answer holds the question and forbids calls.
    let last = server.requests()[4].last_content().to_owned();
    assert!(last.contains("What is the answer?") && last.contains("\\boxed{"), "{last}");
}

#[tokio::test]
async fn it_runs_out_of_turns() {
    let server = ScriptedServer::start_with(move |request| {
        let number = request.body["messages"].as_array().unwrap().len();
        if request.last_content().contains("\\boxed{") {
            Reply::text(BOXED).usage(1000, 50)
        } else {
            Reply::text(search(&format!("query {number}"))).usage(1000, 50)
        }
    })
    .await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=20");
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert_eq!((&result["status"], &result["answer"]), (&json!("answered"), &json!("42")));
    assert_eq!((&result["stop_reason"], &result["capped"]), (&json!("max_turns"), &json!(true)));
    assert_eq!(
        result["passes"],
        json!([{"stop_reason": "max_turns", "turns": 20, "call_attempts": 20, "rollbacks": 0}])
    );
    assert_eq!(home.calls().len(), 20);
}

#[tokio::test]
async fn out_of_turns_with_passes_left_it_begins_again() {
    let server = ScriptedServer::start_with(move |request| {
        let messages = request.body["messages"].as_array().unwrap();
        let task = messages[1]["content"].as_str().unwrap_or_default().to_owned();
        let last = request.last_content().to_owned();
        let text = if last.contains("Failure type") || messages.last().unwrap()["role"] == "assistant" {
            "Failure type: incomplete\nUseful findings: the decade is right".to_owned()
        } else if task.contains("the decade is right") {
            BOXED.to_owned()
        } else {
            search(&format!("query {}", messages.len()))
        };
        Reply::text(text).usage(1000, 50)
    })
    .await;
    let home = Home::with_model(&server)
        .with_research()
        .set("agent.main_agent.max_turns=2")
        .set("agent.context_compress_limit=2")
        .set("agent.keep_tool_result=5");
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(result["answer"], "42");
    assert_eq!(result["passes"].as_array().unwrap().len(), 2);
    assert_eq!(result["failure_summaries"].as_array().unwrap().len(), 1);
    assert_eq!(
        home.decisions(),
        [
            "ask turn",
            "call",
            "ask turn",
            "call",
            "ask failure_summary",
            "failure_summary",
            "stop max_turns",
            "ask turn",
            "ask final_answer",
            "stop completed"
        ]
    );
}

#[tokio::test]
async fn it_is_kept_from_repeating_itself() {
    let scrape = call("scrape_website", &json!({"url": "https://example.org/page"}));
    let server = ScriptedServer::start(replies(&[
        &search("stock market 2026"),
        &scrape,
        &search("stock market 2026"),
        &search("forecast"),
        BOXED,
        BOXED,
    ]))
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(
        result["rollbacks"],
        json!({"total": 1, "format_error": 0, "refusal": 0, "duplicate_query": 1, "tool_error": 0})
    );
    assert_eq!((&result["turns"], &result["call_attempts"]), (&json!(4), &json!(5)));
    assert_eq!(
        home.calls(),
        [
            r#"google_search {"q": "stock market 2026"}"#,
            r#"scrape_website {"url": "https://example.org/page"}"#,
            r#"google_search {"q": "forecast"}"#
        ]
    );
    // The reply that repeated itself is not in the request that follows it.
    let bodies = server.bodies();
    assert_eq!(bodies[3]["messages"], bodies[2]["messages"]);
    let rollback = home.events().into_iter().find(|event| event["type"] == "rollback").unwrap();
    assert_eq!((&rollback["consecutive"], &rollback["turn"]), (&json!(1), &json!(3)));
}

#[tokio::test]
async fn it_fails_again_and_again() {
    let broken = "<use_mcp_tool>\n<server_name>research</server_name>\nno more";
    let unreadable = call("scrape_website", &json!({"url": "https://example.org/broken"}));
    let server = ScriptedServer::start(replies(&[
        &search("first"),
        broken,
        broken,
        &search("first"),
        &unreadable,
        broken,
        BOXED,
    ]))
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(result["stop_reason"], "format_error");
    assert_eq!(
        result["rollbacks"],
        json!({"total": 4, "format_error": 2, "refusal": 0, "duplicate_query": 1, "tool_error": 1})
    );
    assert_eq!(
        home.decisions(),
        [
            "ask turn",
            "call",
            "ask turn",
            "rollback format_error",
            "ask turn",
            "rollback format_error",
            "ask turn",
            "rollback duplicate_query",
            "ask turn",
            "call execution_error",
            "rollback tool_error",
            "ask turn",
            "ask final_answer",
            "stop format_error"
        ]
    );
}

#[tokio::test]
async fn it_fills_the_context() {
    let scrape =
        |number: usize| call("scrape_website", &json!({"url": format!("https://example.org/p{number}/60")}));
    let server = ScriptedServer::start_with(move |request| {
        let length = request.body.to_string().len() as u64;
        let number = request.body["messages"].as_array().unwrap().len();
        if request.last_content().contains("\\boxed{") {
            Reply::text(BOXED).usage(length / 4, 20)
        } else {
            Reply::text(scrape(number)).usage(length / 4, 20)
        }
    })
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What is the answer?").await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert_eq!((&result["stop_reason"], &result["capped"]), (&json!("context_limit"), &json!(true)));
    let checks: Vec<_> =
        home.events().into_iter().filter(|event| event["type"] == "context_checked").collect();
    let (last, before) = checks.split_last().unwrap();
    assert!(before.iter().all(|check| check["over"] == false) && last["over"] == true);
    assert!(last["estimated"].as_u64().unwrap() >= 100_000);
    // The turn that did not fit is gone from the request for the final answer: neither its call nor its results.
    let requests = server.bodies();
    let (final_request, loop_requests) = requests.split_last().unwrap();
    let last_loop = loop_requests.last().unwrap()["messages"].as_array().unwrap().len();
    assert_eq!(final_request["messages"].as_array().unwrap().len(), last_loop);
}
