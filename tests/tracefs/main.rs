//! Recording on this machine's own tracefs (needs root).

#[path = "../support/capture.rs"]
mod capture;
#[path = "../support/mod.rs"]
mod support;

mod atrace;
mod atrace_text;
mod compressed;
mod doctor;
mod knobs;
mod launch;
mod locked_down;
mod machine;
mod recording;
mod text;
mod truth;
mod wrap;
