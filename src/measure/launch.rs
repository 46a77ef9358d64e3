//! A launch of an app.

use schemars::JsonSchema;
use serde::Serialize;

use super::mark::{BIND_APPLICATION, DO_FRAME};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::tracks::Span;

/// How much of the app was there when its launch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub(crate) enum Rule {
    /// Android 12 and later: `launchingActivity#N`.
    #[serde(rename = "android-12")]
    Android12,
    /// Android 10 and 11: `launching: PACKAGE` between two intents.
    #[serde(rename = "android-10")]
    Android10,
    /// Android 9 and earlier: `launching: PACKAGE`, and `activityResume` for a hot launch.
    #[serde(rename = "android-9")]
    Android9,
    /// The system server's markers were not recorded: the app's own.
    #[serde(rename = "app")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "StageJson")]
#[schemars(with = "StageJson")]
pub(crate) struct Stage {
    /// The slice's name.
    pub name: String,
    pub span: Span,
}

/// A launch of an app. Times are those of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "LaunchFields")]
#[schemars(with = "LaunchFields")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "CancelledJson")]
#[schemars(with = "CancelledJson")]
pub(crate) struct Cancelled {
    pub begin: Timestamp,
    pub end: Timestamp,
}

/// A stage as `--json` prints it.
#[derive(Serialize, JsonSchema)]
struct StageJson {
    /// The slice's name.
    name: String,
    begin_ns: Timestamp,
    duration_ns: u64,
}

impl From<Stage> for StageJson {
    fn from(Stage { name, span: Span { start, end, .. } }: Stage) -> StageJson {
        StageJson { name, begin_ns: start, duration_ns: end.since(start) }
    }
}

/// A launch as `--json` prints it.
#[derive(Serialize, JsonSchema)]
struct LaunchFields {
    /// The app's package; empty where the recording does not name it.
    package: String,
    /// How much of the app was there before; null where the app's markers are missing.
    #[serde(rename = "type")]
    launch_type: Option<LaunchType>,
    /// The app's process.
    pid: Option<Pid>,
    /// The main thread of the app.
    main_tid: Option<Tid>,
    /// The thread that drew the first frame.
    render_tid: Option<Tid>,
    /// Begin; of a launch that is cut at its begin, the begin of the recording.
    begin_ns: Timestamp,
    /// How long the launch took, by Android's own markers where there are any; null if the recording cuts
    /// the launch.
    duration_ns: Option<u64>,
    /// Time to initial display: from the begin to the end of the drawing of the first frame.
    ttid_ns: Option<u64>,
    /// Time to full display: from the begin to the end of the drawing of the first frame that ended after
    /// the app had said that it is fully drawn.
    ttfd_ns: Option<u64>,
    /// By which markers the launch was found: those of a release of Android, or the app's own.
    rule: Rule,
    /// Where the recording cuts the launch.
    cut: Option<Cut>,
    /// Whether another launch went on at the same time.
    overlapped: bool,
    /// Slices of the main thread, in the order of their begins.
    stages: Vec<Stage>,
}

impl From<Launch> for LaunchFields {
    fn from(launch: Launch) -> LaunchFields {
        LaunchFields {
            duration_ns: launch.duration(),
            package: launch.package,
            launch_type: launch.launch_type,
            pid: launch.pid,
            main_tid: launch.main_tid,
            render_tid: launch.render_tid,
            begin_ns: launch.begin,
            ttid_ns: launch.ttid,
            ttfd_ns: launch.ttfd,
            rule: launch.rule,
            cut: launch.cut,
            overlapped: launch.is_overlapped,
            stages: launch.stages,
        }
    }
}

/// A cancelled launch as `--json` prints it.
#[derive(Serialize, JsonSchema)]
struct CancelledJson {
    begin_ns: Timestamp,
    duration_ns: u64,
}

impl From<Cancelled> for CancelledJson {
    fn from(Cancelled { begin, end }: Cancelled) -> CancelledJson {
        CancelledJson { begin_ns: begin, duration_ns: end.since(begin) }
    }
}
