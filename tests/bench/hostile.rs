//! A document that takes its reader along takes neither the suite nor the machine along.

use std::path::Path;

use serde_json::Value;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, reply_to};

/// One page of eight hundred bytes, which unpack to more than a gigabyte: a stream packed three times.
const BOMB: &str = "tests/fixtures/bomb.pdf";

#[tokio::test]
async fn a_document_of_gigabytes_costs_its_own_sample_one_call() {
    let bomb = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(BOMB).canonicalize().unwrap();
    let call = format!(
        "<use_mcp_tool>\n<server_name>tool-reading</server_name>\n<tool_name>convert_to_markdown</tool_name>\n\
         <arguments>\n{}\n</arguments>\n</use_mcp_tool>",
        serde_json::json!({ "uri": bomb })
    );
    let server = ScriptedServer::start_with(move |request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_first = !messages.iter().any(|message| message["role"] == "assistant");
        let opens_it = messages.iter().any(|message| message.to_string().contains("number<1>"));
        if is_first && opens_it { Reply::text(&call).usage(100, 10) } else { reply_to(request) }
    })
    .await;
    let home = Home::with_model(&server)
        .set("agent.main_agent.tools=[task_planner, tool-reading]")
        .set(&format!("tools.reading.allowed_roots=[{}]", bomb.display()));
    let tasks = home.tasks(3);
    let arguments =
        ["run", tasks.to_str().unwrap(), "--judge", "mock", "--max-concurrent", "3", "--out", "out"];
    home.run(&arguments).await.expect(0);
    let rows = home.rows("out");
    let states: Vec<&Value> = rows.iter().map(|row| &row["state"]).collect();
    assert!(rows.len() == 3 && states.iter().all(|state| **state == "answered"), "{states:?}");
    let told = server.requests().iter().any(|request| {
        let said = request.body.to_string();
        // Its memory is used up, or on a busy machine its time.
        said.contains("`bomb.pdf` is too large to be read: reading it took ")
    });
    assert!(told, "the model was told");
}
