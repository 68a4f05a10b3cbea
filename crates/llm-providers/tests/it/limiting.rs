//! The shared limiter around whole calls, and in simulated hours.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use llm_providers::{CallEvent, Environment, Limiters, LlmClient, Registry};

use crate::common::{complete, config, question};
use crate::scripted_server::{Reply, ScriptedServer};
use crate::simulated_server::{play, scenarios};

#[test]
fn a_changing_allowance_is_used_and_little_is_refused() {
    // Two that differ most; the example plays all of them.
    for scenario in scenarios()
        .into_iter()
        .filter(|scenario| ["the same, Retry-After 10 s", "3 a second"].contains(&scenario.name))
    {
        let outcome = play(&scenario, 7);
        let (used, refused) = (outcome.steady.used(), outcome.steady.refused());
        assert!(used > 0.90 && refused < 0.05, "{}: used {used}, refused {refused}", scenario.name);
    }
}

#[tokio::test]
async fn clients_of_one_server_and_key_share_one_limiter() {
    let server = ScriptedServer::start_with(|_| Reply::text("x").delay(Duration::from_millis(400))).await;
    let limiters = Limiters::new();
    let client = |key: &str| {
        let mut config = config(&server.base_url(), "{provider: vllm, concurrency: {start: 1, ceiling: 1}}");
        config.api_key = Some(key.into());
        Registry::builtin().client_sharing(&config, &Environment::default(), &limiters).unwrap()
    };
    let clients: Vec<LlmClient> = ["key-one-1234", "key-one-1234", "key-two-1234"].map(client).into();
    let question = question();
    let outcomes = join_all(clients.iter().map(|client| complete(client, &question))).await;
    assert_eq!(limiters.all().len(), 2);
    let waited: Vec<bool> = outcomes.iter().map(|outcome| outcome.waited.as_millis() >= 200).collect();
    assert_eq!(waited, [false, true, false]);
    assert!(outcomes.iter().all(|outcome| outcome.elapsed >= outcome.waited));
    // The wait is told as it ends, too.
    let mut told = Duration::ZERO;
    let mut observer = |event: CallEvent<'_>| {
        if let CallEvent::Waited { wait } = event {
            told += wait;
        }
    };
    let (first, second) =
        tokio::join!(complete(&clients[0], &question), clients[1].complete(&question, &mut observer));
    assert!(first.waited.is_zero() && !told.is_zero());
    assert_eq!(second.unwrap().waited, told);
}

#[tokio::test]
async fn a_pause_asked_of_one_call_holds_for_the_others() {
    let server = ScriptedServer::start_with({
        let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
        move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::status(429).header("retry-after-ms", "1500"),
            _ => Reply::text("x"),
        }
    })
    .await;
    let client = crate::common::client(&server.base_url(), "{provider: vllm}");
    let question = question();
    let first = tokio::spawn({
        let (client, question) = (client.clone(), question.clone());
        async move { complete(&client, &question).await }
    });
    server.wait_for_requests(1).await;
    // The refusal has been seen once the limiter says so.
    while client.limiter().unwrap().status().refused == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = complete(&client, &question).await;
    assert!(second.waited > Duration::ZERO, "{:?}", second.waited);
    // The pause of the refused call itself is waiting too.
    let first = first.await.unwrap();
    assert!(first.retries == 1 && first.waited >= Duration::from_millis(1490), "{:?}", first.waited);
    let status = client.limiter().unwrap().status();
    assert_eq!((status.admitted, status.refused, status.in_flight), (3, 1, 0));
    let times: Vec<_> = server.requests().iter().map(|request| request.at).collect();
    assert!(times[1..].iter().all(|at| *at - times[0] >= Duration::from_millis(1490)));
}

#[tokio::test]
async fn it_can_be_switched_off_and_the_reader_has_none() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let client = crate::common::client(&server.base_url(), "{provider: vllm, concurrency: {enabled: false}}");
    assert!(client.limiter().is_none());
    assert!(complete(&client, &question()).await.waited.is_zero());
    let reader = llm_providers::LlmConfig { provider: "reader".into(), ..Default::default() };
    assert!(LlmClient::from_config(&reader, &Environment::default()).unwrap().limiter().is_none());
}
