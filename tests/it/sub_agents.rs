//! Whole runs with sub-agents: what each is sent, what is counted, what is stopped.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::scripted_server::{Reply, Request, ScriptedServer};
use crate::support::{Home, Said, call, processes_with, search, wait_until};

const BOXED: &str = "The answer is \\boxed{42}";

/// A home whose main agent has no tools but one agent, and that agent the research server.
fn home(server: &ScriptedServer) -> Home {
    Home::with_model(server)
        .with_research()
        .set("agent.main_agent.tools=[]")
        .set("agent.sub_agents={agent-browsing: {max_turns: 3, tools: [research]}}")
}

fn hand_over(subtask: &str) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>agent-browsing</server_name>\n<tool_name>search_and_browse</tool_name>\n\
         <arguments>\n{}\n</arguments>\n</use_mcp_tool>",
        json!({ "subtask": subtask })
    )
}

/// What the request is: the main agent's turns, its final answer, an agent's turns, its report.
fn asked(request: &Request) -> &'static str {
    let first = request.body["messages"][1]["content"].as_str().unwrap_or_default();
    let last = request.last_content();
    match (first.contains("Answer this subtask"), last) {
        (true, last) if last.contains("Write the report for the agent") => "report",
        (true, _) => "agent",
        (false, last) if last.contains("\\boxed{") => "answer",
        (false, _) => "main",
    }
}

fn turns(request: &Request) -> usize {
    request.body["messages"].as_array().unwrap().len() / 2
}

fn by_agent(home: &Home, agent: &str) -> Vec<Value> {
    home.events().into_iter().filter(|event| event["agent"] == agent).collect()
}

#[tokio::test]
async fn an_agent_searches_and_the_main_agent_answers() {
    let server = ScriptedServer::start_with(|request| {
        let text = match (asked(request), turns(request)) {
            ("main", 1) => hand_over("When was Kepler born?"),
            ("main", _) => "Kepler was born in 1571.".to_owned(),
            ("agent", 1) => search("Kepler birth"),
            ("agent", 2) => search("Kepler birth year"),
            ("agent", _) => "Found.".to_owned(),
            ("report", _) => {
                "<think>Let me write.</think>He was born in 1571 (https://example.org/1).".to_owned()
            }
            _ => BOXED.to_owned(),
        };
        Reply::text(text).usage(1_000, 10)
    })
    .await;
    let home = home(&server);
    let (said, result) = home.ask("When was Kepler born?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    // The main agent's turns; the tree's tokens, tool calls and agents.
    assert_eq!((&result["turns"], &result["sub_agents"]), (&json!(2), &json!(1)));
    assert_eq!(
        result["tool_calls"],
        json!({"total": 3, "failed": 0, "by_tool": {"google_search": 2, "search_and_browse": 1}})
    );
    assert_eq!(result["usage"]["input"], 7_000);
    assert_eq!(home.calls().len(), 2);

    let requests = server.requests();
    let system = |index: usize| requests[index].body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system(0).contains("## Server name: agent-browsing") && !system(0).contains("google_search"));
    assert!(system(1).contains("google_search") && !system(1).contains("agent-browsing"));
    assert!(system(1).contains("only what you have seen there"), "the role of an agent that browses");
    // The report is the result, without its thinking.
    let after = requests.iter().filter(|request| asked(request) == "main").nth(1).unwrap();
    assert_eq!(after.last_content(), "He was born in 1571 (https://example.org/1).");

    // Its events carry its own id, its messages ids of their own.
    let events = by_agent(&home, "agent-browsing-1");
    assert_eq!(events[0]["type"], "system_prompt");
    assert!(
        events
            .iter()
            .filter(|event| event["type"] == "message")
            .all(|event| { event["id"].as_str().unwrap().starts_with("agent-browsing-1.m") })
    );
    let told: Vec<Value> = home.events();
    let at = |name: &str| told.iter().position(|event| event["type"] == name).unwrap();
    assert!(
        at("tool_call_started") < at("sub_agent_started")
            && at("sub_agent_started") < at("sub_agent_finished")
    );
    let finished = &told[at("sub_agent_finished")];
    assert_eq!((&finished["agent"], &finished["id"]), (&json!("main"), &json!("agent-browsing-1")));
    assert_eq!(
        finished["summary"],
        json!({"stop_reason": "completed", "turns": 3, "call_attempts": 3, "rollbacks": 0})
    );
    // The main agent's next context check counts its own last call.
    let check = by_agent(&home, "main").into_iter().find(|event| event["type"] == "context_checked").unwrap();
    assert!(check["estimated"].as_u64().unwrap() < 1_010 + 4_096 + 1_000 + 1_000, "{check}");
}

