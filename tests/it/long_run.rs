//! Two hundred turns with retention: what the model is sent at every turn, and what is left behind.

use serde_json::Value;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, processes_with, search};

const TURNS: usize = 200;
const KEEP: usize = 5;
const OMITTED: &str = "Tool result is omitted to save tokens.";

#[tokio::test]
async fn two_hundred_turns_with_retention() {
    let server = ScriptedServer::start_with(|request| {
        let messages = request.body["messages"].as_array().unwrap().len();
        let turn = messages / 2;
        if turn <= TURNS {
            Reply::text(search(&format!("query {turn}"))).usage(2000, 50)
        } else {
            Reply::text("The answer is \\boxed{200}").usage(2000, 50)
        }
    })
    .await;
    let home = Home::with_model(&server)
        .with_research()
        .set("agent.main_agent.max_turns=300")
        .set(&format!("agent.keep_tool_result={KEEP}"));
    let log = home.path("calls.log").display().to_string();
    let (said, result) = home.ask("How many turns?").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(result["answer"], "200");
    assert_eq!(result["turns"], TURNS + 1);
    assert_eq!(home.calls().len(), TURNS);

    let requests = server.bodies();
    assert_eq!(requests.len(), TURNS + 2);
    for (index, request) in requests[..=TURNS].iter().enumerate() {
        check_view(request, index);
    }
    insta::assert_snapshot!("view_of_turn_9", layout(&requests[8]));
    insta::assert_snapshot!("view_of_the_final_answer", layout_tail(&requests[TURNS + 1], 14));
    assert_eq!(processes_with(&log), Vec::<String>::new(), "the tool server is still there");
}

/// Request `index` (from 0) follows `index` turns.
fn check_view(request: &Value, index: usize) {
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2 + 2 * index);
    let contents: Vec<&str> = messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert!(contents[1].starts_with("How many turns?"));
    for turn in 1..=index {
        assert!(contents[2 * turn].contains(&format!("\"query {turn}\"")), "call of turn {turn}");
        let result = contents[2 * turn + 1];
        if turn + KEEP > index {
            assert!(
                result.contains(&format!("About query {turn}")),
                "request {index}, turn {turn}: {result}"
            );
        } else {
            assert_eq!(result, OMITTED, "request {index}, turn {turn}");
        }
    }
}

/// Role and shortened content of each message but the system prompt.
fn layout(request: &Value) -> String {
    layout_tail(request, usize::MAX)
}

fn layout_tail(request: &Value, count: usize) -> String {
    let messages = &request["messages"].as_array().unwrap()[1..];
    let skipped = messages.len().saturating_sub(count);
    let lines = messages.iter().enumerate().skip(skipped).map(|(index, message)| {
        let text: String =
            message["content"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = text.chars().take(90).collect();
        format!("{:03} {}: {short}", index, message["role"].as_str().unwrap())
    });
    lines.collect::<Vec<_>>().join("\n")
}
