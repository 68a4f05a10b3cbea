//! The manager against real servers: a Python program of the standard library, npm's, and handlers
//! inside this process.

mod calls;
mod endings;
mod fastmcp;
mod faults;
#[cfg(feature = "http")]
mod http;
mod in_process;
mod npm;
mod start;
mod support;
