//! Replies of judges, form by form, and what they say.

use evaluation::verdict::{NoVerdict, ReplyForm, Verdict, read_verdict};

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
    ];
    check(ReplyForm::LettersEnglish, &english);
    check(ReplyForm::LettersEnglish, &[("C", '?'), ("NOT ATTEMPTED", '?')]);
    check(ReplyForm::ThreeLetters, &english);
    check(ReplyForm::ThreeLetters, &[("C", '0'), ("C: NOT_ATTEMPTED", '0'), ("NOT ATTEMPTED", '0')]);
    check(
        ReplyForm::LettersChinese,
        &[("A", '+'), ("A：正确", '+'), ("B", '-'), ("错误。", '-'), ("不正确", '-'), ("答案：Ｂ", '-'), ("不能说正确", '?')],
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
        ],
    );
    let judgement = read_verdict(ReplyForm::Fields, "extracted_final_answer: 42\ncorrect: yes\nconfidence: 80%").unwrap();
    assert_eq!((judgement.extracted.as_deref(), judgement.confidence), (Some("42"), Some(0.8)));
}

#[test]
fn parts() {
    check(
        ReplyForm::Parts,
        &[
            (r#"{"Answer Correctness": {"Explanation": "…", "Correctness Details": {"a": true, "b": true}, "Excessive Answers": []}}"#, '+'),
            (r#"{"expected": {"a": true, "b": false}, "excess": []}"#, '-'),
            (r#"{"expected": {"a": true}, "excess": ["c"]}"#, '-'),
            (r#"{"expected": {"a": true}}"#, '?'),
            (r#"{"expected": {}, "excess": []}"#, '?'),
            (r#"{"expected": {"a": true}, "excess": ["#, '?'),
            ("all correct", '?'),
        ],
    );
}
