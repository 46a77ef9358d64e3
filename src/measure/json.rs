//! Launches and frames as JSON for scripts: `info --json` (docs/schemas/info.json) and `launch`.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::frame::Frame;
use super::launch::{Cut, Launch, LaunchType, Rule, Stage};
use super::rules::Cancelled;
use super::summary::{FrameSummary, PERCENTILES};

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Stage", 3)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("begin_ns", &self.span.start)?;
        out.serialize_field("duration_ns", &self.span.end.saturating_sub(self.span.start))?;
        out.end()
    }
}

impl Serialize for Launch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Launch", 13)?;
        out.serialize_field("package", &self.package)?;
        out.serialize_field("type", &self.launch_type.map(LaunchType::name))?;
        out.serialize_field("pid", &self.pid)?;
        out.serialize_field("main_tid", &self.main_tid)?;
        out.serialize_field("render_tid", &self.render_tid)?;
        out.serialize_field("begin_ns", &self.begin)?;
        out.serialize_field("duration_ns", &self.duration())?;
        out.serialize_field("ttid_ns", &self.ttid)?;
        out.serialize_field("ttfd_ns", &self.ttfd)?;
        out.serialize_field("rule", Rule::name(self.rule))?;
        out.serialize_field("cut", &self.cut.map(Cut::name))?;
        out.serialize_field("overlapped", &self.is_overlapped)?;
        out.serialize_field("stages", &self.stages)?;
        out.end()
    }
}

impl Serialize for Cancelled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Cancelled", 2)?;
        out.serialize_field("begin_ns", &self.begin)?;
        out.serialize_field("duration_ns", &self.end.saturating_sub(self.begin))?;
        out.end()
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Frame", 12)?;
        out.serialize_field("id", &self.id)?;
        out.serialize_field("package", &self.package)?;
        out.serialize_field("pid", &self.pid)?;
        out.serialize_field("layer", &self.layer)?;
        out.serialize_field("begin_ns", &self.begin)?;
        out.serialize_field("duration_ns", &self.duration())?;
        out.serialize_field("cpu_ns", &self.cpu_ns)?;
        out.serialize_field("duration_cpu_ns", &self.duration_cpu_ns)?;
        out.serialize_field("overrun_ns", &self.overrun())?;
        out.serialize_field("janky", &self.overrun().map(|_| self.is_janky()))?;
        out.serialize_field("slow", &self.is_slow())?;
        out.serialize_field("jank_type", &self.jank_type)?;
        out.end()
    }
}

/// The percentiles in the order of [`PERCENTILES`], as fields: ns.
struct Percentiles([f64; 4]);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(PERCENTILES.iter().map(|percent| format!("p{percent}")).zip(self.0))
    }
}

impl Serialize for FrameSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("FrameSummary", 12)?;
        out.serialize_field("package", &self.package)?;
        out.serialize_field("layer", &self.layer)?;
        out.serialize_field("count", &self.count)?;
        out.serialize_field("with_deadline", &self.with_deadline)?;
        out.serialize_field("deadline", &self.deadline.map(|deadline| deadline.name()))?;
        out.serialize_field("janky", &self.janky)?;
        out.serialize_field("janky_share", &self.janky_share())?;
        out.serialize_field("slow", &self.slow)?;
        out.serialize_field("big_jank", &self.big_jank)?;
        out.serialize_field("huge_jank", &self.huge_jank)?;
        out.serialize_field("duration_cpu_ns", &Percentiles(self.duration_cpu_ns))?;
        out.serialize_field("overrun_ns", &self.overrun_ns.map(Percentiles))?;
        out.end()
    }
}
