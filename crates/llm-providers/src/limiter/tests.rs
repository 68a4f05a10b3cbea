//! The rules move by move, and the queue with a clock that jumps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::rules::{Cause, Observation, Rules, State};
use super::{Limiter, Limiters, server_of};
use crate::config::ConcurrencyConfig;
use crate::{Endpoint, LlmError, Secret};

const NEVER: Duration = Duration::from_secs(3600);

fn config(start: u32, floor: u32, ceiling: u32) -> ConcurrencyConfig {
    ConcurrencyConfig { start, floor, ceiling, ..ConcurrencyConfig::default() }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A server with a fixed number of places, played move by move: fills the allowance, answers one, and so on.
struct Play {
    rules: Rules,
    state: State,
    refused: u32,
    answered: u32,
}

impl Play {
    fn new(config: &ConcurrencyConfig) -> Self {
        let rules = Rules::new(config);
        Self { rules, state: State::new(&rules), refused: 0, answered: 0 }
    }

    fn see(&mut self, seen: Observation) -> Option<Cause> {
        let (state, cause) = self.state.after(&self.rules, seen, Duration::ZERO);
        self.state = state;
        cause
    }

    /// Sends all that may be sent to a server with so many places, then has one answered.
    fn step(&mut self, places: u32) {
        while self.state.admits(Duration::ZERO) {
            let epoch = self.state.epoch();
            self.see(Observation::Admitted);
            if self.state.in_flight() > places {
                self.see(Observation::Refused { epoch, retry_after: None });
                self.refused += 1;
            }
        }
        let epoch = self.state.epoch();
        self.see(Observation::Succeeded { epoch, contended: true });
        self.answered += 1;
    }
}

#[test]
fn it_grows_only_while_all_of_it_is_used() {
    let mut play = Play::new(&config(4, 1, 64));
    for _ in 0..50 {
        play.see(Observation::Admitted);
        play.see(Observation::Succeeded { epoch: 0, contended: false });
    }
    assert_eq!(play.state.allowance(), 4, "one request at a time tells nothing about four");
    for _ in 0..4 {
        play.see(Observation::Admitted);
    }
    let cause = play.see(Observation::Succeeded { epoch: 0, contended: true });
    assert_eq!((play.state.allowance(), cause), (5, Some(Cause::Success)));
}

#[test]
fn before_the_first_refusal_a_round_doubles_it_up_to_the_ceiling() {
    let mut play = Play::new(&config(4, 1, 20));
    for _ in 0..4 {
        play.step(1000);
    }
    assert_eq!(play.state.allowance(), 8);
    for _ in 0..100 {
        play.step(1000);
    }
    assert_eq!(play.state.allowance(), 20);
}

#[test]
fn a_refusal_multiplies_it_once_for_all_that_were_under_way() {
    let mut play = Play::new(&config(40, 1, 64));
    for _ in 0..40 {
        play.see(Observation::Admitted);
    }
    let cause = play.see(Observation::Refused { epoch: 0, retry_after: None });
    assert_eq!((play.state.allowance(), cause), (36, Some(Cause::Refused)));
    for _ in 0..10 {
        assert_eq!(play.see(Observation::Refused { epoch: 0, retry_after: None }), None);
    }
    assert_eq!((play.state.allowance(), play.state.in_flight()), (36, 29));
}

#[test]
fn refusals_right_after_a_cut_cut_deeper_and_never_below_the_floor() {
    let mut play = Play::new(&config(40, 3, 64));
    let mut seen = Vec::new();
    for _ in 0..12 {
        while play.state.admits(Duration::ZERO) {
            play.see(Observation::Admitted);
        }
        let epoch = play.state.epoch();
        play.see(Observation::Refused { epoch, retry_after: None });
        seen.push(play.state.allowance());
    }
    assert_eq!(seen[..4], [36, 29, 19, 8]);
    assert_eq!(seen.last(), Some(&3));
}

#[test]
fn a_step_a_round_leads_back_to_where_it_was_refused_and_no_further() {
    let mut play = Play::new(&config(41, 1, 64));
    play.step(40);
    assert_eq!((play.state.allowance(), play.refused), (36, 1));
    for _ in 0..37 {
        play.step(40);
    }
    assert_eq!(play.state.allowance(), 37, "one round, one step");
}

#[test]
fn what_is_refused_stays_a_small_share_and_the_places_are_used() {
    for places in [1, 2, 3, 5, 10, 40, 150] {
        let mut play = Play::new(&config(8, 1, 256));
        for _ in 0..40 * places {
            play.step(places);
        }
        (play.refused, play.answered) = (0, 0);
        let mut used = 0.0;
        let steps = 400 * places.max(10);
        for _ in 0..steps {
            play.step(places);
            used += f64::from(play.state.allowance().min(places)) / f64::from(places);
        }
        let refused = f64::from(play.refused) / f64::from(play.refused + play.answered);
        assert!(refused < 0.05, "{places} places: {refused} refused");
        assert!(used / f64::from(steps) > 0.93, "{places} places: {} used", used / f64::from(steps));
    }
}

#[test]
fn a_server_with_more_places_is_found_out() {
    let mut play = Play::new(&config(8, 1, 256));
    for _ in 0..500 {
        play.step(10);
    }
    assert!((9..=11).contains(&play.state.allowance()));
    for _ in 0..1500 {
        play.step(80);
    }
    assert!((70..=81).contains(&play.state.allowance()), "{}", play.state.allowance());
}

#[test]
fn pauses_hold_and_only_grow() {
    let rules = Rules::new(&config(4, 1, 8));
    let state = State::new(&rules);
    let refused = |wait| Observation::Refused { epoch: 0, retry_after: Some(seconds(wait)) };
    let (state, _) = state.after(&rules, Observation::Admitted, seconds(10));
    let (state, _) = state.after(&rules, refused(20), seconds(10));
    assert!(!state.admits(seconds(29)) && state.admits(seconds(30)));
    let (state, cause) = state.after(&rules, refused(5), seconds(11));
    assert_eq!((state.pause(seconds(11)), cause), (seconds(19), None));
    let (state, cause) =
        state.after(&rules, Observation::Ended { retry_after: Some(seconds(60)) }, seconds(12));
    assert_eq!((state.pause(seconds(12)), cause), (seconds(60), Some(Cause::Paused)));
    let (state, _) = state.after(&rules, refused(0), seconds(12));
    assert_eq!(state.pause(seconds(12)), seconds(60));
}

#[test]
fn numbers_that_contradict_each_other_are_brought_into_order() {
    let check = |config: ConcurrencyConfig, expected: u32| {
        let rules = Rules::new(&config);
        let mut state = State::new(&rules);
        assert_eq!(state.allowance(), expected, "{config:?}");
        for _ in 0..50 {
            (state, _) = state.after(&rules, Observation::Admitted, Duration::ZERO);
            let seen = Observation::Succeeded { epoch: state.epoch(), contended: true };
            (state, _) = state.after(&rules, seen, Duration::ZERO);
            (state, _) = state.after(&rules, Observation::Admitted, Duration::ZERO);
            let seen = Observation::Refused { epoch: state.epoch(), retry_after: None };
            (state, _) = state.after(&rules, seen, Duration::ZERO);
            assert!(state.allowance() >= 1, "{config:?}");
        }
    };
    check(config(0, 0, 0), 1);
    check(config(100, 2, 8), 8);
    check(config(1, 5, 3), 5);
    check(ConcurrencyConfig { step: f64::NAN, factor: f64::INFINITY, ..config(4, 1, 8) }, 4);
    check(ConcurrencyConfig { step: -1.0, factor: 7.0, ..config(4, 1, 8) }, 4);
}

fn rate_limited(wait: u64) -> LlmError {
    let endpoint = Arc::new(Endpoint { provider: "p".into(), model: "m".into(), ..Endpoint::default() });
    LlmError::RateLimited { endpoint, retry_after: Some(seconds(wait)), detail: String::new() }
}

#[tokio::test(start_paused = true)]
async fn whoever_came_first_is_served_first_and_a_retry_keeps_its_place() {
    let limiter = Limiter::new("test", &config(1, 1, 1));
    let old = limiter.ticket();
    let held = limiter.acquire(limiter.ticket(), NEVER).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..5 {
        let ticket = if number == 4 { old } else { limiter.ticket() };
        let (limiter, order) = (limiter.clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let permit = limiter.acquire(ticket, NEVER).await.unwrap();
            order.lock().unwrap().push(number);
            tokio::time::sleep(seconds(1)).await;
            permit.succeeded();
        }));
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(limiter.status().waiting, 5);
    held.succeeded();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [4, 0, 1, 2, 3]);
    let status = limiter.status();
    assert_eq!((status.in_flight, status.waiting, status.admitted), (0, 0, 6));
    // Three seconds each, and one more for each that was served before.
    assert_eq!(status.waited, seconds(3 * 5 + 1 + 2 + 3 + 4));
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_the_place_to_the_next() {
    let limiter = Limiter::new("test", &config(1, 1, 1));
    for _ in 0..50 {
        let held = limiter.acquire(limiter.ticket(), NEVER).await.unwrap();
        let impatient = {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(limiter.ticket(), NEVER).await.map(drop) })
        };
        tokio::task::yield_now().await;
        let patient = {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(limiter.ticket(), NEVER).await.map(drop) })
        };
        tokio::task::yield_now().await;
        // Woken and given up in the same moment: the wake-up must not be lost.
        held.succeeded();
        impatient.abort();
        assert!(tokio::time::timeout(seconds(1), patient).await.unwrap().unwrap().is_ok());
        let _ = impatient.await;
        assert_eq!((limiter.status().in_flight, limiter.status().waiting), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_back() {
    let limiter = Limiter::new("test", &config(8, 1, 8));
    limiter.acquire(limiter.ticket(), NEVER).await.unwrap().failed(&rate_limited(17));
    let started = Instant::now();
    let all = (0..5).map(|_| async {
        let permit = limiter.acquire(limiter.ticket(), NEVER).await.unwrap();
        let waited = permit.waited();
        permit.succeeded();
        (started.elapsed(), waited)
    });
    for (at, waited) in futures_util::future::join_all(all).await {
        assert!((seconds(17)..Duration::from_millis(17_010)).contains(&at), "{at:?}");
        assert!(waited >= seconds(17));
    }
    let cut = limiter.status().history[1];
    assert_eq!((cut.cause, cut.allowance, cut.pause), (Cause::Refused, 1, seconds(17)));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_too_long_is_told_at_once_to_all_who_wait() {
    let limiter = Limiter::new("test", &config(1, 1, 1));
    let held = limiter.acquire(limiter.ticket(), NEVER).await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(limiter.ticket(), seconds(120)).await.map(drop) })
        })
        .collect();
    tokio::time::sleep(seconds(1)).await;
    held.failed(&rate_limited(3600));
    let started = Instant::now();
    for task in waiting {
        assert_eq!(task.await.unwrap(), Err(seconds(3600)));
    }
    assert!(started.elapsed() < seconds(1));
    assert_eq!(limiter.status().waiting, 0);
}

#[test]
fn one_limiter_for_a_server_and_a_key() {
    let limiters = Limiters::new();
    let of = |url: &str, key: &str| {
        let key = Secret::new(key);
        let limiter = limiters.of("p", url, Some(&key), &ConcurrencyConfig::default());
        Arc::as_ptr(&limiter.0) as usize
    };
    let first = of("https://host/v1", "key-one");
    assert_eq!(of("https://HOST/other?x=y", " key-one "), first);
    // A server is one server by whatever name it is set up.
    let other =
        limiters.of("q", "https://host/v1", Some(&Secret::new("key-one")), &ConcurrencyConfig::default());
    assert_eq!(Arc::as_ptr(&other.0) as usize, first);
    assert_ne!(of("https://host/v1", "key-two"), first);
    assert_ne!(of("https://host:8443/v1", "key-one"), first);
    assert_eq!(limiters.all().len(), 3);
    assert!(!format!("{limiters:?}").contains("key-"), "{limiters:?}");
    assert_eq!(server_of("http://user:secret@Host:1/v1?x#y"), "http://host:1");
    assert_eq!(server_of("nonsense"), "://nonsense");
}