#[tokio::test]
async fn a_failed_agent_is_a_tool_error() {
    let server = ScriptedServer::start_with(|request| match (asked(request), turns(request)) {
        ("main", 1) => Reply::text(hand_over("Find it.")).usage(100, 10),
        ("agent" | "report", _) => Reply::status(400).body(r#"{"error": {"message": "no such parameter"}}"#),
        ("main", _) => Reply::text("I do without.").usage(100, 10),
        _ => Reply::text(BOXED).usage(100, 10),
    })
    .await;
    let home = home(&server);
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    assert_eq!(result["tool_calls"]["failed"], 1);
    let failed = home.events().into_iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    assert_eq!(failed["error_kind"], "sub_agent_failed");
    let text = failed["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("agent-browsing") && text.contains("no such parameter"), "{text}");
}

#[tokio::test]
async fn agents_at_once_have_histories_of_their_own() {
    let server = ScriptedServer::start_with(|request| {
        let first = request.body["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
        let subtask = first.lines().next().unwrap_or_default().to_owned();
        let text = match (asked(request), turns(request)) {
            ("main", 1) => ["north", "south", "east"].map(hand_over).join("\n"),
            ("main", _) => "Done.".to_owned(),
            ("agent", 1) => search(&subtask),
            ("agent", _) => "Found.".to_owned(),
            ("report", _) => format!("Report on {subtask}."),
            _ => BOXED.to_owned(),
        };
        Reply::text(text).usage(100, 10)
    })
    .await;
    let home = home(&server).set("agent.tool_calls_per_turn=parallel");
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, &result["sub_agents"]), (0, &json!(3)), "{}", said.stderr);
    // In call order, whoever was first.
    let requests = server.requests();
    let after = requests.iter().filter(|request| asked(request) == "main").nth(1).unwrap();
    assert_eq!(after.last_content(), "Report on north.\nReport on south.\nReport on east.");
    for (number, subtask) in [(1, "north"), (2, "south"), (3, "east")] {
        let events = by_agent(&home, &format!("agent-browsing-{number}"));
        let searched = events.iter().find(|event| event["type"] == "tool_call_started").unwrap();
        assert_eq!(searched["arguments"]["q"], subtask);
    }
}

#[tokio::test]
async fn limits_are_for_all_agents_together() {
    let server = ScriptedServer::start_with(|request| {
        let text = match (asked(request), turns(request)) {
            ("main", 1) => hand_over("Find it."),
            ("agent", number) => search(&format!("query {number}")),
            ("report", _) => "What I have.".to_owned(),
            ("answer", _) => BOXED.to_owned(),
            (_, _) => "More.".to_owned(),
        };
        Reply::text(text).usage(1_000, 0)
    })
    .await;
    // One request of the main agent, two of the other one: its third turn is one too many.
    let home = home(&server).set("agent.limits.tokens=3000");
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["stop_reason"].as_str()), (4, Some("limit_tokens")), "{}", said.stderr);
    assert_eq!((&result["answer"], &result["capped"]), (&json!("42"), &json!(true)));
    let asked: Vec<&str> = server.requests().iter().map(asked).collect();
    assert_eq!(asked, ["main", "agent", "agent", "report", "answer"]);
    let hit: Vec<Value> = home
        .events()
        .into_iter()
        .filter(|event| event["type"] == "limit_reached")
        .map(|event| event["agent"].clone())
        .collect();
    assert_eq!(hit, [json!("agent-browsing-1"), json!("main")]);
}

