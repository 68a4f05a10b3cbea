//! Which tools a request shows, and that all the others can be called all the same.

use core_protocol::event::EventBody;
use orchestrator::config::ToolSelectionRule;
use serde_json::{Value, json};

use crate::harness::{Case, Record};
use crate::script::{Reply, boxed, search, text};

fn with_rules(rules: Value, replies: impl IntoIterator<Item = Reply>) -> Case {
    let rules: Vec<ToolSelectionRule> = serde_json::from_value(rules).expect("rules");
    Case::new(replies).config(|config| config.tool_selection = rules)
}

/// By request, the servers of the tools that are not shown.
fn hidden(record: &Record) -> Vec<String> {
    let requests = record.events.iter().filter_map(|event| match &event.body {
        EventBody::LlmRequest { hidden, .. } => Some(hidden.join(" ")),
        _ => None,
    });
    requests.collect()
}

fn system_prompts(record: &Record) -> Vec<(u32, bool)> {
    let told = record.events.iter().filter_map(|event| match &event.body {
        EventBody::SystemPrompt { text } => Some((event.turn, text.contains("Tool name: google_search"))),
        _ => None,
    });
    told.collect()
}

#[test]
fn tools_come_and_go_with_the_turns() {
    let rules = json!([{"server": "web", "to_turn": 2}, {"server": "left", "from_turn": 3}]);
    let record =
        with_rules(rules.clone(), [search("a"), search("b"), search("c"), text("Done."), boxed("42")]).run();
    let web = "web.google_search web.sogou_search web.scrape_website";
    assert_eq!(hidden(&record), ["left.lookup", "left.lookup", web, web, web]);
    // The prompt that holds the tools is told when it changes, and only then.
    assert_eq!(system_prompts(&record), [(0, true), (3, false)]);
    // What is not shown can be called.
    assert_eq!(record.ran().len(), 3);
    let native =
        with_rules(rules, [search("a"), search("b"), search("c"), text("Done."), boxed("42")]).native().run();
    let shown: Vec<usize> = native.requests.iter().map(|request| request.tools).collect();
    assert_eq!(shown, [7, 7, 5, 5, 5]);
    assert_eq!(system_prompts(&native).len(), 1);
}

#[test]
fn a_rollback_shows_the_tools_of_its_turn_again() {
    let rules = json!([{"server": "web", "to_turn": 1}]);
    let record = with_rules(rules, [search("a"), search("a"), text("Done."), boxed("42")]).run();
    let web = "web.google_search web.sogou_search web.scrape_website";
    assert_eq!(hidden(&record), ["", web, web, web]);
}

#[test]
fn the_best_tools_for_the_question() {
    let record = with_rules(json!([{"search": 1, "always": ["jina"]}]), [text("Done."), boxed("42")])
        .with(|case| case.task.question = "Run some python".into())
        .run();
    assert_eq!(
        hidden(&record)[0],
        "web.google_search web.sogou_search web.scrape_website left.lookup right.lookup agent-browsing.search_and_browse"
    );
}

#[test]
fn without_rules_all_are_shown() {
    let record = Case::new([search("a"), text("Done."), boxed("42")]).run();
    assert!(hidden(&record).iter().all(String::is_empty));
    assert_eq!(system_prompts(&record), [(0, true)]);
    // It is the first that is told.
    assert!(matches!(record.events[0].body, EventBody::SystemPrompt { .. }));
}

#[test]
fn what_was_shown_is_part_of_the_written_state() {
    let case = || {
        with_rules(
            json!([{"server": "web", "to_turn": 1}]),
            [search("a"), search("b"), text("Done."), boxed("42")],
        )
    };
    let (plain, written) = (case().run(), case().through_json().run());
    assert_eq!((plain.trace(), plain.events, plain.state), (written.trace(), written.events, written.state));
}
