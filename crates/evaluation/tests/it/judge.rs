//! Judges that are asked over HTTP, on 127.0.0.1.

use std::collections::BTreeMap;
use std::time::Duration;

use evaluation::dataset::Task;
use evaluation::exact::ExactTier;
use evaluation::judge::{Judge, JudgePrompt, ModelJudge, procedure};
use evaluation::run::{Store, read_run};
use evaluation::sample::Row;
use evaluation::sample::{Judged, Transcript};
use evaluation::score::{Again, Scored, judge_again};
use evaluation::verdict::Verdict;
use llm_providers::{Environment, LlmClient, LlmConfig, Price, RetryConfig};
use pipeline::config::JudgeId;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::made::{by_judge, header, row, unjudged};
use crate::scripted_server::{Reply, ScriptedServer};

fn task(id: &str, truth: Option<&str>) -> Task {
    Task {
        task_id: id.to_owned(),
        question: "Which river runs past the old mill?".to_owned(),
        ground_truth: truth.map(str::to_owned),
        aliases: vec!["the Inn river".to_owned()],
        files: Vec::new(),
        metadata: serde_json::Map::new(),
    }
}

fn model(server: &ScriptedServer, id: JudgeId, votes: u32) -> ModelJudge {
    let config = LlmConfig {
        provider: "openai".to_owned(),
        model_name: "gpt-4.1-2025-04-14".to_owned(),
        base_url: Some(server.base_url()),
        api_key: Some("sk-test".into()),
        retries: RetryConfig { max_tries: 2, base_wait: 0.001, max_wait: 0.001, ..RetryConfig::default() },
        price: Some(Price { input: 2.0, output: 8.0, cache_read: None, cache_write: None }),
        ..LlmConfig::default()
    };
    let client = LlmClient::from_config(&config, &Environment::default()).unwrap();
    let template = "Q: {{ question }}\nT: {{ answer }}\nR: {{ response }}\n";
    ModelJudge::new(client, procedure(id).unwrap(), JudgePrompt::new("judge.md", template).unwrap(), votes)
}

fn judge(server: &ScriptedServer, suite: &str, id: JudgeId, votes: u32) -> Judge {
    Judge::model(suite, id, model(server, id, votes))
}

fn transcript(judged: &Judged) -> &Transcript {
    match judged {
        Judged::ByJudge { transcript, .. } | Judged::Unjudged { transcript: Some(transcript), .. } => {
            transcript
        }
        other => panic!("{other:?}"),
    }
}

