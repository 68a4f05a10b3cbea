#![doc = include_str!("../README.md")]

pub mod canary;
pub mod compare;
pub mod dataset;
pub mod exact;
pub mod export;
pub mod figures;
mod file_names;
pub mod import;
pub mod judge;
pub mod prepare;
pub mod records;
pub mod report;
pub mod run;
pub mod sample;
pub mod score;
pub mod suite;
pub mod verdict;
pub mod vote;

/// Now, RFC 3339 in UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
