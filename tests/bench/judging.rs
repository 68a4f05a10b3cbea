//! Judges that are models: what they say is recorded, and when they fail nothing is called wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, Said, counting_model, wait_for};

/// Settings that make the scripted server the judge.
fn judged_by(home: Home, judge: &ScriptedServer) -> Home {
    let key = "benchmark.judge.llm";
    home.set(&format!("{key}.provider=openai_compatible"))
        .set(&format!("{key}.model_name=judge-1"))
        .set(&format!("{key}.base_url={}", judge.base_url()))
        .set(&format!("{key}.api_key=judge-key-0123456789"))
        .set(&format!("{key}.retries={{base_wait: 0.01, max_tries: 2}}"))
}

#[tokio::test]
async fn verdicts_are_recorded_and_a_failed_judge_is_asked_again_later() {
    let model = counting_model().await;
    let works = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&works);
    let judge = ScriptedServer::start_with(move |request| {
        let prompt = request.last_content();
        if prompt.contains("ready") {
            Reply::text("ready")
        } else if seen.load(Ordering::SeqCst) {
            Reply::text("INCORRECT").usage(50, 2)
        } else {
            Reply::status(500)
        }
    })
    .await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(3);
    let Said { stdout, .. } = home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(1);
    assert!(stdout.contains("unjudged"), "{stdout}");
    let rows = home.rows("out");
    let wrong = rows.iter().find(|row| row["task_id"] == "0").unwrap();
    assert_eq!(wrong["judgement"]["judged"], "unjudged");
    assert!(wrong["correct"].is_null() && home.report("out")["accuracy"].is_null());
    // Answers that are equal to the truth are not sent to the judge.
    assert!(judge.requests().iter().all(|request| !request.last_content().contains("number<1>")));

    works.store(true, Ordering::SeqCst);
    let asked = model.requests().len();
    let scored = home
        .command(&["score", "out"])
        .env("FATHOM_BENCHMARK__JUDGE__LLM__API_KEY", "judge-key-0123456789")
        .output()
        .await
        .unwrap();
    Said::from(scored).expect(0);
    assert_eq!(model.requests().len(), asked, "judging again runs nothing again");
    let rows = home.rows("out");
    let wrong = rows.iter().find(|row| row["task_id"] == "0").unwrap();
    assert_eq!(
        (wrong["correct"].as_bool(), wrong["judgement"]["verdict"].as_str()),
        (Some(false), Some("incorrect"))
    );
    let transcript = &wrong["judgement"]["transcript"];
    assert_eq!(
        (transcript["replies"][0].as_str(), transcript["usage"]["input"].as_u64()),
        (Some("INCORRECT"), Some(50))
    );
    let text = std::fs::read_to_string(home.path("out/results.jsonl")).unwrap();
    let header = std::fs::read_to_string(home.path("out/header.json")).unwrap();
    assert!(!text.contains("judge-key") && !header.contains("judge-key"), "a key is on disk");
}

#[tokio::test]
async fn a_wrong_key_of_the_judge_stops_the_run_before_it_begins() {
    let model = counting_model().await;
    let judge = ScriptedServer::start_with(|_| Reply::status(401)).await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(3);
    let said = home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(2);
    assert!(said.stderr.contains("judge") && said.stderr.contains("--judge mock"), "{}", said.stderr);
    assert!(model.requests().is_empty() && !home.path("out").exists());
}

/// Says that every answer is wrong, or is down.
async fn switchable(works: &Arc<AtomicBool>) -> ScriptedServer {
    let works = Arc::clone(works);
    ScriptedServer::start_with(move |_| {
        if works.load(Ordering::SeqCst) { Reply::text("Incorrect").usage(50, 2) } else { Reply::status(500) }
    })
    .await
}

/// Who judged, by the rows.
fn judges(home: &Home) -> Vec<String> {
    let mut judges: Vec<String> = home
        .rows("out")
        .iter()
        .filter_map(|row| row["judgement"]["transcript"]["judge"].as_str().map(str::to_owned))
        .collect();
    judges.sort();
    judges.dedup();
    judges
}