/// `+`, `-`, `0`, or why there is no verdict.
fn said(judged: &Judged) -> String {
    match judged {
        Judged::ByJudge { judgement, .. } => match judgement.verdict {
            Verdict::Correct => "+".to_owned(),
            Verdict::Incorrect => "-".to_owned(),
            Verdict::NotAttempted => "0".to_owned(),
        },
        Judged::Unjudged { reason, .. } => reason.clone(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_verdict_is_kept_with_all_that_was_said() {
    let server = ScriptedServer::start(vec![Reply::text("**Correct**").usage(100, 2)]).await;
    let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
    let judged = judge.judge(&task("a", Some("Inn")), Some(" It is the Inn. ")).await;
    assert_eq!((said(&judged).as_str(), judged.is_correct()), ("+", Some(true)));
    let kept = transcript(&judged);
    assert_eq!((kept.judge.as_str(), kept.provider.as_str()), ("equivalence", "openai"));
    assert_eq!(kept.replies, ["**Correct**"]);
    assert_eq!((kept.usage.input, kept.usage.output), (100, 2));
    assert!((kept.cost_usd.unwrap() - (100.0 * 2.0 + 2.0 * 8.0) / 1e6).abs() < 1e-12, "{:?}", kept.cost_usd);
    assert_eq!((kept.prompt_sha256.len(), &kept.prompt_sha256), (64, &judge.identity().prompt_sha256));
    let requests = server.requests();
    assert_eq!((requests.len(), &requests[0].body["model"]), (1, &json!("gpt-4.1-2025-04-14")));
    let prompt = requests[0].last_content();
    for part in ["Q: Which river runs past the old mill?", "T: Inn\n", "R: It is the Inn."] {
        assert!(prompt.contains(part), "{prompt}");
    }
    // A row with it is read back as it was.
    let mut row = row("a", 1, &json!({}));
    row.judge(judged);
    assert_eq!(row.correct, Some(true));
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<evaluation::sample::Row>(&text).unwrap(), row);
}

/// Replies one after the other, votes that are wanted, what comes out and how often was asked.
#[tokio::test]
async fn replies_and_votes() {
    let text = |texts: &[&str]| -> Vec<Reply> { texts.iter().map(|text| Reply::text(*text)).collect() };
    let unreadable = "the judge's reply is not in the form that was asked for";
    let cases: Vec<(&str, Vec<Reply>, u32, &str, usize)> = vec![
        ("plain", text(&["Incorrect"]), 1, "-", 1),
        ("asked again", text(&["Well.", "Maybe?", "Correct"]), 1, "+", 3),
        ("not a fourth time", text(&["Well.", "Hm.", "So.", "Correct"]), 1, unreadable, 3),
        (
            "empty",
            text(&["<think>Correct", "<think>Correct", "<think>Correct"]),
            1,
            "the judge's reply is empty",
            3,
        ),
        (
            "contradictions",
            text(&["Correct\nIncorrect"; 3]),
            1,
            "the judge's reply says two different things",
            3,
        ),
        ("majority", text(&["Correct", "Incorrect", "Incorrect"]), 3, "-", 3),
        ("decided early", text(&["Correct", "Correct", "Incorrect"]), 3, "+", 2),
        (
            "even",
            text(&["Correct", "Incorrect"]),
            2,
            "no majority: 2 of 2 votes were asked for and 2 are verdicts",
            2,
        ),
        ("one cannot be read", text(&["Correct", "Hm.", "Hm.", "Hm.", "Correct"]), 3, "+", 5),
        (
            "one fails",
            vec![Reply::text("Incorrect"), Reply::status(500), Reply::status(500), Reply::text("Incorrect")],
            3,
            "-",
            4,
        ),
        ("two of five fail", text(&["Hm."; 6]).into_iter().chain(text(&["Correct"; 3])).collect(), 5, "+", 9),
        (
            "no majority is left",
            text(&["Correct", "Incorrect", "Hm.", "Hm.", "Hm."]),
            3,
            "no majority: 3 of 3 votes were asked for and 2 are verdicts; the judge's reply is not in the form that was asked for",
            5,
        ),
        (
            "no majority can come",
            text(&["Hm."; 6]),
            3,
            "no majority: 2 of 3 votes were asked for and 0 are verdicts; the judge's reply is not in the form that was asked for",
            6,
        ),
        ("a vote again", text(&["Correct", "Well.", "Incorrect", "Correct"]), 3, "+", 4),
    ];
    for (name, replies, votes, wanted, asked) in cases {
        let server = ScriptedServer::start(replies).await;
        let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, votes);
        let judged = judge.judge(&task("a", Some("Inn")), Some("It is the Inn.")).await;
        assert_eq!((said(&judged).as_str(), server.requests().len()), (wanted, asked), "{name}");
        // A request that failed has no reply.
        let replies = if name == "one fails" { 2 } else { asked };
        assert_eq!(transcript(&judged).replies.len(), replies, "{name}");
        let known = matches!(wanted, "+" | "-");
        assert_eq!(judged.is_correct().is_some(), known, "{name}");
    }
}

#[tokio::test]
async fn every_vote_is_recorded() {
    let replies = ["Correct", "Hm.", "Hm.", "Hm.", "Correct"].map(Reply::text).into();
    let server = ScriptedServer::start(replies).await;
    let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, 3);
    let judged = judge.judge(&task("a", Some("Inn")), Some("the mill stream")).await;
    let kept = transcript(&judged);
    let votes: Vec<(Option<Verdict>, bool, usize)> =
        kept.votes.iter().map(|vote| (vote.verdict, vote.problem.is_some(), vote.replies)).collect();
    let right = Some(Verdict::Correct);
    assert_eq!(votes, [(right, false, 1), (None, true, 3), (right, false, 1)]);
    assert_eq!(kept.replies.len(), 5);
    let row_text = serde_json::to_string(&judged).unwrap();
    assert_eq!(serde_json::from_str::<Judged>(&row_text).unwrap(), judged);
}

