//! What models are shown of every built-in server: prompts are written for these names, arguments and words.

use std::sync::Arc;

use async_trait::async_trait;
use mcp_tools::egress::{Egress, EgressOptions};
use mcp_tools::servers::library::{self, Collection, LibraryOptions};
use mcp_tools::servers::models::{
    MediaOptions, Transcriber, TranscriberOptions, TranscriptionOptions, reasoning_server,
    transcription_server, vision_server,
};
use mcp_tools::servers::planner;
use mcp_tools::servers::python::{self, PythonOptions, e2b};
use mcp_tools::servers::reading::{self, ReadingOptions};
use mcp_tools::servers::web::{self, WebOptions};
use mcp_tools::{
    ManagerOptions, ModelAnswer, ModelError, ModelQuestion, ServerSpec, ToolManager, ToolModel, Transport,
};

/// Never asked.
struct Silent;

#[async_trait]
impl ToolModel for Silent {
    async fn ask(&self, _: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        Err(ModelError::Failed("it is silent".to_owned()))
    }

    fn name(&self) -> &str {
        "silent"
    }
}

fn servers() -> Vec<ServerSpec> {
    let egress = || Egress::new(EgressOptions::default()).expect("a way out");
    let media = || MediaOptions::new(Vec::new(), egress());
    let model = || -> Arc<dyn ToolModel> { Arc::new(Silent) };
    let hearing = || TranscriptionOptions {
        transcriber: Transcriber::new(TranscriberOptions::new("http://127.0.0.1:1", "whisper-x"), egress()),
        model: None,
        media: media(),
    };
    let collection = Collection::documents("notes", Vec::new()).expect("a collection");
    let mut servers = vec![
        python::server(PythonOptions::default()),
        python::stateless_server(PythonOptions::default()),
        reading::server(ReadingOptions::default()),
        vision_server("tool-vqa", model(), media()),
        vision_server("tool-vqa-os", model(), media()),
        transcription_server("tool-transcribe", hearing()),
        transcription_server("tool-transcribe-os", hearing()),
        reasoning_server("tool-reasoning", model()),
        planner::server(),
        library::server(LibraryOptions::new(vec![collection], None)).expect("a library"),
    ];
    servers.extend(web::SERVERS.iter().map(|name| {
        web::server(name, WebOptions::new(egress())).expect("no library").expect("a known name")
    }));
    let mut specs: Vec<ServerSpec> = servers.into_iter().map(ServerSpec::built_in).collect();
    let e2b = e2b::server(e2b::E2bOptions::new("key", egress()));
    specs.push(ServerSpec::new("tool-python at E2B", Transport::InProcess(e2b)));
    specs
}

#[tokio::test]
async fn what_is_shown_of_the_built_in_servers() {
    let manager = ToolManager::start(servers(), ManagerOptions::default()).await;
    let failed: Vec<_> = manager.statuses().into_iter().filter(|status| status.error.is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let shown = serde_json::to_string_pretty(&*manager.definitions()).expect("JSON");
    insta::assert_snapshot!(shown);
    manager.shutdown().await;
}
