//! The pages of the documentation, and the schemas of the JSON outputs, which a client reads by their
//! address.

/// A page: its address behind `tracebridge://`, what it is, and its text.
pub(super) struct Page {
    pub address: &'static str,
    pub title: &'static str,
    pub text: &'static str,
}

/// The begin of every address.
pub(super) const SCHEME: &str = "tracebridge://";

macro_rules! pages {
    ($($path:literal: $title:literal,)*) => {
        &[$(Page { address: $path, title: $title, text: include_str!(concat!("../../", $path)) }),*]
    };
}

/// All pages.
pub(super) const PAGES: &[Page] = pages! {
    "docs/why.md": "The rule of each cause, and how often it is right",
    "docs/recipes.md": "What to do for a slow start, jank and others",
    "docs/formats.md": "Inputs and outputs, and what each holds",
    "docs/method-traces.md": "Method traces and profiles",
    "docs/clocks.md": "Clocks, and how traces are put on one",
    "docs/gate.md": "The gate: conditions, test, and counted errors",
    "docs/dataset.md": "The tables of a dataset",
    "docs/recording.md": "Recording: categories, filters, losses",
    "docs/locked-phone.md": "What a phone without root permits",
    "docs/limits.md": "Limits",
    "docs/schemas/info.json": "Schema of info --json",
    "docs/schemas/why.json": "Schema of why --json",
    "docs/schemas/profile.json": "Schema of profile --json",
    "docs/schemas/gate.json": "Schema of gate --json",
    "docs/schemas/launch.json": "Schema of launch --json",
    "docs/schemas/adb.json": "Schema of adb … --json",
};
