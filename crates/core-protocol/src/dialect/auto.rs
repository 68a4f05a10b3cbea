//! `auto`: whichever of the three stands in the text.
//!
//! Decides only which reader a tag belongs to. Calls are written as `mcp_xml`.

use super::hermes::{self, Hermes};
use super::qwen_xml::{self, FUNCTION};
use super::{Dialect, McpXml, Opener};
use crate::ToolCall;
use crate::block::BlockReader;

const TAGS: &[&str] = &[
    "<use_mcp_tool>",
    "</use_mcp_tool>",
    "<server_name>",
    "</server_name>",
    "<arguments>",
    "</arguments>",
    hermes::OPEN,
    hermes::CLOSE,
    FUNCTION,
    "</function>",
    "<parameter=",
    "</parameter>",
];
const OPENERS: &[Opener] = &[
    Opener { literal: "<use_mcp_tool>", closer: "</use_mcp_tool>", bare: false },
    Opener { literal: hermes::OPEN, closer: hermes::CLOSE, bare: false },
    Opener { literal: FUNCTION, closer: "</function>", bare: false },
    Opener { literal: "{\"name\"", closer: hermes::CLOSE, bare: true },
    Opener { literal: "{ \"name\"", closer: hermes::CLOSE, bare: true },
];

/// Reads every built-in dialect.
#[derive(Debug, Clone, Copy)]
pub struct Auto;

impl Dialect for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn tags(&self) -> &[&'static str] {
        TAGS
    }

    fn openers(&self) -> &[Opener] {
        OPENERS
    }

    fn reader(&self, opener: usize, start: usize) -> Box<dyn BlockReader> {
        match opener {
            0 => McpXml.reader(0, start),
            1 => Box::new(qwen_xml::Reader::new(start + hermes::OPEN.len())),
            2 => Box::new(qwen_xml::Reader::lone(start)),
            bare => Hermes.reader(bare - 2, start),
        }
    }

    fn render_call(&self, call: &ToolCall) -> String {
        McpXml.render_call(call)
    }

    fn render_results(&self, results: &[(&ToolCall, String)]) -> String {
        McpXml.render_results(results)
    }

    fn split_results<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        Hermes.split_results(text).or_else(|| McpXml.split_results(text))
    }
}