/// Interrupts a run once its events hold `until`.
async fn interrupted(home: &Home, until: impl Fn(&Value) -> bool) -> Said {
    let child = home.command(&["ask", "--output", "json", "What?"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    wait_until(|| home.events_so_far().iter().any(&until)).await;
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output());
    Said::from(ended.await.expect("it does not stop").unwrap())
}

#[tokio::test]
async fn an_interruption_reaches_an_agent_in_its_tool_call_and_in_its_request() {
    for stalled in [false, true] {
        let server = ScriptedServer::start_with(move |request| match (asked(request), stalled) {
            ("main", _) => Reply::text(hand_over("Find it.")).usage(100, 10),
            (_, false) => Reply::text(call("hold", &json!({"seconds": 60}))).usage(100, 10),
            (_, true) => Reply::text("never to its end").stall_after(40),
        })
        .await;
        let home = home(&server);
        let said = interrupted(&home, |event| {
            let kind = if stalled { "llm_request" } else { "tool_call_started" };
            event["agent"] == "agent-browsing-1" && event["type"] == kind
        })
        .await;
        assert_eq!(said.code, 130, "{}", said.stderr);
        let result = said.json();
        assert_eq!(result["status"], "cancelled");
        // The call to the agent and the agent's own are counted, finished or not.
        let calls = if stalled { 1 } else { 2 };
        assert_eq!(result["tool_calls"]["total"], calls, "{result}");
        assert_eq!(result["sub_agents"], 1);
        let log = home.path("calls.log").display().to_string();
        assert_eq!(processes_with(&log), Vec::<String>::new());
        assert_eq!(home.events().last().unwrap()["type"], "run_finished");
    }
}

#[tokio::test]
async fn a_run_killed_inside_an_agent_goes_on_there() {
    let was_slow = AtomicBool::new(false);
    let server = ScriptedServer::start_with(move |request| {
        let text = match (asked(request), turns(request)) {
            ("main", 1) => hand_over("Find it."),
            ("agent", number @ 1..=2) => search(&format!("query {number}")),
            ("agent", _) => "Found.".to_owned(),
            ("report", _) => "It is 42.".to_owned(),
            ("main", _) => "Done.".to_owned(),
            _ => BOXED.to_owned(),
        };
        let is_third = asked(request) == "agent" && turns(request) == 3;
        let is_slow = is_third && !was_slow.swap(true, Ordering::SeqCst);
        Reply::text(text).usage(100, 10).delay(Duration::from_secs(if is_slow { 60 } else { 0 }))
    })
    .await;
    let home = home(&server);
    let mut child = home.command(&["ask", "-q", "What?"]).spawn().unwrap();
    let in_third_turn = |event: &Value| {
        event["agent"] == "agent-browsing-1" && event["type"] == "llm_request" && event["turn"] == 3
    };
    wait_until(|| home.events_so_far().iter().any(in_third_turn)).await;
    child.kill().await.unwrap();
    let run = std::fs::read_dir(home.path("runs")).unwrap().next().unwrap().unwrap().path();
    let said = home.run_as_is(&["resume", "--output", "json", &run.display().to_string()]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let result = said.json();
    assert_eq!((&result["answer"], &result["sub_agents"]), (&json!("42"), &json!(1)));
    assert_eq!(result["tool_calls"]["total"], 3);
    // Nothing that had ended was done again; the request in flight was.
    assert_eq!(home.calls().len(), 2);
    let asked: Vec<&str> = server.requests().iter().map(asked).collect();
    assert_eq!(asked, ["main", "agent", "agent", "agent", "agent", "report", "main", "answer"]);
}

#[tokio::test]
async fn contradictions_are_refused_with_place_and_remedy() {
    for (sets, parts) in [
        (
            vec!["agent.sub_agents={agent-x: {tools: [agent-x]}}"],
            vec!["agent.sub_agents.agent-x.tools[0]", "itself"],
        ),
        (
            vec!["agent.sub_agents={agent-x: {tools: [agent-y]}, agent-y: {tools: [library]}}"],
            vec!["agent.sub_agents.agent-x.tools[0]", "sub-agents do not call agents"],
        ),
        (
            vec!["agent.sub_agents={agent-x: {tools: []}}"],
            vec!["agent.sub_agents.agent-x", "at least one tool server"],
        ),
        (
            vec!["agent.sub_agents={helper: {tools: [library]}}"],
            vec!["agent.sub_agents.helper", "begins with `agent-`"],
        ),
        (
            vec!["agent.sub_agents={agent-x: {tools: [library]}}", "agent.main_agent.tools=[agent-x]"],
            vec!["agent.main_agent.tools[0]", "is offered to the main agent as it is"],
        ),
        (
            vec!["agent.sub_agents={agent-x: {tools: [libary]}}"],
            vec!["agent.sub_agents.agent-x.tools", "libary", "library"],
        ),
        (vec!["agent.limits.tokens=0"], vec!["agent.limits.tokens", "above 0"]),
        (vec!["agent.limits.wall=0"], vec!["agent.limits.wall", "above 0"]),
        (vec!["agent.main_agent.max_turns=0"], vec!["agent.main_agent.max_turns", "1 or more"]),
        (vec!["agent.tool_selection=[{from_turn: 2}]"], vec!["agent.tool_selection[0]", "`server`"]),
        (
            vec!["agent.tool_selection=[{server: library, from_turn: 3, to_turn: 2}]"],
            vec!["agent.tool_selection[0]", "not above"],
        ),
        (vec!["agent.summarize_every=3", "agent.token_limit=10"], vec!["agent.token_limit", "1000 or more"]),
    ] {
        let mut home = Home::new().set("llm.provider=reader");
        for set in &sets {
            home = home.set(set);
        }
        let (said, value) = home.ask("Who?").await;
        assert_eq!(said.code, 2, "{sets:?}: {}", said.stderr);
        for part in parts {
            assert!(said.stderr.contains(part), "{sets:?}: {} does not say {part:?}", said.stderr);
        }
        assert_eq!(value["status"], "failed");
    }
}

#[tokio::test]
async fn the_presets_with_agents_run() {
    for preset in ["multi_agent", "multi_agent_os"] {
        let server = ScriptedServer::start_with(|request| {
            let text = match (asked(request), turns(request)) {
                ("main", 1) => hand_over("Say something."),
                ("main", _) | ("agent", _) => "Done.".to_owned(),
                ("report", _) => "Something.".to_owned(),
                _ => BOXED.to_owned(),
            };
            Reply::text(text).usage(100, 10)
        })
        .await;
        let home = Home::with_model(&server);
        let said = home.run(&["ask", "--output", "json", "--agent", preset, "What?"]).await;
        assert_eq!((said.code, &said.json()["sub_agents"]), (0, &json!(1)), "{}", said.stderr);
    }
}
