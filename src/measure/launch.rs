//! A launch of an app.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::mark::{BIND_APPLICATION, DO_FRAME};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::tracks::Span;

/// How much of the app was there when its launch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LaunchType {
    /// Not even its process.
    Cold,
    /// Its process, but the activity had to be made or started.
    Warm,
    /// The activity, which only came to the foreground.
    Hot,
}

impl LaunchType {
    /// Android's word.
    pub fn name(self) -> &'static str {
        match self {
            LaunchType::Cold => "cold",
            LaunchType::Warm => "warm",
            LaunchType::Hot => "hot",
        }
    }
}

/// By which markers launches were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// Android 12 and later: `launchingActivity#N`.
    Android12,
    /// Android 10 and 11: `launching: PACKAGE` between two intents.
    Android10,
    /// Android 9 and earlier: `launching: PACKAGE`, and `activityResume` for a hot launch.
    Android9,
    /// The system server's markers were not recorded: the app's own.
    App,
}

impl Rule {
    /// The rule's name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Android12 => "android-12",
            Rule::Android10 => "android-10",
            Rule::Android9 => "android-9",
            Rule::App => "app",
        }
    }

    /// How launches were found, for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::Android12 => "as Android 12 and later mark them",
            Rule::Android10 => "as Android 10 and 11 mark them",
            Rule::Android9 => "as Android 9 and earlier mark them",
            Rule::App => "by the app's own markers: those of system_server were not recorded",
        }
    }
}

/// Where the recording cuts a launch: it is then not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cut {
    /// The launch began before the recording.
    Begin,
    /// The launch went on when the recording ended.
    End,
}

impl Cut {
    /// The word in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Cut::Begin => "begin",
            Cut::End => "end",
        }
    }
}

/// With what a launch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LaunchBegin {
    /// The system was asked to start an activity.
    Request,
    /// The app's process was bound to it.
    Bind,
    /// The activity was started, or got the foreground.
    Activity,
}

impl LaunchBegin {
    /// The word in outputs.
    pub fn name(self) -> &'static str {
        match self {
            LaunchBegin::Request => "request",
            LaunchBegin::Bind => "bind",
            LaunchBegin::Activity => "activity",
        }
    }
}

/// With what a launch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LaunchEnd {
    /// The system says so.
    System,
    /// The RenderThread has drawn the first frame.
    Drawn,
    /// The main thread's part of the first frame: no drawing was recorded.
    Frame,
    /// The activity has the foreground: no frame was recorded.
    Resumed,
}

impl LaunchEnd {
    /// The words in outputs.
    pub fn name(self) -> &'static str {
        match self {
            LaunchEnd::System => "launch end",
            LaunchEnd::Drawn => "frame drawn",
            LaunchEnd::Frame => "first frame",
            LaunchEnd::Resumed => "activity resumed",
        }
    }
}

/// A step of a launch: a slice of the app's main thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stage {
    /// The slice's name.
    pub name: String,
    pub span: Span,
}

/// A launch of an app. Times are those of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The app's package; empty where the recording does not name it.
    pub package: String,
    pub launch_type: Option<LaunchType>,
    pub rule: Rule,
    /// Where the launch is cut at its begin, the begin of the timeline.
    pub begin: Timestamp,
    /// Where the launch is cut at its end, the end of the timeline.
    pub end: Timestamp,
    pub cut: Option<Cut>,
    pub begins_with: LaunchBegin,
    pub ends_with: LaunchEnd,
    /// The app's process, where its markers were recorded.
    pub pid: Option<Pid>,
    pub main_tid: Option<Tid>,
    /// The thread that drew the first frame.
    pub render_tid: Option<Tid>,
    /// Time to initial display, ns: from the begin to the end of the drawing of the first frame.
    pub ttid: Option<u64>,
    /// Time to full display, ns: from the begin to the end of the drawing of the first frame that ended after
    /// the app had said that it is fully drawn.
    pub ttfd: Option<u64>,
    /// Slices of the main thread, in the order of their begins.
    pub stages: Vec<Stage>,
    /// Whether another launch went on at the same time.
    pub is_overlapped: bool,
}

impl Launch {
    /// How long the launch took, ns; `None` if it is cut.
    pub fn duration(&self) -> Option<u64> {
        self.cut.is_none().then(|| self.end.since(self.begin))
    }

    /// The binding of the app's process, where the launch has one.
    pub fn bind(&self) -> Option<Span> {
        self.stages.iter().find(|stage| stage.name == BIND_APPLICATION).map(|stage| stage.span)
    }

    /// The main thread's part of the first frame.
    pub fn first_frame(&self) -> Option<Span> {
        self.stages.iter().find(|stage| stage.name.starts_with(DO_FRAME)).map(|stage| stage.span)
    }
}

/// A launch that was cancelled, or of which nothing tells how it ended: from its begin to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cancelled {
    pub begin: Timestamp,
    pub end: Timestamp,
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Stage", 3)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("begin_ns", &self.span.start)?;
        out.serialize_field("duration_ns", &self.span.end.since(self.span.start))?;
        out.end()
    }
}

/// As `info --json` (docs/schemas/info.json) and `launch` print it.
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
        out.serialize_field("duration_ns", &self.end.since(self.begin))?;
        out.end()
    }
}
