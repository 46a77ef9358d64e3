//! A frame of an app.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A frame takes longer than this, ns, to be slow, a big jank and a huge jank: Perfetto's limits of CPU time
/// (`stdlib/android/frames/per_frame_metrics.sql`).
const SLOW_NS: u64 = 20_000_000;
const BIG_JANK_NS: u64 = 50_000_000;
const HUGE_JANK_NS: u64 = 200_000_000;

/// Where the deadline of a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deadline {
    /// SurfaceFlinger's FrameTimeline.
    FrameTimeline,
    /// The period of VSYNC, as the recording's counter `VSYNC-app` shows it.
    Vsync,
}

impl Deadline {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Deadline::FrameTimeline => "frame-timeline",
            Deadline::Vsync => "vsync",
        }
    }
}

/// A frame: what the UI thread and the RenderThread of a process did for it. Times are ns of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The frame's number, which is that of its VSYNC (from Android 12 on).
    pub id: Option<i64>,
    pub pid: i32,
    /// The app's name by its process; empty where the recording does not name it.
    pub package: String,
    /// The surface that the frame is for, where FrameTimeline names it.
    pub layer: Option<String>,
    pub ui_tid: i32,
    pub render_tid: i32,
    /// The begin of `Choreographer#doFrame`; with FrameTimeline that of the actual frame.
    pub begin: u64,
    /// The end of the last `DrawFrame`; with FrameTimeline that of the actual frame.
    pub end: u64,
    /// The end of the first `DrawFrame`.
    pub drawn: u64,
    /// `Choreographer#doFrame` and all `DrawFrame` together, and with FrameTimeline by how much the frame
    /// began late: Perfetto's CPU time of a frame.
    pub cpu_ns: u64,
    /// Whether FrameTimeline expected the frame and says nothing of when it began: Perfetto then has no CPU
    /// time of it.
    pub is_lateness_unknown: bool,
    /// From the begin of `Choreographer#doFrame` to the end of the first `DrawFrame`: what androidx calls
    /// `frameDurationCpuMs`.
    pub duration_cpu_ns: u64,
    /// When the frame was to be done, and how that is known.
    pub expected_end: Option<u64>,
    pub deadline: Option<Deadline>,
    /// With FrameTimeline, the end that Perfetto compares with that: of the layer that began first.
    pub timeline_end: Option<u64>,
    /// SurfaceFlinger's word for the reason why the frame was late.
    pub jank_type: Option<String>,
}

impl Frame {
    /// How long the frame took, ns.
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// By how much the frame ended after its deadline, ns; negative if it was early.
    pub fn overrun(&self) -> Option<i64> {
        let expected = self.expected_end?;
        let end = self.timeline_end.unwrap_or(self.end);
        Some(i64::try_from(i128::from(end) - i128::from(expected)).unwrap_or(i64::MAX))
    }

    /// Whether the frame ended after its deadline.
    pub fn is_janky(&self) -> bool {
        self.overrun().is_some_and(|overrun| overrun > 0)
    }

    /// Perfetto's CPU time of the frame, ns.
    fn cpu(&self) -> Option<u64> {
        (!self.is_lateness_unknown).then_some(self.cpu_ns)
    }

    pub fn is_slow(&self) -> bool {
        self.cpu() > Some(SLOW_NS)
    }

    pub fn is_big_jank(&self) -> bool {
        self.cpu() > Some(BIG_JANK_NS)
    }

    pub fn is_huge_jank(&self) -> bool {
        self.cpu() > Some(HUGE_JANK_NS)
    }
}

/// As `info --json` prints it (docs/schemas/info.json).
impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Frame", 12)?;
        out.serialize_field("id", &self.id)?;
        out.serialize_field("package", &self.package)?;
        out.serialize_field("pid", &self.pid)?;
        out.serialize_field("layer", &self.layer)?;
        out.serialize_field("begin_ns", &self.begin)?;
        out.serialize_field("duration_ns", &self.duration())?;
        out.serialize_field("cpu_ns", &self.cpu())?;
        out.serialize_field("duration_cpu_ns", &self.duration_cpu_ns)?;
        out.serialize_field("overrun_ns", &self.overrun())?;
        out.serialize_field("janky", &self.overrun().map(|_| self.is_janky()))?;
        out.serialize_field("slow", &self.is_slow())?;
        out.serialize_field("jank_type", &self.jank_type)?;
        out.end()
    }
}
