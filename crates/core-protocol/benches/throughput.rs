//! Speed of the parsers.
fn main() { divan::main(); }
