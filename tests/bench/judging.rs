//! Judges that are models: what they say is recorded, and when they fail nothing is called wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, Said, counting_model};

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
