//! What the lines of a program's own log lose before they are written.
//!
//! Decides that no line has a secret in it, whichever crate wrote it: libraries print addresses and headers as they come.
//! What is secret is known in [`scrub`](crate::scrub); which lines are written is the program's business.

use std::io::{self, Write};
use std::sync::{PoisonError, RwLock};

use crate::config::{without_password, without_query_secrets};
use crate::scrub::Scrubber;

/// Of all pipelines of this process.
static HIDDEN: RwLock<Vec<Scrubber>> = RwLock::new(Vec::new());

/// From now on the secrets that the scrubber knows are in no line of the log.
pub fn hide(scrubber: Scrubber) {
    let mut hidden = HIDDEN.write().unwrap_or_else(PoisonError::into_inner);
    if !hidden.contains(&scrubber) {
        hidden.push(scrubber);
    }
}

/// Writes lines without secrets. A line has to come in one piece, as `tracing_subscriber` writes it.
#[derive(Debug)]
pub struct WithoutSecrets<W>(pub W);

impl<W: Write> Write for WithoutSecrets<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(clean(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The line without what is hidden and without the secrets that an address holds.
fn clean(line: &str) -> String {
    let hidden = HIDDEN.read().unwrap_or_else(PoisonError::into_inner);
    let line = without_query_secrets(&without_password(line));
    hidden.iter().fold(line, |line, scrubber| scrubber.scrub(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        hide(Scrubber::new(["a-secret-of-this-test"]));
        for (line, expected) in [
            ("url: \"http://h/mcp?api_key=abc\", x", "url: \"http://h/mcp?api_key=***\", x"),
            ("http://h/?q=what&token=abc#top and more?", "http://h/?q=what&token=***#top and more?"),
            ("ws://me:pw@h/ and http://h/", "ws://***@h/ and http://h/"),
            ("a&b && c?d", "a&b && c?d"),
            ("x=a-secret-of-this-test y", "x=*** y"),
            ("", ""),
        ] {
            let mut written = Vec::new();
            let mut writer = WithoutSecrets(&mut written);
            assert_eq!(writer.write(line.as_bytes()).unwrap(), line.len());
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }
}
