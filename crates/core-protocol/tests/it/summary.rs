//! The failure summary of a reply: what is said after the thinking and before any call.

use core_protocol::{DialectName, ParseOptions, failure_summary_text};

const CALL: &str = "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>{}</arguments></use_mcp_tool>";

#[test]
fn it_is_the_text_after_thinking_and_before_any_call_else_the_thinking() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    for (reply, summary) in [
        ("<think>t</think> It failed. \n", "It failed."),
        ("It failed.", "It failed."),
        ("hm</think>It failed.", "It failed."),
        ("<think>a</think>x<think>b</think>It failed.", "It failed."),
        ("<think>t</think>It failed. {call} More.", "It failed."),
        ("It failed. {call}", "It failed."),
        ("<think>t</think>It failed. <use_mcp_tool>broken", "It failed."),
        ("It failed at a < b.", "It failed at a < b."),
        ("<think> t </think>", "t"),
        ("<think>t</think> \n{call}", "t"),
        ("<think>a</think>{call}<think>b</think>", "ab"),
        ("x<think>t</think>", "t"),
        ("<think>never closed", "never closed"),
        ("<think>{call} would do</think>", "{call} would do"),
        ("{call}", ""),
        ("", ""),
    ] {
        let (reply, summary) = (reply.replace("{call}", CALL), summary.replace("{call}", CALL));
        assert_eq!(failure_summary_text(&reply, &options), summary, "{reply}");
    }
    let in_thinking = ParseOptions { starts_in_thinking: true, ..options };
    assert_eq!(failure_summary_text("hm</think>It failed.", &in_thinking), "It failed.");
    assert_eq!(failure_summary_text("hm", &in_thinking), "hm");
}
