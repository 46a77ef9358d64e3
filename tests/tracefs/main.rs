//! Recording on this machine's own tracefs (needs root).

#[path = "../support/mod.rs"]
mod support;

mod atrace;
mod locked_down;
mod machine;
mod recording;
mod text;
mod wrap;
