//! What `mark` and `wrap` share: `--tag`, and opening trace_marker.

use std::path::Path;

use anyhow::Context;

use crate::android::tags::{self, TAGS, Tag};
use crate::android::{Properties, TagWatch, atrace_properties};
use crate::console::complain;
use crate::markers::Tracer;

/// Reads a tag's name.
pub fn parse(name: &str) -> Result<Tag, String> {
    let names = || TAGS.map(|t| t.name).join(", ");
    Tag::find(name).ok_or_else(|| format!("no such tag; there are {}", names()))
}

/// Opens trace_marker below `tracefs`, or where this kernel has it, for markers that are written only while `tag` is on
/// (`app`: for the process that runs us). Without a tag, always.
pub fn open_tracer(tracefs: Option<&Path>, tag: Option<Tag>) -> anyhow::Result<Tracer> {
    let tracer = match tracefs {
        Some(dir) => {
            let path = dir.join("trace_marker");
            Tracer::open_at(&path).with_context(|| format!("opening {}", path.display()))
        }
        None => Tracer::open().context("opening trace_marker; `tracebridge doctor` says where tracefs is"),
    }?;
    let Some(tag) = tag.filter(|tag| tag.mask() != tags::ALWAYS) else { return Ok(tracer) };
    let runs_us = std::os::unix::process::parent_id();
    if let Some(watch) = TagWatch::new(tag) {
        return Ok(tracer.with_watch(Some(watch.for_process(runs_us))));
    }
    // Not allowed to see the properties' memory: then as they are now.
    let Some(properties) = Properties::here() else {
        complain(format_args!(
            "tracebridge: no system properties here, so the tag {tag} is off and nothing is written"
        ));
        return Ok(tracer.with_watch(None));
    };
    let cmdline = std::fs::read(format!("/proc/{runs_us}/cmdline")).unwrap_or_default();
    let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
    let on = atrace_properties::tags_on(&properties, name)? & tag.mask() != 0;
    Ok(if on { tracer } else { tracer.with_watch(None) })
}
