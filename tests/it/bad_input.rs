//! Everything that can be typed or configured wrongly: one paragraph that names the place and the remedy, the right
//! exit code, and the same as an `error` object with `--output json`.

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::Home;

/// Runs both forms and checks that each names all the parts.
async fn check(home: &Home, arguments: &[&str], code: i32, parts: &[&str]) {
    let text = home.run(arguments).await;
    assert_eq!(text.code, code, "{arguments:?}: {}", text.stderr);
    assert_eq!(text.stdout, "", "{arguments:?}");
    for part in parts {
        assert!(text.stderr.contains(part), "{arguments:?} does not say {part:?}: {}", text.stderr);
    }
    assert!(!text.stderr.contains("panicked"), "{}", text.stderr);

    let with_json: Vec<&str> = arguments.iter().copied().chain(["--output", "json"]).collect();
    let json = home.run(&with_json).await;
    assert_eq!(json.code, code, "{with_json:?}: {}", json.stderr);
    let value = json.json();
    assert_eq!(value["status"], "failed");
    let error = &value["error"];
    assert!(error["kind"].as_str().is_some_and(|kind| !kind.is_empty()), "{error}");
    let said =
        format!("{} {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap_or_default());
    for part in parts {
        assert!(said.contains(part), "{with_json:?} does not say {part:?}: {said}");
    }
}

#[tokio::test]
async fn questions_and_files() {
    let home = Home::new().set("llm.provider=reader");
    check(&home, &["ask", ""], 2, &["question is empty"]).await;
    check(&home, &["ask", "   \n"], 2, &["question is empty"]).await;
    check(&home, &["ask", "Who?", "-f", "absent.txt"], 2, &["absent.txt", "no such file"]).await;
    check(&home, &["ask", "Who?", "-f", "."], 2, &["not a file"]).await;
    check(&home, &["ask", "--no-such-option", "Who?"], 2, &["--no-such-option"]).await;
}

#[tokio::test]
async fn names_and_settings() {
    let home = Home::new();
    check(&home, &["ask", "Who?", "--agent", "standrad"], 2, &["standrad", "standard"]).await;
    check(&home, &["ask", "Who?", "--llm", "opena"], 2, &["opena", "openai"]).await;
    check(&home, &["ask", "Who?", "-s", "agent.main_agent.max_turn=3"], 2, &["max_turn", "max_turns"]).await;
    check(
        &home,
        &["ask", "Who?", "-s", "agent.main_agent.max_turns=many"],
        2,
        &["max_turns", "many", "number"],
    )
    .await;
    check(&home, &["ask", "Who?", "-s", "agent.main_agent.tools=[libary]"], 2, &["libary", "library"]).await;
    check(&home, &["ask", "Who?", "--conf-dir", "nowhere"], 2, &["nowhere"]).await;
    check(&home, &["ask", "Who?", "--mcp-config", "absent.json"], 2, &["absent.json"]).await;
}

#[tokio::test]
async fn broken_files() {
    let home = Home::new();
    home.write("conf/agent/mine.yaml", "main_agent:\n  max_turns: [3\n");
    check(&home, &["ask", "Who?", "--agent", "mine"], 2, &["mine.yaml", ":"]).await;
    home.write("conf/agent/mine.yaml", "main_agent:\n  max_turns: lots\n");
    check(&home, &["ask", "Who?", "--agent", "mine"], 2, &["mine.yaml:2", "max_turns", "lots"]).await;
    home.write("mcp.json", "{\"mcpServers\": {\"x\": {\"comand\": \"y\"}}}");
    check(&home, &["ask", "Who?", "--llm", "reader"], 2, &["mcp.json", "comand", "command"]).await;
    home.write("mcp.json", "{\"mcpServers\": ");
    check(&home, &["ask", "Who?", "--llm", "reader"], 2, &["mcp.json"]).await;
}

/// A run that begins and cannot go on: the JSON object is whole.
async fn check_run(home: &Home, kind: &str, parts: &[&str]) {
    let (said, value) = home.ask("Who?").await;
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert_eq!((value["status"].as_str(), value["stop_reason"].as_str()), (Some("failed"), Some("error")));
    assert_eq!(value["error"]["kind"], kind, "{value}");
    let text = format!("{} {}", value["error"]["message"], value["error"]["hint"]);
    for part in parts {
        assert!(text.contains(part), "{text} does not say {part:?}");
        assert!(said.stderr.contains(part), "{} does not say {part:?}", said.stderr);
    }
    assert!(!said.stderr.contains("test-key-0123456789") && !said.stdout.contains("test-key-0123456789"));
}

#[tokio::test]
async fn a_refused_key() {
    let server = ScriptedServer::start_with(|_| {
        Reply::status(401)
            .body(r#"{"error": {"message": "Incorrect API key provided: test-key-0123456789"}}"#)
    })
    .await;
    let home = Home::with_model(&server);
    check_run(&home, "authentication", &["api_key"]).await;
    assert_eq!(server.requests().len(), 1, "a refused key is not tried again");
    let log = home.events().iter().map(ToString::to_string).collect::<String>();
    assert!(!log.contains("test-key-0123456789"), "the key is in the log");
}

#[tokio::test]
async fn an_unreachable_model_server() {
    let server = ScriptedServer::start(vec![]).await;
    let home = Home::with_model(&server).set("agent.max_llm_failures=1").set("llm.retries.max_tries=2");
    let port = server.port().to_string();
    drop(server);
    // Known before anything begins: no run, no tries.
    check(&home, &["ask", "Who?"], 1, &[&port, "base_url"]).await;
    assert!(!home.path("runs").exists());
}

#[tokio::test]
async fn a_tool_server_that_does_not_start() {
    let server = ScriptedServer::start(vec![Reply::text("\\boxed{1}"), Reply::text("\\boxed{1}")]).await;
    let home = Home::with_model(&server).set("agent.main_agent.tools=[absent]");
    home.write("mcp.json", r#"{"mcpServers": {"absent": {"command": "no-such-program-here"}}}"#);
    let (said, value) = home.ask("Who?").await;
    // The run goes on without it and says so.
    assert_eq!((said.code, value["answer"].as_str()), (0, Some("1")), "{}", said.stderr);
    assert!(
        said.stderr.contains("absent") && said.stderr.contains("no-such-program-here"),
        "{}",
        said.stderr
    );
    let started = home.events().into_iter().find(|event| event["type"] == "run_started").unwrap();
    assert!(started["servers"][0]["error"].as_str().unwrap().contains("no-such-program-here"));
}