#[tokio::test]
async fn a_judge_that_says_nothing_does_not_hold_a_run_up() {
    let server = ScriptedServer::start_with(|_| Reply::status(503)).await;
    let config = LlmConfig {
        provider: "openai".to_owned(),
        model_name: "judge".to_owned(),
        base_url: Some(server.base_url()),
        api_key: Some("sk-test".into()),
        retries: RetryConfig { base_wait: 600.0, max_wait: 600.0, ..RetryConfig::default() },
        ..LlmConfig::default()
    };
    let client = LlmClient::from_config(&config, &Environment::default()).unwrap();
    let prompt = JudgePrompt::new("judge.md", "{{ question }} {{ answer }} {{ response }}").unwrap();
    let model = ModelJudge::new(client, procedure(JudgeId::Equivalence).unwrap(), prompt, 1);
    let model = model.with_patience(Duration::from_millis(200));
    // Without patience of its own it would try again after ten minutes.
    let checked = tokio::time::timeout(Duration::from_secs(60), model.check()).await;
    checked.expect("the run is held up").unwrap();
}

/// A reply that was cut may have gone on otherwise, whatever it begins with.
#[tokio::test]
async fn a_reply_that_was_cut_is_no_verdict() {
    let server = ScriptedServer::start_with(|_| Reply::text("Correct").finish("length")).await;
    let judged = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
    let judged = judged.judge(&task("a", Some("Inn")), Some("It is the Inn.")).await;
    assert!(matches!(judged, Judged::Unjudged { .. }), "{judged:?}");
    assert_eq!(judged.is_correct(), None);
    assert!(server.requests().len() >= 2);

    let replies = vec![Reply::text("Correct").finish("length"), Reply::text("Incorrect")];
    let server = ScriptedServer::start(replies).await;
    let judged = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
    let judged = judged.judge(&task("a", Some("Inn")), Some("It is the Inn.")).await;
    assert_eq!((said(&judged).as_str(), server.requests().len()), ("-", 2));
}

#[tokio::test]
async fn a_judge_that_fails_leaves_the_sample_unjudged() {
    for (name, reply, part) in [
        ("500", Reply::status(500).body("down"), "500"),
        ("429", Reply::status(429).body("slow down"), "the rate limit was reached"),
        ("401", Reply::status(401).body("who are you"), "401"),
        ("404", Reply::status(404).body("no such model"), "does not have the model"),
        ("dropped", Reply::drop_connection(), "the judge did not reply"),
        ("cut", Reply::sse_text("Correct").cut_after(40), "the judge did not reply"),
        ("filtered", Reply::text("Correct").finish("content_filter"), "cut by a filter"),
        ("no JSON", Reply::raw("<html>Correct</html>"), "the judge"),
    ] {
        let server = ScriptedServer::start_with(move |_| reply.clone()).await;
        let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
        let judged = judge.judge(&task("a", Some("Inn")), Some("It is the Inn.")).await;
        let Judged::Unjudged { reason, .. } = &judged else { panic!("{name}: {judged:?}") };
        assert!(reason.contains(part), "{name}: {reason}");
        assert!(!reason.contains("sk-test"), "{reason}");
        let mut row = row("a", 1, &json!({"answer": "It is the Inn."}));
        row.judge(judged);
        assert_eq!((row.correct, row.is_unjudged()), (None, true), "{name}");
    }
}

#[tokio::test]
async fn bad_credentials_are_known_before_anything_runs() {
    for (reply, is_good) in [
        (Reply::text("ready"), true),
        (Reply::status(500).body("down"), true),
        (Reply::status(429).body("slow down"), true),
        (Reply::status(401).body("{\"error\": {\"message\": \"bad key\"}}"), false),
        (Reply::status(403).body("{\"error\": {\"message\": \"not for you\"}}"), false),
        (Reply::status(404).body("{\"error\": {\"message\": \"no such model\"}}"), false),
    ] {
        let shown = format!("{reply:?}");
        let server = ScriptedServer::start_with(move |_| reply.clone()).await;
        match model(&server, JudgeId::Equivalence, 1).check().await {
            Ok(()) => assert!(is_good, "{shown}"),
            Err(error) => {
                assert!(!is_good, "{shown}: {error}");
                let text = error.to_string();
                assert!(text.contains("the judge (openai, gpt-4.1-2025-04-14) cannot be used"), "{text}");
                assert!(!text.contains("sk-test"), "{text}");
            }
        }
        assert!(!server.requests().is_empty());
    }
}

