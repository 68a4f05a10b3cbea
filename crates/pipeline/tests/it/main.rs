//! Integration tests of the crate, one binary.

mod config;
mod whole_run;
