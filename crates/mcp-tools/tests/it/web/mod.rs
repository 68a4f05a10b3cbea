//! The tools that reach the network, against real servers of this machine.

mod downloading;
mod egress;
mod extracting;
mod proxied;
mod sandboxed;
mod scraping;
mod searching;
mod support;
