//! Replies of judges, form by form, and what they say.

use evaluation::verdict::{NoVerdict, ReplyForm, Verdict, read_verdict, stated_confidence};

/// `+` correct, `-` incorrect, `0` not attempted, `?` not in form, `!` a contradiction, ` ` empty.
fn check(form: ReplyForm, cases: &[(&str, char)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(reply, expected)| {
            let given = match read_verdict(form, reply).map(|judgement| judgement.verdict) {
                Ok(Verdict::Correct) => '+',
                Ok(Verdict::Incorrect) => '-',
                Ok(Verdict::NotAttempted) => '0',
                Err(NoVerdict::NotInForm) => '?',
                Err(NoVerdict::Contradiction) => '!',
                Err(NoVerdict::Empty) => ' ',
            };
            (given != *expected).then(|| format!("{reply:?}: {given} is not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{form:?}\n{}", wrong.join("\n"));
}

#[test]
fn words() {
    check(
        ReplyForm::Word,
        &[
            ("Correct", '+'),
            ("**Incorrect**", '-'),
            ("INCORRECT", '-'),
            ("Correct.\n\nThe answer matches.", '+'),
            ("Verdict: correct", '+'),
            ("correct: no", '-'),
            ("incorrect: yes", '-'),
            ("Not correct", '-'),
            ("Correct?", '?'),
            ("The answer is partly correct", '?'),
            ("Correct\nIncorrect", '!'),
            ("<think>Correct</think>Incorrect", '-'),
            ("<think>Correct", ' '),
            ("", ' '),
            ("Correct or Incorrect", '?'),
            ("Correct\n\nWait, actually incorrect.", '!'),
            ("Correct\n\nActually no, the answer is wrong.", '!'),
            ("Correct\n\nNothing in it is wrong.", '+'),
            ("Correct\n\nIt is not incorrect.", '+'),
            ("The response is not\nCorrect", '!'),
            ("The response is **not**\nCorrect", '!'),
            ("The response is not\n\nCorrect", '!'),
            ("The response is not …\n \nCorrect", '!'),
            ("The response isn't\nCorrect", '!'),
            ("The response is in-\ncorrect", '!'),
            ("in\u{2010}\ncorrect", '!'),
            ("In\ncorrect", '!'),
            ("not\nIncorrect", '-'),
            ("Whether it is or not:\nCorrect", '+'),
            ("They do not differ, do they? No\nCorrect", '+'),
            ("---\nCorrect", '+'),
            ("The answer is not 1931.\nCorrect", '+'),
        ],
    );
}

#[test]
fn letters() {
    let english = [
        ("A", '+'),
        ("B: INCORRECT", '-'),
        ("(A)", '+'),
        ("A correct answer would be Paris.", '?'),
        ("A: INCORRECT", '?'),
        ("A/B", '?'),
        ("A\nB", '!'),
        ("Ａ", '+'),
        ("A\n\nExplanation: the response is incorrect", '!'),
    ];
    check(ReplyForm::LettersEnglish, &english);
    check(ReplyForm::LettersEnglish, &[("C", '?'), ("NOT ATTEMPTED", '?')]);
    check(ReplyForm::ThreeLetters, &english);
    check(ReplyForm::ThreeLetters, &[("C", '0'), ("C: NOT_ATTEMPTED", '0'), ("NOT ATTEMPTED", '0')]);
    check(
        ReplyForm::LettersChinese,
        &[
            ("A", '+'),
            ("A：正确", '+'),
            ("B", '-'),
            ("错误。", '-'),
            ("不正确", '-'),
            ("答案：Ｂ", '-'),
            ("不能说正确", '?'),
            ("A\n理由：回答不正确", '!'),
            ("A\n理由：回答没有错误", '+'),
            ("回答不\n正确", '!'),
        ],
    );
}

#[test]
fn conclusions() {
    check(
        ReplyForm::Conclusion,
        &[
            ("解释: 与答案一致。\n结论: 正确", '+'),
            ("最终结论：**错误**。", '-'),
            ("结论: 不正确", '-'),
            ("正确", '?'),
            ("结论: 正确 / 错误", '?'),
            ("结论: 正确\n结论: 错误", '!'),
            ("正确答案: 42\n结论: 错误", '-'),
        ],
    );
}

#[test]
fn fields() {
    check(
        ReplyForm::Fields,
        &[
            ("extracted_final_answer: 42\nreasoning: same\ncorrect: yes\nconfidence: 80%", '+'),
            ("**correct:** no", '-'),
            ("correct: yes/no", '?'),
            ("incorrect: yes", '?'),
            ("The answer is correct: it is yes", '?'),
            ("{\"correct\": \"yes\", \"confidence\": 90}", '+'),
            ("```json\n{\"extracted_final_answer\": \"4\", \"correct\": \"no\"}\n```", '-'),
            ("{\"correct\": \"yes\", \"confid", '?'),
            ("{\"correct\": \"perhaps\"}", '?'),
            ("{\"correct\": \"yes\"} {\"correct\": \"no\"}", '!'),
            ("{\"correct\": \"no\", \"correct\": \"yes\"}", '?'),
            ("{\"correct\": \"yes\", \"correct\": \"yes\"}", '+'),
        ],
    );
    let judgement =
        read_verdict(ReplyForm::Fields, "extracted_final_answer: 42\ncorrect: yes\nconfidence: 80%").unwrap();
    assert_eq!((judgement.extracted.as_deref(), judgement.confidence), (Some("42"), Some(0.8)));
}

const EXAMPLE: &str = r#"{"explanation": "one or two sentences", "expected": {"first expected part": true, "second expected part": false}, "excess": ["an answer that is not expected"]}"#;

#[test]
fn the_example_is_that_of_the_prompt() {
    let prompt = include_str!("../../../../conf/prompts/judge/deepsearchqa.md");
    assert!(prompt.contains(EXAMPLE));
}

#[test]
fn parts() {
    check(
        ReplyForm::Parts,
        &[
            (
                r#"{"Answer Correctness": {"Explanation": "…", "Correctness Details": {"a": true, "b": true}, "Excessive Answers": []}}"#,
                '+',
            ),
            (r#"{"expected": {"a": true, "b": false}, "excess": []}"#, '-'),
            (r#"{"expected": {"a": true}, "excess": ["c"]}"#, '-'),
            (r#"{"expected": {"a": true}}"#, '?'),
            (r#"{"expected": {}, "excess": []}"#, '?'),
            (r#"{"expected": {"a": true}, "excess": ["#, '?'),
            ("all correct", '?'),
            (r#"{"expected": {"a": true, "a": false}, "excess": []}"#, '?'),
            // The example of the prompt says nothing, alone or in front of the verdict.
            (EXAMPLE, '?'),
            (
                concat!(
                    r#"{"explanation": "one or two sentences", "expected": {"first expected part": true, "second expected part": false}, "excess": ["an answer that is not expected"]}"#,
                    "\n",
                    r#"{"expected": {"a": true}, "excess": []}"#
                ),
                '+',
            ),
            (r#"{"expected": {"a": true}, "excess": []} {"expected": {"a": true}, "excess": ["b"]}"#, '!'),
        ],
    );
}

#[derive(serde::Deserialize)]
struct Case {
    reply: String,
    expected: String,
}

/// A table of replies of one family of judges, line by line.
fn table(form: ReplyForm, lines: &str) {
    let cases: Vec<Case> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 80, "{form:?} has {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let given = match read_verdict(form, &case.reply).map(|judgement| judgement.verdict) {
                Ok(Verdict::Correct) => "correct",
                Ok(Verdict::Incorrect) => "incorrect",
                Ok(Verdict::NotAttempted) => "not_attempted",
                Err(NoVerdict::NotInForm) => "not_in_form",
                Err(NoVerdict::Contradiction) => "contradiction",
                Err(NoVerdict::Empty) => "empty",
            };
            (given != case.expected).then(|| format!("{:?}: {given} is not {}", case.reply, case.expected))
        })
        .collect();
    assert!(wrong.is_empty(), "{form:?}\n{}", wrong.join("\n"));
}

#[test]
fn tables_of_replies() {
    table(ReplyForm::Word, include_str!("cases/verdicts/equivalence.jsonl"));
    table(ReplyForm::LettersEnglish, include_str!("cases/verdicts/ab-en.jsonl"));
    table(ReplyForm::LettersChinese, include_str!("cases/verdicts/ab-zh.jsonl"));
    table(ReplyForm::ThreeLetters, include_str!("cases/verdicts/simpleqa.jsonl"));
    table(ReplyForm::Fields, include_str!("cases/verdicts/hle.jsonl"));
    table(ReplyForm::Conclusion, include_str!("cases/verdicts/xbench.jsonl"));
    table(ReplyForm::Parts, include_str!("cases/verdicts/deepsearchqa.jsonl"));
}

/// The prompts that ship, given back by a judge that only repeats them, never say correct.
#[test]
fn prompts_given_back_are_no_praise() {
    let prompts = [
        (ReplyForm::Word, include_str!("../../../../conf/prompts/judge/equivalence.md")),
        (ReplyForm::LettersEnglish, include_str!("../../../../conf/prompts/judge/ab_en.md")),
        (ReplyForm::LettersChinese, include_str!("../../../../conf/prompts/judge/ab_zh.md")),
        (ReplyForm::ThreeLetters, include_str!("../../../../conf/prompts/judge/simpleqa.md")),
        (ReplyForm::Fields, include_str!("../../../../conf/prompts/judge/hle.md")),
        (ReplyForm::Conclusion, include_str!("../../../../conf/prompts/judge/xbench.md")),
        (ReplyForm::Parts, include_str!("../../../../conf/prompts/judge/deepsearchqa.md")),
    ];
    for (form, prompt) in prompts {
        let verdict = read_verdict(form, prompt).map(|judgement| judgement.verdict);
        assert_ne!(verdict, Ok(Verdict::Correct), "{form:?}");
    }
}

/// A reply cut anywhere says what the whole says, or nothing; never praise that the whole does not hold.
#[test]
fn cut_objects_say_nothing() {
    for (form, whole) in [
        (
            ReplyForm::Fields,
            r#"{"extracted_final_answer": "yes", "reasoning": "{\"correct\": \"yes\"}", "correct": "yes", "confidence": 9}"#,
        ),
        (ReplyForm::Fields, "{\n  \"example\": {\"correct\": \"yes\"},\n  \"correct\": \"no\"\n}"),
        (
            ReplyForm::Parts,
            r#"{"Answer Correctness": {"Correctness Details": {"a": true}, "Excessive Answers": []}}"#,
        ),
        (ReplyForm::Parts, "{\n\"expected\": {\"a\": true},\n\"excess\": []\n}"),
    ] {
        for end in 1..whole.len() {
            let cut = &whole[..end];
            assert_eq!(read_verdict(form, cut), Err(NoVerdict::NotInForm), "{cut}");
        }
    }
}

/// Hostile replies take time in proportion to their length. With the square of it, a single one would take an hour.
#[test]
fn long_replies_are_read_at_once() {
    let long = |piece: &str| piece.repeat(400_000 / piece.len());
    for piece in [
        "{",
        "{\"a\":",
        "Correct. ",
        "\n",
        "<think>",
        "结论：",
        "{\"correct\":[",
        "is the ",
        "correct: ",
        "[ ] ",
    ] {
        for form in [
            ReplyForm::Word,
            ReplyForm::ThreeLetters,
            ReplyForm::Conclusion,
            ReplyForm::Fields,
            ReplyForm::Parts,
        ] {
            let verdict = read_verdict(form, &long(piece)).map(|judgement| judgement.verdict);
            assert!(verdict.is_err(), "{form:?} {piece:?}: {verdict:?}");
        }
    }
}

#[test]
fn what_fields_hold_besides() {
    let fields = |reply: &str| {
        let judgement = read_verdict(ReplyForm::Fields, reply).unwrap();
        (judgement.extracted, judgement.confidence)
    };
    for (reply, extracted, confidence) in [
        (
            r#"{"extracted_final_answer": "Bern", "correct": "yes", "confidence": 75}"#,
            Some("Bern"),
            Some(0.75),
        ),
        (
            r#"{"extracted_final_answer": "None", "correct": "no", "confidence": "60%"}"#,
            Some("None"),
            Some(0.6),
        ),
        ("extracted_final_answer: **Bern**\ncorrect: yes\nconfidence: 100%", Some("Bern"), Some(1.0)),
        ("correct: yes\nconfidence: 0", None, Some(0.0)),
        ("correct: yes\nconfidence: 250", None, None),
        ("correct: yes\nconfidence: high", None, None),
        (r#"{"correct": "no", "confidence": -3}"#, None, None),
        (r#"{"correct": "no", "confidence": null}"#, None, None),
    ] {
        assert_eq!(fields(reply), (extracted.map(str::to_owned), confidence), "{reply}");
    }
    let parts = |reply: &str| {
        let score = read_verdict(ReplyForm::Parts, reply).unwrap().parts.unwrap();
        (score.found, score.expected, score.excess)
    };
    assert_eq!(
        parts(r#"{"expected": {"a": true, "b": false, "c": true}, "excess": ["x", "none"]}"#),
        (2, 3, 1)
    );
}

#[test]
fn confidence_in_a_reply() {
    for (reply, expected) in [
        ("Answer: \\boxed{Rome}\nConfidence: 70%", Some(0.7)),
        ("**Confidence:** 85 %", Some(0.85)),
        ("confidence level: 90%", Some(0.9)),
        ("Confidence: 10%\nlater\nConfidence: 40", Some(0.4)),
        ("Confidence: 0.7", None),
        ("Confidence: high, 3 sources", None),
        ("I have confidence in the 3 sources", None),
        ("Confidence:\n5 apples", None),
        ("Confidence: 700%", None),
        ("\\boxed{Rome}", None),
    ] {
        assert_eq!(stated_confidence(reply), expected, "{reply}");
    }
}
