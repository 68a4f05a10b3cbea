//! Reads the case tables: text files with one case after the other, no escapes in the input.
//!
//! A case begins with `== name | option option`, its input goes on to a line `--`, what is expected
//! follows as `key: value` lines. Lines that begin with `## ` name a group and are for the reader.

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
    pub(crate) input: String,
    pub(crate) expected: Vec<(String, String)>,
}

impl Case {
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    pub(crate) fn all<'c>(&'c self, key: &'c str) -> impl Iterator<Item = &'c str> {
        self.expected.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn one(&self, key: &str) -> Option<&str> {
        self.expected.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// The cases of a table.
pub(crate) fn read(table: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut in_input = false;
    let mut lines_of_input: Vec<&str> = Vec::new();
    // Not `lines`, which would drop the carriage returns that some inputs hold.
    for line in table.split('\n') {
        if let Some(head) = line.strip_prefix("== ") {
            assert!(!in_input, "case before {head:?} has no `--`");
            let (name, options) = head.split_once(" | ").unwrap_or((head, ""));
            cases.push(Case {
                name: name.to_owned(),
                options: options.split_whitespace().map(str::to_owned).collect(),
                input: String::new(),
                expected: Vec::new(),
            });
            in_input = true;
            lines_of_input.clear();
        } else if in_input && line == "--" {
            in_input = false;
            cases.last_mut().expect("a case").input = lines_of_input.join("\n");
        } else if in_input {
            lines_of_input.push(line);
        } else if !line.is_empty() && !line.starts_with("## ") {
            let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("not `key: value`: {line:?}"));
            let case = cases.last_mut().expect("a case before what is expected");
            case.expected.push((key.to_owned(), value.trim().to_owned()));
        }
    }
    assert!(!in_input, "the last case has no `--`");
    cases
}

/// Runs every case and fails with all that failed, not only the first.
pub(crate) fn run(cases: &[Case], check: impl Fn(&Case) + std::panic::RefUnwindSafe) {
    let failed: Vec<&str> = cases
        .iter()
        .filter(|case| std::panic::catch_unwind(|| check(case)).is_err())
        .map(|case| case.name.as_str())
        .collect();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), cases.len());
}
