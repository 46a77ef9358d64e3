//! Records the start of an app: stops the app, starts recording, starts the app with its method profiler on,
//! waits for the launch to end, and collects both files.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use super::record_while::{RecordedWork, RecordingEnd, record_while, work_unrecorded};
use super::recorder::RecordingPlan;
use super::request::{BufferNotice, RecordingRequest};
use super::{AFTER_SIGNAL_TIMEOUT, RecordError, Tracefs};
use crate::android::activity_manager::{Activity, ActivityError, Profiler};
use crate::android::simpleperf::{SampleFile, Sampler};
use crate::android::system_bin;
use crate::step_log::{Phase, print_step};
use crate::trace_dat::recording_summary::{RecordingEndReason, RecordingSummary};

/// Time between two checks whether the recording has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the start before a warm start may take.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// The start of an app that is to be observed.
#[derive(Debug, Clone)]
pub(crate) struct LaunchRequest {
    /// `PACKAGE/ACTIVITY`, or `PACKAGE` for the activity that the app's icon starts.
    pub(crate) app: String,
    /// How the app's methods are traced; `None` for a recording alone.
    pub(crate) profiler: Option<Profiler>,
    /// How the app is sampled; `None` where it is not.
    pub(crate) sampler: Option<Sampler>,
    /// Whether the app's process is to be there before the launch.
    pub(crate) is_warm: bool,
    /// How long the recording goes on after the launch has ended.
    pub(crate) settle: Duration,
}

/// A launch that was recorded, successful or not.
#[derive(Debug)]
pub(crate) struct RecordedLaunch {
    pub(crate) summary: RecordingSummary,
    pub(crate) launch: Result<LaunchReport, LaunchError>,
}

/// The result of a launch that came to its end. Its JSON form is part of the command line's interface.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaunchReport {
    /// The lines of `am start` that give times and the kind of start (`TotalTime: 512`).
    pub(crate) times: Vec<String>,
    /// The method trace; `None` if none was asked for.
    pub(crate) method_trace: Option<MethodTraceFile>,
    /// The samples; `None` if none were asked for, or simpleperf has taken none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) samples: Option<SampleFile>,
    /// Why there are no samples, although they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sampler_refused: Option<String>,
    /// Why the tracer did not start, although the app did.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) tracer_refused: Option<ActivityError>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_text<S: Serializer>(error: &Option<ActivityError>, serializer: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(ToString::to_string).serialize(serializer)
}

/// The file that the app's runtime writes the method trace to.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        ended_by: RecordingEndReason,
        /// The activity.
        component: String,
    },
    /// Tracing was never switched on, so the app was not started.
    #[error("the recording did not start")]
    NotStarted,
}

impl LaunchError {
    /// Whether Android has not started the app.
    pub(crate) fn is_refusal(&self) -> bool {
        let LaunchError::Activity(error) = self else { return false };
        matches!(error, ActivityError::NotStarted { .. } | ActivityError::UnknownOption { .. })
    }

    /// The error with the reason for the end of the recording, which the launch itself does not know.
    fn ended_by(self, reason: &RecordingEndReason) -> LaunchError {
        match self {
            LaunchError::RecordingEndedFirst { component, .. } => {
                LaunchError::RecordingEndedFirst { ended_by: reason.clone(), component }
            }
            other => other,
        }
    }
}

/// Records the start of an app: what `recording` names, and the markers of the app itself. An error means
/// that there is no recording.
pub(crate) fn record_launch(
    request: &LaunchRequest,
    mut recording: RecordingRequest,
    plan: &RecordingPlan,
    notify: &mut dyn FnMut(BufferNotice),
) -> Result<RecordedLaunch, LaunchError> {
    let activity = prepare(request)?;
    if !recording.apps.contains(&activity.package) {
        recording.apps.push(activity.package.clone());
    }
    let work = |_: &Tracefs, end: &RecordingEnd| launch(request, &activity, end);
    let RecordedWork { summary, result } =
        record_while(&recording, plan, RecordingEndReason::LaunchEnded, notify, || (), work)?;
    let summary = summary?;
    let launch =
        result.unwrap_or(Err(LaunchError::NotStarted)).map_err(|error| error.ended_by(&summary.ended_by));
    Ok(RecordedLaunch { summary, launch })
}

