//! The closing tags of a text dialect as stop sequences.
//!
//! Decides which tags a model is stopped at, so that a small one cannot go on and invent the result of
//! its own call, and which tag is put back where the server took it out of the text.

use core_protocol::{Dialect, DialectName};

/// What ends thinking inside a text: tags before it are no calls.
const THINKING_END: &str = "</think>";

/// The stop sequences of one dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopTags(pub(crate) DialectName);

impl StopTags {
    /// The tags, each once, in the order of the dialect.
    pub(crate) fn sequences(self) -> Vec<&'static str> {
        let mut closers: Vec<&'static str> = Vec::new();
        for (_, closer) in self.pairs() {
            if !closers.contains(&closer) {
                closers.push(closer);
            }
        }
        closers
    }

    /// The tag that is missing at the end of a text whose model was done. `stopped_at`: the sequence
    /// that the server names, where it does; without that, a call that is open tells.
    pub(crate) fn missing(self, text: &str, stopped_at: Option<&str>) -> Option<&'static str> {
        let said = text.rfind(THINKING_END).map_or(text, |at| text.get(at..).unwrap_or_default());
        let end = said.trim_end();
        let closers = self.sequences();
        if closers.iter().any(|closer| end.ends_with(closer)) {
            return None;
        }
        if let Some(named) = closers.into_iter().find(|closer| Some(*closer) == stopped_at) {
            return Some(named);
        }
        self.pairs()
            .filter_map(|(opener, closer)| {
                let opened = said.rfind(opener)?;
                said.rfind(closer).is_none_or(|closed| closed < opened).then_some((opened, closer))
            })
            .max()
            .map(|(_, closer)| closer)
    }

    /// Opening and closing tags of whole calls: what may as well be plain text is none, and what only
    /// begins a tag (`<function=`) stands inside of one.
    fn pairs(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let dialect: &'static dyn Dialect = self.0.dialect();
        dialect
            .openers()
            .iter()
            .filter(|opener| !opener.bare && opener.literal.ends_with('>'))
            .map(|opener| (opener.literal, opener.closer))
    }
}

#[cfg(test)]
mod tests {
    use core_protocol::DialectName;

    use super::StopTags;

    #[test]
    fn every_dialect_has_its_tags() {
        let check =
            |dialect: DialectName, expected: &[&str]| assert_eq!(StopTags(dialect).sequences(), expected);
        check(DialectName::McpXml, &["</use_mcp_tool>"]);
        check(DialectName::Hermes, &["</tool_call>"]);
        check(DialectName::QwenXml, &["</tool_call>"]);
        check(DialectName::Auto, &["</use_mcp_tool>", "</tool_call>"]);
    }

    #[test]
    fn only_what_was_taken_out_is_put_back() {
        let check = |text: &str, stopped_at: Option<&str>, expected: Option<&str>| {
            assert_eq!(StopTags(DialectName::Auto).missing(text, stopped_at), expected, "{text}");
        };
        check("<use_mcp_tool>\n…</arguments>\n", None, Some("</use_mcp_tool>"));
        check("<use_mcp_tool>…</use_mcp_tool>\n", None, None);
        check("<use_mcp_tool>…</use_mcp_tool> and <tool_call>{}", None, Some("</tool_call>"));
        check("<tool_call>{}", Some("</tool_call>"), Some("</tool_call>"));
        check("no opening tag {}", Some("</tool_call>"), Some("</tool_call>"));
        check("no opening tag {}", Some("END"), None);
        check("plain text", None, None);
        check("<think>I could use <use_mcp_tool> here.</think>The answer is 4.", None, None);
        check("", None, None);
    }
}
