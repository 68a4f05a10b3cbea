//! The only place that writes to stdout and stderr. Results go to stdout, everything else to stderr.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use console::Style as Paint;
use core_protocol::event::ErrorReport;

use crate::args::{Color, Common};

/// How much is said on stderr, and in which colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colored: bool,
    pub(crate) terminal: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
}

impl Style {
    /// From the options and from what stderr is.
    pub(crate) fn new(common: &Common) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let colored = match common.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        console::set_colors_enabled_stderr(colored);
        Self { colored, terminal, quiet: common.quiet, verbose: common.verbose }
    }

    /// Text for stderr in the given look.
    pub(crate) fn paint(self, look: Look, text: &str) -> String {
        let paint = match look {
            Look::Dim => Paint::new().dim(),
            Look::Bold => Paint::new().bold(),
            Look::Good => Paint::new().green(),
            Look::Warning => Paint::new().yellow(),
            Look::Bad => Paint::new().red().bold(),
            Look::Name => Paint::new().cyan(),
        };
        paint.force_styling(self.colored).apply_to(text).to_string()
    }
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    Dim,
    Bold,
    Good,
    Warning,
    Bad,
    Name,
}

/// A line on stderr. A closed stderr is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether something that belongs on stdout could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// A line on stdout. A reader that went away is no reason to fail; anything else is remembered for [`is_lost`].
pub(crate) fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        note(&format!("error: standard output cannot be written: {error}"));
    }
}

/// Text on stdout as it is, ending in a line break.
pub(crate) fn text(text: &str) {
    line(text.strip_suffix('\n').unwrap_or(text));
}

/// Whether a result was lost on its way to stdout.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// The one JSON object of a command.
pub(crate) fn result(value: &serde_json::Value) {
    line(&value.to_string());
}

/// An error as one paragraph.
pub(crate) fn error(style: Style, report: &ErrorReport) {
    let mut text = format!("{} {}", style.paint(Look::Bad, "error:"), report.message.trim_end());
    if let Some(hint) = &report.hint {
        text.push_str(&format!("\n{} {hint}", style.paint(Look::Name, "hint:")));
    }
    note(&text);
}

/// Text from a model or a tool, safe for a terminal: on one line, without control characters, cut to `limit`
/// characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut blank = false;
    for character in text.trim().chars() {
        if character.is_whitespace() || character.is_control() {
            blank = true;
            continue;
        }
        if length >= limit {
            line.push('…');
            break;
        }
        if blank && !line.is_empty() {
            line.push(' ');
            length += 1;
        }
        blank = false;
        line.push(character);
        length += 1;
    }
    line
}

/// Text from a model or a tool over several lines, without characters that a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_safe_for_a_terminal() {
        for (text, limit, expected) in [
            ("a\n  b\tc", 10, "a b c"),
            ("\u{1b}[31mred", 20, "[31mred"),
            ("aaaaaa", 3, "aaa…"),
            ("", 3, ""),
            ("äöü", 3, "äöü"),
        ] {
            assert_eq!(one_line(text, limit), expected);
        }
        assert_eq!(harmless("a\u{1b}[2J\nb\u{7}"), "a[2J\nb");
    }
}
