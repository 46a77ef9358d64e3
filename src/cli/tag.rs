//! What `mark` and `wrap` share: `--tag`, and opening trace_marker.

use std::path::Path;

use anyhow::Context;

use crate::atrace::tags::{self, TAGS, Tag};
use crate::atrace::{Properties, Tracer, userspace};

/// Reads a tag's name.
pub fn parse(name: &str) -> Result<Tag, String> {
    let names = || TAGS.map(|t| t.name).join(", ");
    Tag::find(name).ok_or_else(|| format!("no such tag; there are {}", names()))
}

/// Whether the tag is on in this system, `app` for the process that runs us.
pub fn is_on(tag: Option<Tag>) -> anyhow::Result<bool> {
    let Some(tag) = tag.filter(|tag| tag.mask() != tags::ALWAYS) else { return Ok(true) };
    let Some(properties) = Properties::here() else {
        eprintln!("tracebridge: no system properties here, so the tag {tag} is off and nothing is written");
        return Ok(false);
    };
    let parent = std::os::unix::process::parent_id();
    let cmdline = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
    Ok(userspace::tags_on(&properties, name)? & tag.mask() != 0)
}

/// Opens trace_marker below `tracefs`, or where this kernel has it.
pub fn open_tracer(tracefs: Option<&Path>) -> anyhow::Result<Tracer> {
    let Some(dir) = tracefs else {
        return Tracer::open().context("opening trace_marker; `tracebridge doctor` says where tracefs is");
    };
    let path = dir.join("trace_marker");
    Tracer::open_at(&path).with_context(|| format!("opening {}", path.display()))
}
