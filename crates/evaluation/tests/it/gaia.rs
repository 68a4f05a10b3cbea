//! The scorer of GAIA against verdicts that the official Python gives (CPython 3.11).

use evaluation::exact::gaia_match;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    answer: String,
    truth: String,
    right: bool,
}

#[test]
fn the_official_scorer_says_the_same() {
    let cases: Vec<Case> =
        include_str!("cases/gaia.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 180);
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| gaia_match(&case.answer, &case.truth) != case.right)
        .map(|case| format!("{:?} for {:?}: officially {}", case.answer, case.truth, case.right))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
