//! Whatever the model and the tools do, a run ends within its bounds and every request can be sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_protocol::event::{EventBody, LlmPurpose, StopReason};
use core_protocol::{Message, Role};
use llm_providers::ToolProtocol;
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::machine::state::RunState;
use orchestrator::machine::{ContextCounts, ModelFailureClass};
use proptest::prelude::*;
use serde_json::json;

use crate::harness::{Case, Record, Step};
use crate::script::{Call, Reply, calls, failure, one, text};
use crate::shown::OMITTED;

/// What may come in the middle of a run.
#[derive(Debug, Clone, Copy)]
enum Interruption {
    Limit(StopReason),
    Cancel,
}

/// All that a run depends on.
#[derive(Debug, Clone)]
struct World {
    replies: Vec<Reply>,
    counts: Vec<u64>,
    interruption: Option<(usize, Interruption)>,
    protocol: ToolProtocol,
    mode: ToolCallsPerTurn,
    keep: i64,
    compress: u32,
    max_turns: u32,
    extra: u32,
    max_rollbacks: u32,
    max_failures: u32,
    /// `retry_with_summary`, `rollback_hint`, `skip_final_call`, `assistant_prefix`, `starts_in_thinking`.
    switches: [bool; 5],
}

fn any_call() -> impl Strategy<Value = Call> {
    let word = prop::sample::select(vec!["a", "b", "c", "nothing", "fail", "wrong"]);
    let place = prop::sample::select(vec![
        ("web", "google_search", "q"),
        ("elsewhere", "google_search", "q"),
        ("web", "scrape_website", "url"),
        ("web", "no_such_tool", "q"),
        ("nowhere", "lookup", "q"),
        ("tool-python", "python", "code"),
        ("", "", ""),
    ]);
    let id = prop::option::weighted(0.3, prop::sample::select(vec!["", "call_0", "same"]));
    (word, place, id).prop_map(|(word, (server, tool, argument), id)| Call {
        id: id.map(str::to_owned),
        ..one(server, tool, json!({ argument: word }))
    })
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "Done.",
        r"It is \boxed{42}.",
        r"<think>\boxed{41}</think>Hm.",
        r"\boxed{?}",
        "I use <use_mcp_tool> now.",
        "<use_mcp_tool><server_name>web</server_name>",
        "<use_mcp_tool><server_name>web</server_name><tool_name>google_search</tool_name><arguments>none</arguments></use_mcp_tool>",
        "There is a time constraint.",
        "<think>never closed",
        "late</think>Done.",
        "</arguments></use_mcp_tool>",
    ]);
    let with_calls = (words.clone(), prop::collection::vec(any_call(), 1..4), any::<bool>()).prop_map(
        |(words, asked, thinks)| {
            let reply = calls(asked).saying(words);
            if thinks { reply.thinking("a thought") } else { reply }
        },
    );
    let class = prop::sample::select(vec![
        ModelFailureClass::Transient,
        ModelFailureClass::Transient,
        ModelFailureClass::ContextExceeded,
        ModelFailureClass::Permanent,
    ]);
    prop_oneof![
        6 => with_calls,
        4 => words.prop_map(text),
        1 => class.prop_map(failure),
    ]
    .prop_flat_map(|reply| {
        prop::option::weighted(0.3, 0_u64..50_000).prop_map(move |tokens| match tokens {
            Some(tokens) => reply.clone().usage(tokens, 7),
            None => reply.clone(),
        })
    })
}

fn any_world() -> impl Strategy<Value = World> {
    let interruption = prop_oneof![
        Just(Interruption::Limit(StopReason::LimitWall)),
        Just(Interruption::Limit(StopReason::LimitTokens)),
        Just(Interruption::Limit(StopReason::LimitCost)),
        Just(Interruption::Cancel),
    ];
    let protocol = prop::sample::select(vec![ToolProtocol::Text, ToolProtocol::Native]);
    let mode = prop::sample::select(vec![
        ToolCallsPerTurn::All,
        ToolCallsPerTurn::First,
        ToolCallsPerTurn::Parallel,
    ]);
    let world = (
        prop::collection::vec(any_reply(), 1..12),
        prop::collection::vec(prop::sample::select(vec![0, 0, 10, 1_000, 90_000]), 1..5),
        prop::option::weighted(0.2, (0_usize..40, interruption)),
        (protocol, mode, -1_i64..4),
        (0_u32..3, 0_u32..8, 0_u32..5, 0_u32..7, 1_u32..5),
        any::<[bool; 5]>(),
    );
    world.prop_map(|(replies, counts, interruption, (protocol, mode, keep), bounds, switches)| {
        let (compress, max_turns, extra, max_rollbacks, max_failures) = bounds;
        World {
            replies,
            counts,
            interruption,
            protocol,
            mode,
            keep,
            compress,
            max_turns,
            extra,
            max_rollbacks,
            max_failures,
            switches,
        }
    })
}

fn case_of(world: &World) -> Case {
    let [summaries, hints, skip, prefix, thinks] = world.switches;
    let counts = world.counts.clone();
    let mut counted = 0;
    Case::new([])
        .protocol(world.protocol)
        .keep(world.keep)
        .compress(world.compress)
        .max_turns(world.max_turns)
        .config(|config| {
            config.tool_calls_per_turn = world.mode;
            config.extra_call_attempts = world.extra;
            config.max_consecutive_rollbacks = world.max_rollbacks;
            config.max_llm_failures = world.max_failures;
            config.retry_with_summary = summaries;
            config.rollback_hint = hints;
            config.skip_final_call = skip;
        })
        .with(|case| {
            case.model.assistant_prefix = prefix;
            case.starts_in_thinking = thinks;
        })
        .count(move |_| {
            counted += 1;
            ContextCounts { results: counts[counted % counts.len()], final_prompt: 10, last_exchange: 500 }
        })
}

