//! Golden inputs from a real kernel and from real trace-cmd, and golden outputs: see README.md in this
//! directory. The expected texts come from the kernel and from trace-cmd, so that a layout which the
//! product's reader and its writer misunderstand alike is found.

#[path = "../../shared/capture.rs"]
mod capture;

mod agreement;
mod matrix;
mod outputs;
mod pages;
mod printed;
mod round_trips;
mod text;
mod trace_cmd;

use std::path::{Path, PathBuf};

/// The path of a file below tests/golden.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
