//! How well the shared limiter follows a server whose allowance changes: figures from simulated hours.
//!
//! `cargo run --release -p llm-providers --example limiter_simulation`
#![allow(clippy::print_stdout, reason = "prints for a living")]

#[path = "../tests/support/simulated_server.rs"]
mod simulated_server;

fn main() {
    println!("{:<28} {:>22} {:>22} {:>10}", "", "steady: used, refused", "whole: used, refused", "answered");
    for scenario in simulated_server::scenarios() {
        for seed in 1..=3 {
            let outcome = simulated_server::play(&scenario, seed);
            let shares = |figures: &simulated_server::Figures| {
                format!("{:>9.1} % {:>8.2} %", 100.0 * figures.used(), 100.0 * figures.refused())
            };
            println!(
                "{:<28} {:>22} {:>22} {:>10}",
                scenario.name,
                shares(&outcome.steady),
                shares(&outcome.whole),
                outcome.whole.answered
            );
        }
    }
}
