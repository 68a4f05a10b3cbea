//! Tests of the crate from outside: cases from tables, properties, published files.

#![expect(clippy::expect_used, clippy::panic, reason = "what the tests call is test code too")]

mod arguments;
mod boxed;
mod calls;
mod categories;
mod convert;
mod custom_dialect;
mod linear;
mod names;
mod native;
mod properties;
mod render;
mod schema;
mod stream;
mod summary;
mod table;
mod types;
