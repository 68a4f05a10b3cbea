//! Configuration from outside: real directories, real files, the shipped presets.

mod accepted;
mod errors;
mod hostile;
mod layers;
mod presets;
mod secrets;
mod support;