#[tokio::test]
async fn nobody_is_asked_where_nothing_is_to_be_asked() {
    let server = ScriptedServer::start(Vec::new()).await;
    let equal = Judged::Exact { tier: ExactTier::Equal };
    let gaia = Judged::Exact { tier: ExactTier::Gaia };
    for (suite, id, truth, answer, wanted) in [
        ("webwalkerqa", JudgeId::Equivalence, Some("Inn"), Some("Inn"), equal.clone()),
        ("webwalkerqa", JudgeId::Equivalence, Some("Inn"), Some(" Inn\n"), equal.clone()),
        ("webwalkerqa", JudgeId::Equivalence, Some("Inn"), Some("the Inn river"), equal.clone()),
        ("gaia-validation", JudgeId::Equivalence, Some("1000"), Some("$1,000"), gaia.clone()),
        ("gaia-validation-text-103", JudgeId::Equivalence, Some("Inn"), Some("inn!"), gaia.clone()),
        ("aime2025", JudgeId::Equivalence, Some("204"), Some("204.0"), gaia),
        ("hle", JudgeId::Hle, Some("Inn"), Some("Inn"), equal.clone()),
        ("xbench_deepsearch", JudgeId::Xbench, Some("因河"), Some("因河"), equal),
        ("webwalkerqa", JudgeId::Equivalence, Some("Inn"), None, Judged::NoAnswer),
        ("webwalkerqa", JudgeId::Equivalence, Some("Inn"), Some(" \n"), Judged::NoAnswer),
        ("deepsearchqa", JudgeId::DeepSearchQa, Some("Inn"), Some(""), Judged::NoAnswer),
        ("webwalkerqa", JudgeId::Equivalence, None, Some("Inn"), Judged::NotScored),
        ("webwalkerqa", JudgeId::Equivalence, None, None, Judged::NotScored),
    ] {
        let judged = judge(&server, suite, id, 1).judge(&task("a", truth), answer).await;
        assert_eq!(judged, wanted, "{suite} {truth:?} {answer:?}");
    }
    let nobody = Judge::nobody("futurex");
    assert_eq!(nobody.judge(&task("a", Some("Inn")), Some("Inn")).await, Judged::NotScored);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_miss_of_the_exact_tiers_is_asked() {
    for (suite, id, answer, reply) in [
        ("webwalkerqa", JudgeId::Equivalence, "inn", "Correct"),
        ("gaia-validation", JudgeId::Equivalence, "the Inn", "Correct"),
        // Sets have no exact tier: a list that is equal may still be judged part by part.
        ("deepsearchqa", JudgeId::DeepSearchQa, "Inn", "{\"expected\": {\"Inn\": true}, \"excess\": []}"),
    ] {
        let server = ScriptedServer::start(vec![Reply::text(reply)]).await;
        let judged = judge(&server, suite, id, 1).judge(&task("a", Some("Inn")), Some(answer)).await;
        assert_eq!((said(&judged).as_str(), server.requests().len()), ("+", 1), "{suite}");
    }
}

#[tokio::test]
async fn every_procedure_reads_its_own_form() {
    for (id, reply, wanted) in [
        (JudgeId::Equivalence, "Incorrect", "-"),
        (JudgeId::AbEn, "B", "-"),
        (JudgeId::AbZh, "A：正确", "+"),
        (JudgeId::SimpleQa, "C", "0"),
        (
            JudgeId::Hle,
            "{\"extracted_final_answer\": \"Inn\", \"reasoning\": \"\", \"correct\": \"no\", \"confidence\": 70}",
            "-",
        ),
        (JudgeId::Xbench, "解释: 相同\n结论: 正确", "+"),
        (JudgeId::DeepSearchQa, "{\"expected\": {\"a\": true, \"b\": false}, \"excess\": []}", "-"),
    ] {
        let server = ScriptedServer::start(vec![Reply::text(reply)]).await;
        let judged =
            judge(&server, "some-suite", id, 1).judge(&task("a", Some("Inn")), Some("the Inn")).await;
        assert_eq!(said(&judged), wanted, "{id:?}");
    }
    assert!(procedure(JudgeId::None).is_none());
}

#[tokio::test]
async fn the_mock_judge_says_the_same_every_time() {
    let judge = Judge::mock("webwalkerqa", JudgeId::Equivalence);
    assert_eq!(judge.identity().judge, "mock");
    for (answer, wanted) in [("the inn.", "+"), ("THE INN RIVER", "+"), ("Danube", "-"), ("?", "-")] {
        for _ in 0..2 {
            let judged = judge.judge(&task("a", Some("Inn")), Some(answer)).await;
            assert_eq!(said(&judged), wanted, "{answer}");
        }
    }
}

#[test]
fn prompts_that_leave_something_out() {
    for (template, part) in [
        ("{{ question }} {{ answer }}", "it does not use `response`"),
        ("{{ question }} {{ response }}", "it does not use `answer`"),
        ("{{ answer }} {{ response }}", "it does not use `question`"),
        ("{{ question }} {{ answer }} {{ response }} {{ truth }}", "undefined"),
        ("{{ question", "judge.md"),
        ("", "it does not use"),
    ] {
        let error = JudgePrompt::new("judge.md", template).unwrap_err().to_string();
        assert!(error.contains(part), "{template}: {error}");
    }
    let prompt = JudgePrompt::new("judge.md", "{{ question }}|{{ answer }}|{{ response }}").unwrap();
    // Nothing inside a question is a template, or escaped.
    assert_eq!(prompt.render("{{ answer }}", "<b>&", "{% x %}").unwrap(), "{{ answer }}|<b>&|{% x %}");
}

#[tokio::test]
async fn judging_again() {
    // Says correct to the river, nothing readable to the lake, fails for the sea.
    let server = ScriptedServer::start_with(|request| match request.last_content() {
        prompt if prompt.contains("R: river") => Reply::text("Correct"),
        prompt if prompt.contains("R: lake") => Reply::text("Hm."),
        _ => Reply::status(500).body("down"),
    })
    .await;
    let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
    let tasks: BTreeMap<String, Task> =
        ["a", "b", "c", "d", "e"].map(|id| (id.to_owned(), task(id, Some("Inn")))).into();
    let identity = judge.identity();
    let its_own = |verdict: &str| {
        let mut judgement = by_judge(verdict);
        let transcript = &mut judgement["transcript"];
        transcript["provider"] = json!(identity.provider);
        transcript["prompt_sha256"] = json!(identity.prompt_sha256);
        judgement
    };
    let given = |id: &str, answer: &str, judgement: serde_json::Value| {
        row(id, 1, &json!({"answer": answer, "judgement": judgement}))
    };
    let rows = vec![
        given("a", "river", unjudged()),
        given("b", "lake", unjudged()),
        given("c", "sea", its_own("incorrect")),
        given("d", "river", its_own("incorrect")),
        given("e", "sea", its_own("correct")),
        given("gone", "river", unjudged()),
    ];
    let correct =
        |store: &Store| store.rows().map(|row| (row.sample.task_id.clone(), row.correct)).collect::<Vec<_>>();
    let expected = |verdicts: [Option<bool>; 6]| {
        let ids = ["a", "b", "c", "d", "e", "gone"].map(str::to_owned);
        ids.into_iter().zip(verdicts).collect::<Vec<_>>()
    };
    let (yes, no) = (Some(true), Some(false));
    let folder = tempfile::tempdir().unwrap();
    let stored = |name: &str, rows: &[Row]| {
        let mut header = header(&["a", "b", "c", "d", "e", "gone"], 2, &json!({}));
        header.judge = identity.clone();
        let mut store = Store::open(&folder.path().join(name), header).unwrap();
        store.rewrite(rows.to_vec()).unwrap();
        store
    };
    let go_on = CancellationToken::new();
    let again = async |store: &mut Store, again: Again| {
        let scored = judge_again(store, &tasks, &judge, (again, 2), &go_on, &|_| ()).await.unwrap();
        (scored.wanted, scored.judged, scored.failed, scored.unjudged)
    };

    let mut store = stored("open", &rows);
    assert_eq!(again(&mut store, Again::Open).await, (2, 1, 1, 2));
    assert_eq!(correct(&store), expected([yes, None, no, no, yes, None]));
    // What was judged is not asked about: one request for `a`, three for `b`.
    assert_eq!(server.requests().len(), 4);

    let mut store = stored("all", &rows);
    assert_eq!(again(&mut store, Again::All).await, (5, 2, 3, 2));
    assert_eq!(correct(&store), expected([yes, None, no, yes, yes, None]));
    // Verdicts that a failing judge would have replaced are as they were.
    for row in [&rows[2], &rows[4], &rows[5]] {
        assert_eq!(store.row(&row.sample), Some(row));
    }

    // Another judge's verdicts are no verdicts of this one.
    let others = [given("d", "river", by_judge("incorrect")), given("e", "sea", by_judge("correct"))];
    let mut store = stored("others", &others);
    assert_eq!(again(&mut store, Again::Open).await, (2, 1, 1, 1));
    assert_eq!(correct(&store), [("d".to_owned(), yes), ("e".to_owned(), None)]);

    // What does not count anyway is asked nobody about.
    let asked = server.requests().len();
    let contaminated =
        row("a", 1, &json!({"state": "contaminated", "found": "x", "judgement": {"judged": "no_answer"}}));
    let failed = row(
        "a",
        2,
        &json!({"state": "error", "kind": "x", "answer": null, "judgement": {"judged": "no_answer"}}),
    );
    let mut store = stored("uncounted", &[contaminated, failed]);
    assert_eq!(again(&mut store, Again::All).await, (0, 0, 0, 0));
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test]
async fn judging_that_is_stopped_keeps_its_verdicts() {
    // The third answer is never judged.
    let server = ScriptedServer::start_with(|request| match request.last_content() {
        prompt if prompt.contains("R: sea") => Reply::text("Correct").delay(Duration::from_secs(60)),
        _ => Reply::text("Incorrect"),
    })
    .await;
    let judge = judge(&server, "webwalkerqa", JudgeId::Equivalence, 1);
    let tasks: BTreeMap<String, Task> =
        ["a", "b", "c"].map(|id| (id.to_owned(), task(id, Some("Inn")))).into();
    let given = |id: &str, answer: &str| {
        row(id, 1, &json!({"answer": answer, "judgement": unjudged(), "correct": null}))
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    let mut store = Store::open(&place, header(&["a", "b", "c"], 1, &json!({}))).unwrap();
    store.rewrite(vec![given("a", "lake"), given("b", "river"), given("c", "sea")]).unwrap();
    let stop = CancellationToken::new();
    let show = |scored: &Scored| {
        // As somebody sees it who looks at the folder meanwhile.
        let (_, rows) = read_run(&place).unwrap();
        assert_eq!(rows.iter().filter(|row| row.correct.is_some()).count(), scored.judged);
        if scored.judged == 2 {
            stop.cancel();
        }
    };
    let scored = judge_again(&mut store, &tasks, &judge, (Again::Open, 1), &stop, &show).await.unwrap();
    assert_eq!((scored.judged, scored.unjudged), (2, 1));
    drop(store);
    let names: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("part")), "{names:?}");

    // Killed before the rows are in their places, and in the middle of a line.
    let text = std::fs::read_to_string(place.join("results.jsonl")).unwrap();
    let verdict = text
        .lines()
        .next()
        .unwrap()
        .replace("incorrect", "correct")
        .replace("\"correct\":false", "\"correct\":true");
    std::fs::write(place.join("judged.part.jsonl"), format!("{verdict}\n{{\"task_id\": \"b")).unwrap();
    let store = Store::reopen(&place).unwrap();
    let rows: Vec<_> = store.rows().map(|row| row.correct).collect();
    assert_eq!(rows, [Some(true), Some(false), None]);
    assert!(!place.join("judged.part.jsonl").exists());
}
