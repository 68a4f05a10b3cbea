//! The server over its transport, as an agent meets it.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::Instant;

use mcp_tools::servers::library::{Collection, LibraryOptions, server};
use mcp_tools::{ManagerOptions, ServerSpec, ToolManager};
use serde_json::{Map, Value, json};
use tempfile::tempdir;
use tokio_util::sync::CancellationToken;

use super::{document, folder_options};

async fn start(options: LibraryOptions) -> ToolManager {
    let spec = ServerSpec::built_in(server(options).unwrap());
    ToolManager::start(vec![spec], ManagerOptions::default()).await
}

async fn call(manager: &ToolManager, tool: &str, arguments: Value) -> (String, bool) {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let outcome = manager.call("library", tool, arguments, &CancellationToken::new()).await;
    (outcome.result.joined_text(), outcome.result.is_error)
}

#[tokio::test]
async fn search_and_read() {
    let mut curie =
        document("curie", "Marie Curie", "Marie Curie shared the Nobel Prize in Physics of 1903.");
    curie.license = Some("CC BY-SA 4.0".to_owned());
    let collection = Collection::documents("notes", vec![curie]).unwrap();
    let manager = start(LibraryOptions::new(vec![collection], None)).await;
    let definitions = manager.definitions();
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["read_document", "search_library"]);
    let schema = &definitions[1].input_schema;
    assert_eq!(schema["required"], json!(["q"]));
    assert_eq!(schema["properties"]["num"]["type"], "integer");

    let (text, failed) = call(&manager, "search_library", json!({"q": "who won in 1903", "num": "3"})).await;
    assert!(!failed, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let result = &answer["results"][0];
    assert_eq!(result["id"], "notes/curie");
    assert_eq!(result["title"], "Marie Curie");
    assert_eq!(result["source"], "source of curie");
    assert_eq!(result["snippet"], "Marie Curie shared the Nobel Prize in Physics of 1903.");
    assert!(result["score"].as_f64().unwrap() > 0.0);

    let (text, failed) = call(&manager, "read_document", json!({"id": "notes/curie"})).await;
    assert!(
        !failed && text.starts_with("# Marie Curie\n\nSource: source of curie (CC BY-SA 4.0)\n"),
        "{text}"
    );

    for (tool, arguments, part) in [
        ("search_library", json!({"q": " "}), "the query is empty"),
        ("read_document", json!({"id": "notes/curi"}), "`notes/curie`"),
        ("read_document", json!({"id": "notes/curie", "offset": 1000}), "past the end"),
    ] {
        let (text, failed) = call(&manager, tool, arguments).await;
        assert!(failed && text.contains(part), "{text}");
    }
    manager.shutdown().await;
}

#[tokio::test]
async fn the_first_search_waits_for_the_index() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    for number in 0..400 {
        fs::write(folder.path().join(format!("{number}.md")), format!("needle{number}")).unwrap();
    }
    let manager = start(folder_options(folder.path(), cache.path())).await;
    let (text, failed) = call(&manager, "search_library", json!({"q": "needle399"})).await;
    assert!(!failed && text.contains("notes/399.md"), "{text}");
    manager.shutdown().await;
}

#[tokio::test]
async fn an_index_that_is_damaged_while_in_use_is_built_anew() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(folder.path().join("a.md"), "alpha beta gamma ".repeat(500)).unwrap();
    let options = folder_options(folder.path(), cache.path());
    let manager = start(options).await;
    let (text, failed) = call(&manager, "search_library", json!({"q": "alpha"})).await;
    assert!(!failed, "{text}");
    manager.shutdown().await;

    let manager = start(folder_options(folder.path(), cache.path())).await;
    let store =
        walk(cache.path()).find(|path| path.extension().is_some_and(|found| found == "store")).unwrap();
    // In place: the file is mapped into memory.
    let mut file = fs::OpenOptions::new().write(true).open(store).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&[0xFF; 48]).unwrap();
    drop(file);
    for (tool, arguments) in
        [("search_library", json!({"q": "alpha"})), ("read_document", json!({"id": "notes/a.md"}))]
    {
        let (text, failed) = call(&manager, tool, arguments).await;
        assert!(!failed && text.contains("alpha beta gamma"), "{text}");
    }
    manager.shutdown().await;
}

fn walk(directory: &std::path::Path) -> Box<dyn Iterator<Item = std::path::PathBuf>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    Box::new(paths.flat_map(|path| if path.is_dir() { walk(&path) } else { Box::new(std::iter::once(path)) }))
}

#[tokio::test]
async fn a_folder_that_vanishes_is_named() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    let alone = server(folder_options(folder.path(), cache.path())).unwrap();
    let mut options = folder_options(folder.path(), cache.path());
    let other = Collection::documents("other", vec![document("x", "X", "alpha")]).unwrap();
    options.collections.push(other);
    let beside = server(options).unwrap();
    drop(folder);
    for (server, fails, part) in [
        (alone, true, "cannot open folder"),
        (beside, false, "The library `notes` was not searched: cannot open folder"),
    ] {
        let manager = ToolManager::start(vec![ServerSpec::built_in(server)], ManagerOptions::default()).await;
        let (text, failed) = call(&manager, "search_library", json!({"q": "alpha"})).await;
        assert!(failed == fails && text.contains(part), "{text}");
        assert_eq!(text.contains("other/x"), !fails, "{text}");
        manager.shutdown().await;
    }
}

/// Prints how long a server with as many documents as the shipped ones takes, first time included;
/// a figure, not a test of time.
#[tokio::test]
async fn seventy_articles_are_ready_at_once() {
    let articles = (0..70)
        .map(|number| {
            let body = format!("Article {number} says much about subject{number}. ").repeat(100);
            document(&number.to_string(), &format!("Article {number}"), &body)
        })
        .collect::<Vec<_>>();
    let started = Instant::now();
    let collection = Collection::documents("articles", articles).unwrap();
    let manager = start(LibraryOptions::new(vec![collection], None)).await;
    let (text, failed) = call(&manager, "search_library", json!({"q": "subject42"})).await;
    println!("ready and searched after {:.1?}", started.elapsed());
    assert!(!failed && text.contains("articles/42"), "{text}");
    manager.shutdown().await;
}
