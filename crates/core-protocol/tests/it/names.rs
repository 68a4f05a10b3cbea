//! Function names: how server and tool are joined and told apart.

use core_protocol::ToolDefinition;
use core_protocol::names::{join, split};
use core_protocol::native::{function_name, split_function_name};
use serde_json::json;

use crate::calls::known_tools;

#[test]
fn names_are_told_apart() {
    let known = known_tools();
    for (name, without, with) in [
        ("tool", ("", "tool"), ("", "tool")),
        ("srv-tool", ("srv", "tool"), ("srv", "tool")),
        ("my-srv-tool", ("my-srv", "tool"), ("my-srv", "tool")),
        ("fs-read-file", ("fs-read", "file"), ("fs", "read-file")),
        ("read-file", ("read", "file"), ("fs", "read-file")),
        ("search", ("", "search"), ("web-search", "search")),
        ("web-search-search", ("web-search", "search"), ("web-search", "search")),
        ("web-search-no-such", ("web-search-no", "such"), ("web-search", "no-such")),
        ("twin", ("", "twin"), ("", "twin")),
        ("a-twin", ("a", "twin"), ("a", "twin")),
        ("-x", ("", "-x"), ("", "-x")),
        ("x-", ("", "x-"), ("", "x-")),
        ("-", ("", "-"), ("", "-")),
        ("", ("", ""), ("", "")),
        ("srv - tool", ("srv", "tool"), ("srv", "tool")),
        ("fs- list", ("fs", "list"), ("fs", "list")),
        ("fs- ", ("", "fs- "), ("", "fs- ")),
    ] {
        assert_eq!(split(name, &[]), without, "{name} without known tools");
        assert_eq!(split(name, &known), with, "{name} with known tools");
    }
}

#[test]
fn joined_names_are_told_apart_again() {
    let known = known_tools();
    for tool in &known {
        assert_eq!(
            split(&join(&tool.server, &tool.name), &known),
            (tool.server.as_str(), tool.name.as_str())
        );
        let offered = function_name(&tool.server, &tool.name);
        assert_eq!(split_function_name(&offered, &known), (tool.server.clone(), tool.name.clone()));
    }
}

#[test]
fn native_names_hold_only_what_providers_accept() {
    let tool = ToolDefinition {
        server: "my.server".to_owned(),
        name: format!("files/read {}", "long".repeat(30)),
        description: String::new(),
        input_schema: json!({}),
    };
    let name = function_name(&tool.server, &tool.name);
    assert!(name.len() <= 64 && name.starts_with("my_server-files_read_long"), "{name}");
    assert_eq!(split_function_name(&name, std::slice::from_ref(&tool)), (tool.server, tool.name));
}
