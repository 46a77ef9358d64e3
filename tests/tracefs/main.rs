//! Recording on this machine's own tracefs (needs root).

#[path = "../support/mod.rs"]
mod support;

mod atrace;
mod machine;
mod recording;
mod wrap;
