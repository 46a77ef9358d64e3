//! The flag `--tag` of `mark` and `wrap`, and the opening of `trace_marker`.

use std::path::Path;

use anyhow::Context;

use crate::android::tags::{self, TAGS, Tag};
use crate::android::{Properties, atrace_properties};
use crate::console::complain;
use crate::markers::TagWatch;
use crate::markers::Tracer;

/// Parses the value of `--tag`.
pub fn parse_tag(name: &str) -> Result<Tag, String> {
    let names = || TAGS.map(|t| t.name).join(", ");
    Tag::find(name).ok_or_else(|| format!("there is no such tag; the tags are {}", names()))
}

/// Opens `trace_marker` below `tracefs`, or in its usual place, for markers that are written only while `tag`
/// is on. For the tag `app` the process that runs tracebridge decides. Without a tag, markers are always
/// written.
pub fn open_tracer(tracefs: Option<&Path>, tag: Option<Tag>) -> anyhow::Result<Tracer> {
    let tracer = match tracefs {
        Some(dir) => {
            let path = dir.join("trace_marker");
            Tracer::open_at(&path).with_context(|| format!("opening {}", path.display()))
        }
        None => Tracer::open().context("opening trace_marker; `tracebridge doctor` says where tracefs is"),
    }?;
    let Some(tag) = tag.filter(|tag| tag.mask() != tags::ALWAYS) else { return Ok(tracer) };
    let parent = std::os::unix::process::parent_id();
    if let Some(watch) = TagWatch::new(tag) {
        return Ok(tracer.with_watch(Some(watch.for_process(parent))));
    }
    // This user may not map the properties, so the tag keeps the state that it has now.
    let Some(properties) = Properties::here() else {
        complain(format_args!(
            "tracebridge: no system properties here, so the tag {tag} is off and nothing is written"
        ));
        return Ok(tracer.with_watch(None));
    };
    let cmdline = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
    let on = atrace_properties::tags_on(&properties, name)? & tag.mask() != 0;
    Ok(if on { tracer } else { tracer.with_watch(None) })
}
