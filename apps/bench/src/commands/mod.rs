//! What each command does.

mod import;
mod results;
mod run;
mod status;
mod suites;

pub(crate) use import::import;
pub(crate) use results::{compare, export, report, score, vote};
pub(crate) use run::{resume, run, without_secrets};
pub(crate) use status::status;
pub(crate) use suites::{ls, prepare};
