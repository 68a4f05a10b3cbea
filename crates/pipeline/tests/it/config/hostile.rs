//! No text, wherever it stands, makes the resolver panic or its errors empty.

use pipeline::config::{check, resolve};
use proptest::prelude::*;

use super::support::Case;

/// Pieces of configuration files, put together at random: nearer to the grammar than random characters are.
const PIECES: [&str; 40] = [
    "llm",
    "agent",
    "main_agent",
    "tools",
    "limits",
    "extra_body",
    "defaults",
    "_self_",
    "override /llm",
    ":",
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "- - ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\"",
    "'",
    "#",
    "&a ",
    "*a",
    "<<",
    "|",
    ">",
    "!!str ",
    "???",
    "${env:A",
    "${",
    "}",
    "1",
    "-1.5",
    "null",
    "é\u{2028}",
    "\t",
    "---\n",
];

fn text() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![4 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn holds(case: &Case) {
    if let Err(errors) = resolve(&case.sources) {
        assert!(!errors.0.is_empty());
        for error in &errors.0 {
            assert!(!error.message().is_empty() && !error.kind().is_empty(), "{error:?}");
            assert!(error.written_at().is_some(), "an error without a place: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_files(agent in text(), config in text(), user in text()) {
        let case = Case::new(&[("agent/mine.yaml", &agent), ("config.yaml", &config)]).agent("mine").file("user.yaml", &user);
        holds(&case);
        let report = check(&case.sources, &[]);
        assert_eq!(report.resolved.is_some(), report.errors.is_empty());
        assert!(report.errors.is_empty() <= resolve(&case.sources).is_ok(), "the check finds what resolving finds");
    }

    #[test]
    fn in_sets_and_variables(set in text(), key in text(), value in text(), dotenv in text()) {
        let case = Case::new(&[])
            .set(&set)
            .set(&format!("llm.extra_body={value}"))
            .variable("FATHOM_AGENT__MAIN_AGENT__TOOLS", &value)
            .variable(&format!("FATHOM_{key}"), &value)
            .file(".env", &dotenv);
        holds(&case);
    }
}
