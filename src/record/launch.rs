//! Records the start of an app: stops the app, starts recording, starts the app with its method profiler on,
//! waits for the launch to end, and collects both files.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::record_while::{RecordedWork, RecordingEnd, record_while};
use super::recorder::RecordingPlan;
use super::request::{BufferNotice, RecordingRequest};
use super::{RecordError, RecordingSummary, Tracefs};
use crate::android::system::activity_manager::{Activity, ActivityError, Profiler};
use crate::android::system::system_bin;

/// Time between two looks at whether the recording has ended.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long the profiler may take to stop after a signal. Then its stop is left to itself.
const HURRY_TIME: Duration = Duration::from_millis(500);

/// The start of an app that is to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct LaunchRequest {
    /// `PACKAGE/ACTIVITY`, or `PACKAGE` for the activity that the app's icon starts.
    pub(crate) app: String,
    /// What is recorded beside the markers of the app itself.
    pub(crate) recording: RecordingRequest,
    pub(crate) plan: RecordingPlan,
    /// How the app's methods are traced; `None` for a recording alone.
    pub(crate) profiler: Option<Profiler>,
    /// How long the recording goes on after the launch has ended.
    pub(crate) settle: Duration,
}

/// A launch that was recorded, successful or not.
#[derive(Debug)]
pub(crate) struct RecordedLaunch {
    pub(crate) summary: RecordingSummary,
    pub(crate) launch: Result<LaunchReport, LaunchError>,
}

/// The result of a launch that came to its end.
#[derive(Debug)]
pub(crate) struct LaunchReport {
    /// The lines of `am start` that give times and the kind of start (`TotalTime: 512`).
    pub(crate) times: Vec<String>,
    /// The method trace; `None` if none was asked for.
    pub(crate) method_trace: Option<MethodTraceFile>,
}

/// The file that the app's runtime writes the method trace to.
#[derive(Debug)]
pub(crate) struct MethodTraceFile {
    pub(crate) path: PathBuf,
    /// The file's length; 0 if the runtime has not written it.
    pub(crate) bytes: u64,
}

/// Why the start of an app could not be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// Android's activity manager refused or failed.
    #[error(transparent)]
    Activity(#[from] ActivityError),
    /// The recording failed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The recording ended first.
    #[error("the recording ended ({ended_by}) before the launch of {component} did")]
    RecordingEndedFirst {
        /// Why the recording ended, as in [`RecordingSummary::ended_by`].
        ended_by: String,
        /// The activity.
        component: String,
    },
    /// Tracing was never switched on, so the app was not started.
    #[error("the recording did not start")]
    NotStarted,
}

/// Records the start of an app. An error means that there is no recording.
pub(crate) fn record_launch(
    request: &LaunchRequest,
    notify: &mut dyn FnMut(BufferNotice),
) -> Result<RecordedLaunch, LaunchError> {
    let activity = Activity::find(&request.app, &system_bin())?;
    let mut recording = request.recording.clone();
    if !recording.apps.contains(&activity.package) {
        recording.apps.push(activity.package.clone());
    }
    activity.stop()?;
    let work = |_: &Tracefs, end: &RecordingEnd| launch(request, &activity, end);
    let RecordedWork { summary, result } =
        record_while(&recording, &request.plan, "the launch ended", notify, || (), work)?;
    let summary = summary?;
    let launch = result.unwrap_or(Err(LaunchError::NotStarted)).map_err(|error| match error {
        LaunchError::RecordingEndedFirst { component, .. } => {
            LaunchError::RecordingEndedFirst { ended_by: summary.ended_by.clone(), component }
        }
        other => other,
    });
    Ok(RecordedLaunch { summary, launch })
}

/// Starts the app, waits until the launch has ended and settled, and stops the profiler.
fn launch(
    request: &LaunchRequest,
    activity: &Activity,
    end: &RecordingEnd,
) -> Result<LaunchReport, LaunchError> {
    let profiler = request.profiler.as_ref();
    if let Some(profiler) = profiler {
        // An old method trace would be taken for the new one as long as the runtime has not written the new
        // one. It is kept until the recording has begun.
        let _ = std::fs::remove_file(&profiler.path);
    }
    let signalled = Cell::new(None);
    let hurry = || {
        let since = signalled.get().or_else(|| end.signal().map(|_| Instant::now()));
        signalled.set(since);
        since.is_some_and(|since: Instant| since.elapsed() > HURRY_TIME)
    };
    let answer = activity.start(profiler, || end.has_come());
    let settled = Instant::now() + request.settle;
    while answer.is_ok() && !end.has_come() && Instant::now() < settled {
        std::thread::sleep(END_CHECK_INTERVAL);
    }
    if let Err(ActivityError::NoAnswer { .. }) = answer {
        if profiler.is_some() {
            // `am` gave no answer in time, but the app may be running and its methods may be traced.
            let _ = activity.stop_profiler(hurry);
        }
        // The reason is known only when the recording has ended: the caller fills it in.
        let (ended_by, component) = (String::new(), activity.component.clone());
        return Err(LaunchError::RecordingEndedFirst { ended_by, component });
    }
    let answer = answer?;
    let method_trace = match profiler {
        Some(profiler) => {
            activity.stop_profiler(hurry)?;
            Some(MethodTraceFile { path: profiler.path.clone(), bytes: profiler.wait_until_written(hurry) })
        }
        None => None,
    };
    let is_time = |line: &&str| line.contains("Time:") || line.contains("State:");
    let times = answer.lines().map(str::trim).filter(is_time).map(str::to_owned).collect();
    Ok(LaunchReport { times, method_trace })
}