/// Runs a world to its end, its replies over and over, with all that must hold at every step.
fn live(world: &World, through_json: bool) -> Record {
    let mut case = case_of(world);
    case.through_json = through_json;
    let mut runner = case.start();
    let mut replies = world.replies.iter().cycle();
    for steps in 0.. {
        if let Some((place, interruption)) = world.interruption
            && place == steps
        {
            match interruption {
                Interruption::Limit(reason) => runner.machine.limit_reached(reason),
                Interruption::Cancel => runner.machine.cancel(),
            }
        }
        let step = runner.next_step();
        if let Step::CallModel(call) = &step {
            runner.feed(replies.next().expect("a cycle").clone());
            if call.purpose == LlmPurpose::Turn {
                check_view(runner.machine.state(), &call.messages, world);
            }
        }
        let goes_on = runner.perform(step);
        check_counters(runner.machine.state(), world);
        if !goes_on {
            break;
        }
    }
    runner.into_record()
}

fn check_counters(state: &RunState, world: &World) {
    let pass = &state.pass;
    assert!(pass.turn <= world.max_turns);
    assert!(pass.call_attempts <= world.max_turns + world.extra);
    assert!(pass.consecutive_rollbacks <= world.max_rollbacks.saturating_sub(1));
    assert!(state.pass_number <= world.compress + 1);
}

/// The rule of retention, said once more: the newest `keep` user messages (native: the tool messages of the newest
/// `keep` turns) as they are, older ones as the notice.
fn check_view(state: &RunState, sent: &[Arc<Message>], world: &World) {
    let history = &state.pass.history;
    let hinted = usize::from(world.switches[1]);
    assert!(sent.len() >= history.len() && sent.len() <= history.len() + hinted);
    let mut newer = 0;
    for (index, entry) in history.iter().enumerate().rev() {
        let stored = &entry.message;
        let result = index > 0
            && match world.protocol {
                ToolProtocol::Text => stored.role == Role::User,
                ToolProtocol::Native => stored.role == Role::Tool,
            };
        let shown = sent[index].joined_text();
        if result && usize::try_from(world.keep).is_ok_and(|keep| newer >= keep) {
            assert!(shown.starts_with(OMITTED), "{shown}");
        } else {
            assert!(shown.starts_with(&stored.joined_text()), "{shown}");
        }
        let turn_begins = stored.role == Role::Assistant && !stored.tool_calls.is_empty();
        newer += match world.protocol {
            ToolProtocol::Text => usize::from(result),
            ToolProtocol::Native => usize::from(turn_begins),
        };
    }
}

fn check_record(record: &Record, world: &World) {
    let state = &record.state;
    assert!(state.outcome.is_some());
    assert!(!state.passes.is_empty());
    let answers_allowed = if world.keep < 0 { 3 } else { 1 } + 3;
    for pass in 1..=state.pass_number {
        let asked =
            |purpose| record.requests_for(purpose).iter().filter(|request| request.pass == pass).count();
        assert!(asked(LlmPurpose::Turn) <= (world.max_turns + world.extra) as usize);
        assert!(asked(LlmPurpose::FinalAnswer) <= answers_allowed);
        assert!(asked(LlmPurpose::FailureSummary) <= 4);
    }
    let summed: u32 = state.passes.iter().map(|pass| pass.rollbacks).sum();
    let told = record.events.iter().filter(|event| matches!(event.body, EventBody::Rollback { .. })).count();
    assert_eq!((summed, told), (state.rollbacks.total, state.rollbacks.total as usize));
    let mut messages = BTreeSet::new();
    for event in &record.events {
        match &event.body {
            EventBody::Message { id, .. } => assert!(messages.insert(id.clone()), "a message is told once"),
            EventBody::LlmRequest { view, .. } => {
                assert!(view.iter().all(|id| messages.contains(id)), "a view names told messages");
            }
            EventBody::LlmResponse { message_id, .. } => assert!(messages.contains(message_id)),
            EventBody::Rollback { dropped, .. } => assert!(messages.contains(dropped)),
            _ => {}
        }
    }
    check_calls(record);
}

fn check_calls(record: &Record) {
    let mut started = BTreeSet::new();
    let mut finished = BTreeSet::new();
    for event in &record.events {
        match &event.body {
            EventBody::ToolCallStarted { call_id, .. } => {
                assert!(started.insert(call_id.clone()), "the id {call_id} is used twice");
            }
            EventBody::ToolCallFinished { call_id, .. } => {
                assert!(started.contains(call_id) && finished.insert(call_id.clone()));
            }
            _ => {}
        }
    }
    assert_eq!(record.state.tool_calls.total as usize, finished.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_within_its_bounds(world in any_world()) {
        let record = live(&world, false);
        check_record(&record, &world);
    }

    #[test]
    fn every_run_can_be_written_down_at_every_step(world in any_world()) {
        let plain = live(&world, false);
        let written = live(&world, true);
        prop_assert_eq!(plain.trace(), written.trace());
        prop_assert_eq!(plain.events, written.events);
        prop_assert_eq!(plain.state, written.state);
    }
}
