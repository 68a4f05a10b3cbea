//! The context budget after a turn: what is counted, and where the bound lies.

use std::cell::RefCell;
use std::rc::Rc;

use core_protocol::Usage;
use core_protocol::event::{EventBody, StopReason};
use llm_providers::ToolProtocol;
use orchestrator::machine::{ContextCounts, ContextQuestion};

use crate::harness::Case;
use crate::script::{boxed, broken, calls, google, search, text};
use crate::shown::show;

/// Figures of one turn and the smallest window that they fit into.
struct Figures {
    usage: Option<Usage>,
    results: u64,
    final_prompt: u64,
    last_exchange: u64,
    max_tokens: u64,
    /// `last prompt + last completion + 1.5 × results + 1.5 × final prompt + max_tokens + 1000`, doubled.
    doubled_estimate: u64,
}

#[track_caller]
fn check_bound(figures: &Figures, window: u64) {
    let counts = ContextCounts {
        results: figures.results,
        final_prompt: figures.final_prompt,
        last_exchange: figures.last_exchange,
    };
    let over = figures.doubled_estimate >= 2 * window;
    let mut first = search("a");
    if let Some(usage) = figures.usage {
        first = first.full_usage(usage);
    }
    let rest = if over { vec![boxed("42")] } else { vec![text("Done."), boxed("42")] };
    let mut runner = Case::new([first].into_iter().chain(rest))
        .with(|case| {
            case.model.max_context_length = window;
            case.model.max_tokens = figures.max_tokens;
        })
        .count(move |_| counts)
        .start();
    runner.finish();
    let record = runner.into_record();
    let expected = if over { StopReason::ContextLimit } else { StopReason::Completed };
    assert_eq!(record.outcome().stop_reason, Some(expected), "with a window of {window}");
    let checked = record.events.iter().find_map(|event| match event.body {
        EventBody::ContextChecked { limit, over, .. } => Some((limit, over)),
        _ => None,
    });
    assert_eq!(checked, Some((window, over)));
}

#[test]
fn the_bound_is_where_the_formula_says() {
    let told = |input, output| Some(Usage { input, output, ..Usage::default() });
    for figures in [
        Figures {
            usage: told(20_000, 300),
            results: 1_000,
            final_prompt: 200,
            last_exchange: 0,
            max_tokens: 4_096,
            doubled_estimate: 2 * (20_000 + 300 + 1_500 + 300 + 4_096 + 1_000),
        },
        Figures {
            usage: Some(Usage {
                input: 20_000,
                output: 300,
                cache_read: 15_000,
                cache_write: 4_000,
                reasoning: 250,
            }),
            results: 1_000,
            final_prompt: 200,
            last_exchange: 0,
            max_tokens: 4_096,
            doubled_estimate: 2 * (20_000 + 300 + 1_500 + 300 + 4_096 + 1_000),
        },
        Figures {
            usage: None,
            results: 1_000,
            final_prompt: 200,
            last_exchange: 7_000,
            max_tokens: 100,
            doubled_estimate: 2 * (7_000 + 1_500 + 300 + 100 + 1_000),
        },
        Figures {
            usage: told(10, 0),
            results: 1,
            final_prompt: 1,
            last_exchange: 0,
            max_tokens: 0,
            doubled_estimate: 2 * (10 + 3 + 1_000),
        },
        Figures {
            usage: told(10, 0),
            results: 1,
            final_prompt: 0,
            last_exchange: 0,
            max_tokens: 0,
            doubled_estimate: 2 * (10 + 1_000) + 3,
        },
    ] {
        let edge = figures.doubled_estimate / 2;
        for window in [edge - 1, edge, edge + 1, edge + 2] {
            check_bound(&figures, window);
        }
    }
}

#[test]
fn counts_beyond_all_bounds_are_over() {
    let record = Case::new([search("a").usage(u64::MAX, u64::MAX), boxed("42")])
        .count(|_| ContextCounts { results: u64::MAX, final_prompt: u64::MAX, last_exchange: u64::MAX })
        .run();
    assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
}

/// The questions that a run asks, each with what was sent before it.
fn questions(case: Case) -> Vec<ContextQuestion> {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&asked);
    case.count(move |question| {
        noted.borrow_mut().push(question.clone());
        ContextCounts::default()
    })
    .run();
    asked.take()
}

fn layout(messages: &[std::sync::Arc<core_protocol::Message>]) -> String {
    messages.iter().map(|message| show(message)).collect::<Vec<_>>().join("\n")
}

#[test]
fn it_is_asked_after_each_turn_with_calls_and_no_other() {
    let asked = questions(Case::new([
        search("a"),
        broken(),
        search("a"),
        search("nothing"),
        search("b"),
        text("Done."),
        boxed("42"),
    ]));
    assert_eq!(asked.len(), 2);
    assert_eq!(layout(&asked[1].results), r#"user: {"organic":[{"title":"About b"}]}"#);
    assert_eq!(asked[1].final_prompt.joined_text(), "FINAL PROMPT: QUESTION");
}

#[test]
fn a_message_is_counted_once() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let asked = questions(
            Case::new([
                search("a"),
                calls([google("b"), google("c")]),
                search("d").usage(100, 10),
                text("Done."),
                boxed("42"),
            ])
            .protocol(protocol)
            .keep(1),
        );
        let told: Vec<bool> = asked.iter().map(|question| question.last_exchange.is_none()).collect();
        assert_eq!(told, [false, false, true], "the local count stands in where the server told nothing");
        let exchange = asked[1].last_exchange.as_ref().expect("nothing was told");
        let roles: Vec<String> = exchange
            .iter()
            .map(|message| show(message).split(['[', '{']).next().unwrap_or("").trim().to_owned())
            .collect();
        match protocol {
            ToolProtocol::Text => {
                assert_eq!(roles, ["user: QUESTION", "assistant:", "user:", "assistant:"]);
                assert_eq!(asked[1].results.len(), 1);
            }
            ToolProtocol::Native => {
                assert_eq!(exchange.len(), 4);
                assert_eq!(asked[1].results.len(), 2);
            }
        }
    }
}

#[test]
fn the_local_count_is_of_what_was_sent() {
    let asked =
        questions(Case::new([search("a"), search("b"), search("c"), text("Done."), boxed("42")]).keep(1));
    let exchange = asked[2].last_exchange.as_ref().expect("nothing was told");
    insta::assert_snapshot!(layout(exchange), @r#"
    user: QUESTION
    assistant: [web/google_search(q: a)]
    user: (omitted)
    assistant: [web/google_search(q: b)]
    user: {"organic":[{"title":"About b"}]}
    assistant: [web/google_search(q: c)]
    "#);
}

#[test]
fn usage_of_an_earlier_reply_is_not_taken_for_the_last() {
    let asked = questions(Case::new([search("a").usage(100, 10), search("b"), text("Done."), boxed("42")]));
    assert!(asked[0].last_exchange.is_none());
    assert!(asked[1].last_exchange.is_some());
}

#[test]
fn a_full_context_on_the_last_turn_is_a_full_context() {
    let record = Case::new([search("a").usage(99_000, 0), boxed("42")]).max_turns(1).run();
    assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
}

#[test]
fn all_results_of_a_dropped_turn_go() {
    let record = Case::new([search("a"), calls([google("b"), google("c")]).usage(99_000, 0), boxed("42")])
        .native()
        .run();
    assert_eq!(record.requests[2].messages.len(), 4, "{}", record.requests[2].layout());
    assert!(!record.requests[2].all_text().contains("About b"));
}
