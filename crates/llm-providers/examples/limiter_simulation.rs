//! How well the shared limiter follows a server whose allowance changes: figures from simulated hours, the worst of
//! three draws of each scenario. Each line is a figure with its unit and its aim, between tabs.
//!
//! `cargo run --release -p llm-providers --example limiter_simulation`
#![allow(clippy::print_stdout, reason = "prints for a living")]

#[path = "../tests/support/simulated_server.rs"]
mod simulated_server;

use simulated_server::{Figures, play, scenarios};

/// Draws of each scenario.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

fn main() {
    for scenario in scenarios() {
        let outcomes: Vec<_> = SEEDS.map(|seed| play(&scenario, seed)).collect();
        let worst = |of: fn(&Figures) -> f64, least: bool, whole: bool| {
            let values =
                outcomes.iter().map(|outcome| of(if whole { &outcome.whole } else { &outcome.steady }));
            let worst = if least { values.fold(f64::INFINITY, f64::min) } else { values.fold(0.0, f64::max) };
            100.0 * worst
        };
        let name = scenario.name;
        println!("{name}: steady, used\t{:.1}\t%\tat least 90", worst(Figures::used, true, false));
        println!("{name}: steady, refused\t{:.2}\t%\tat most 5", worst(Figures::refused, false, false));
        println!("  with its changes, used\t{:.1}\t%", worst(Figures::used, true, true));
        println!("  with its changes, refused\t{:.2}\t%", worst(Figures::refused, false, true));
    }
}