/// Starts an app as [`record_launch`] does, while another program records, for at most `time`.
pub(crate) fn launch_unrecorded(
    request: &LaunchRequest,
    time: Duration,
) -> Result<LaunchReport, LaunchError> {
    let activity = prepare(request)?;
    let (launched, ended_by) = work_unrecorded(time, |end| launch(request, &activity, end))?;
    launched.map_err(|error| error.ended_by(&ended_by))
}

/// Finds the activity, and brings the app into the state from which it is to start.
fn prepare(request: &LaunchRequest) -> Result<Activity, LaunchError> {
    let _phase = Phase::begin("prepare the app");
    let activity = Activity::find(&request.app, &system_bin())?;
    print_step(format_args!("the activity to start is {}", activity.component));
    if request.is_warm {
        activity.warm_up(warm_up_deadline())?;
    } else {
        activity.stop()?;
    }
    Ok(activity)
}

/// Ends the start before the recording, which nobody would see going on.
fn warm_up_deadline() -> impl Fn() -> bool {
    let give_up = Instant::now() + WARM_UP_TIMEOUT;
    move || Instant::now() > give_up
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
    let cancel = || {
        let since = signalled.get().or_else(|| end.signal().map(|_| Instant::now()));
        signalled.set(since);
        since.is_some_and(|since: Instant| since.elapsed() > AFTER_SIGNAL_TIMEOUT)
    };
    // It waits for the process of the app, so that no sample of the start is missing.
    let sampler = request.sampler.as_ref().map(|sampler| sampler.start(&activity.package));
    let phase = Phase::begin("start the app");
    let (answer, tracer) = start(request, activity, end);
    drop(phase);
    let settled = Instant::now() + request.settle;
    while answer.is_ok() && !end.has_come() && Instant::now() < settled {
        std::thread::sleep(POLL_INTERVAL);
    }
    if let Err(ActivityError::NoAnswer { .. }) = answer {
        if let Some(profiler) = profiler {
            // `am` gave no answer in time, but the app may be running and its methods may be traced.
            let _ = activity.stop_profiler(profiler, cancel);
        }
        // The reason is known only when the recording has ended: the caller fills it in.
        let ended_by = RecordingEndReason::default();
        let component = activity.component.clone();
        return Err(LaunchError::RecordingEndedFirst { ended_by, component });
    }
    let answer = answer?;
    let method_trace = match profiler {
        Some(profiler) if tracer.is_err() => Some(MethodTraceFile { path: profiler.path.clone(), bytes: 0 }),
        Some(profiler) => {
            activity.stop_profiler(profiler, cancel)?;
            Some(MethodTraceFile { path: profiler.path.clone(), bytes: profiler.wait_until_written(cancel) })
        }
        None => None,
    };
    let samples = sampler.map(|sampler| sampler.and_then(|sampler| sampler.stop(cancel)));
    let (samples, sampler_refused) = match samples {
        None => (None, None),
        Some(Ok(file)) => (Some(file), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    let is_time = |line: &&str| line.contains("Time:") || line.contains("State:");
    let times = answer.lines().map(str::trim).filter(is_time).map(str::to_owned).collect();
    Ok(LaunchReport { times, method_trace, samples, sampler_refused, tracer_refused: tracer.err() })
}

/// Starts the app and waits until the launch has ended. The always-on tracer, where it is wanted, starts in
/// the app's process meanwhile. Returns the answer of `am start`, and whether the tracer runs.
fn start(
    request: &LaunchRequest,
    activity: &Activity,
    end: &RecordingEnd,
) -> (Result<String, ActivityError>, Result<(), ActivityError>) {
    let profiler = request.profiler.as_ref();
    let is_started = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let tracer = profiler.map(|profiler| {
            let start = move || activity.start_always_on(profiler, || is_started.load(Ordering::Acquire));
            // Where the system starts no thread, the tracer starts behind the app.
            Builder::new().spawn_scoped(scope, start).map_err(|_| start)
        });
        let give_up = || end.has_come();
        let mut answer = activity.start(request.is_warm, profiler, give_up);
        let refused = match answer {
            // Nothing has been started yet.
            Err(error @ ActivityError::NotProfileable { .. }) => {
                answer = activity.start(request.is_warm, None, give_up);
                Some(error)
            }
            _ => None,
        };
        is_started.store(true, Ordering::Release);
        let tracer = tracer.map(|tracer| match tracer {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(start) => start(),
        });
        (answer, refused.map_or(tracer.unwrap_or(Ok(())), Err))
    })
}