#[tokio::test]
async fn figures_come_from_one_judge() {
    let model = counting_model().await;
    let works = Arc::new(AtomicBool::new(false));
    let judge = switchable(&works).await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(6);
    let run = ["run", tasks.to_str().unwrap(), "--out", "out"];
    let with_mock = [&run[..], &["--judge", "mock"]].concat();
    home.run(&with_mock).await.expect(0);
    assert_eq!(judges(&home), ["mock"]);
    let at_first = home.rows("out");

    // Going on: with the judge of before without saying so, with another one not.
    home.run(&["resume", "out"]).await.expect(0);
    let said = home.run(&run).await.expect(2);
    for part in ["judged by mock", "equivalence judge-1", "fathom-bench score out --judge"] {
        assert!(said.stderr.contains(part), "{part:?} is not in {}", said.stderr);
    }
    assert_eq!(home.rows("out"), at_first);

    // Another judge that is down changes nothing.
    let score =
        ["score", "out", "--judge", "suite", "-s", "benchmark.judge.llm.api_key=judge-key-0123456789"];
    let said = home.run(&score).await.expect(1);
    assert!(said.stderr.contains("nothing was changed"), "{}", said.stderr);
    assert_eq!(home.rows("out"), at_first);
    assert_eq!(home.report("out")["header"]["judge"]["judge"], "mock");

    // One that works judges every answer; the old verdicts are kept beside, the report is of now.
    works.store(true, Ordering::SeqCst);
    let said = home.run(&score).await.expect(0);
    assert!(said.stderr.contains("results.by-mock.jsonl"), "{}", said.stderr);
    assert_eq!(judges(&home), ["equivalence"]);
    let kept = std::fs::read_to_string(home.path("out/results.by-mock.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 6);
    assert_eq!(home.report("out")["header"]["judge"]["model"], "judge-1");
    // And is the judge of this run from now on.
    let key = "benchmark.judge.llm.api_key=judge-key-0123456789";
    home.run(&["resume", "out", "-s", key]).await.expect(0);
    home.run(&with_mock).await.expect(2);
}

#[tokio::test]
async fn what_was_set_for_a_judge_is_remembered_and_no_verdicts_are_lost() {
    let model = counting_model().await;
    let works = Arc::new(AtomicBool::new(true));
    let judge = switchable(&works).await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(3);
    home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(0);
    let key = "benchmark.judge.llm.api_key=judge-key-0123456789";
    let votes = || home.report("out")["header"]["judge"]["votes"].as_u64();
    let kept = |name: &str| {
        std::fs::read_to_string(home.path(&format!("out/results.by-equivalence-judge-1{name}.jsonl")))
    };
    let score = |votes: &'static str| ["score", "out", "-s", key, "-s", votes];
    let said = home.run(&score("benchmark.judge.votes=3")).await.expect(0);
    assert!(said.stdout.starts_with("judged 1, changed 0"), "{}", said.stdout);
    assert_eq!(votes(), Some(3));
    let first = kept("").unwrap();

    // The command that is advised after an interrupt judges as before, which leaves nothing to judge.
    let said = home.run(&["score", "out", "-s", key]).await.expect(0);
    assert!(said.stdout.starts_with("judged 0, changed 0"), "{}\n{}", said.stdout, said.stderr);
    assert_eq!(votes(), Some(3));
    home.run(&["resume", "out", "-s", key]).await.expect(0);

    // The same judge in another way: what it said before is kept, both times.
    home.run(&score("benchmark.judge.votes=1")).await.expect(0);
    assert_eq!((votes(), kept("").unwrap() == first), (Some(1), true));
    assert_ne!(kept("-2").unwrap(), first);
    let header = std::fs::read_to_string(home.path("out/header.json")).unwrap();
    assert_eq!(header.matches("benchmark.judge.votes").count(), 1, "{header}");
    assert!(!header.contains("judge-key"), "a key is on disk");
}

#[tokio::test]
async fn what_is_set_for_a_judge_in_going_on_is_remembered_too() {
    let model = counting_model().await;
    let works = Arc::new(AtomicBool::new(false));
    let judge = switchable(&works).await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(3);
    home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(1);
    works.store(true, Ordering::SeqCst);
    let key = "benchmark.judge.llm.api_key=judge-key-0123456789";
    home.run(&["resume", "out", "-s", key, "-s", "benchmark.judge.votes=3"]).await.expect(0);
    assert_eq!(home.report("out")["header"]["judge"]["votes"], 3);
    home.run(&["resume", "out", "-s", key]).await.expect(0);
    let said = home.run(&["score", "out", "-s", key]).await.expect(0);
    assert!(said.stdout.starts_with("judged 0, changed 0"), "{}\n{}", said.stdout, said.stderr);
}

#[tokio::test]
async fn a_report_is_of_the_last_verdicts() {
    let model = counting_model().await;
    let works = Arc::new(AtomicBool::new(false));
    let judge = switchable(&works).await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(3);
    home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(1);
    assert!(home.report("out")["accuracy"].is_null());
    works.store(true, Ordering::SeqCst);
    home.run(&["score", "out", "-s", "benchmark.judge.llm.api_key=judge-key-0123456789"]).await.expect(0);
    assert!(home.report("out")["accuracy"].is_object());
    let page = std::fs::read_to_string(home.path("out/report.html")).unwrap();
    assert!(!page.contains("no figure"), "the page is of before");
}

#[tokio::test]
async fn an_interrupt_keeps_the_verdicts_and_waits_for_no_judge() {
    let model = counting_model().await;
    let slow = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&slow);
    let judge = ScriptedServer::start_with(move |request| {
        let is_quick = ["ready", "number<0>"].iter().any(|part| request.last_content().contains(part));
        match (seen.load(Ordering::SeqCst), is_quick) {
            (false, _) => Reply::status(500),
            (true, true) => Reply::text("Incorrect"),
            (true, false) => Reply::text("Incorrect").delay(std::time::Duration::from_secs(120)),
        }
    })
    .await;
    let home = judged_by(Home::with_model(&model), &judge);
    let tasks = home.tasks(9);
    home.run(&["run", tasks.to_str().unwrap(), "--out", "out"]).await.expect(1);
    slow.store(true, Ordering::SeqCst);
    let key = "benchmark.judge.llm.api_key=judge-key-0123456789";
    let judged = || home.rows("out").iter().filter(|row| row["judgement"]["judged"] == "by_judge").count();
    let part = home.path("out/judged.part.jsonl");
    for command in ["score", "resume"] {
        let asked = judge.requests().len();
        let mut child = home.command(&[command, "out", "-s", key]).spawn().unwrap();
        let pid = child.id().unwrap().to_string();
        // The first time one verdict is kept; the second time only answers are left that the judge thinks about.
        let is_under_way = || match command {
            "score" => part.exists(),
            _ => judge.requests().len() >= asked + 2,
        };
        wait_for(&mut child, is_under_way).await;
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let said = Said::from(child.wait_with_output().await.unwrap()).expect(130);
        assert!(said.stderr.contains(&format!("fathom-bench {command} out")), "{}", said.stderr);
        assert_eq!(judged(), 1, "{command}");
    }
}
