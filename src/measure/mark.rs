//! The names of the markers that Android writes about launches and frames.

/// The begin of the name of the asynchronous slice of a launch, followed by the package, up to Android 11.
const LAUNCHING: &[u8] = b"launching: ";
/// The begin of the name of the asynchronous slice of a launch, followed by its number, from Android 12 on;
/// and of the instants about it, where `:` and what happened follow the number.
const LAUNCHING_ACTIVITY: &[u8] = b"launchingActivity#";

/// The slice in which a new process is bound to its app.
pub(super) const BIND_APPLICATION: &str = "bindApplication";
/// The begin of the name of the main thread's part of a frame.
pub(super) const DO_FRAME: &str = "Choreographer#doFrame";

/// A slice of a thread that launches and frames are found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceMark {
    /// The system server was asked to start an activity (Android 10 and 11).
    IntentStarted,
    /// The system server has seen a launch end well (Android 10 and 11).
    LaunchFinished,
    /// Any other slice of the class that writes these two: it tells the release.
    Logger,
    /// A new process is bound to its app.
    BindApplication,
    /// An activity becomes visible: it is new, or was stopped.
    ActivityStart,
    /// An activity gets the foreground.
    ActivityResume,
    /// Another step of a launch on the main thread.
    Stage,
    /// The app says that it is fully drawn.
    ReportFullyDrawn,
    /// The UI thread's part of a frame, and the frame's number where it has one (from Android 12 on).
    DoFrame(Option<i64>),
    /// The RenderThread's part of a frame, and the frame's number.
    DrawFrame(Option<i64>),
}

impl SliceMark {
    /// The mark that a slice of this name is.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<SliceMark> {
        // Most slices are none, and are told by their first letter.
        match name.first()? {
            b'C' => frame_number(name, DO_FRAME.as_bytes()).map(SliceMark::DoFrame),
            b'D' => frame_number(name, b"DrawFrames")
                .or_else(|| frame_number(name, b"DrawFrame"))
                .map(SliceMark::DrawFrame),
            b'M' => match name.strip_prefix(b"MetricsLogger:")? {
                b"launchObserverNotifyIntentStarted" => Some(SliceMark::IntentStarted),
                b"launchObserverNotifyActivityLaunchFinished" => Some(SliceMark::LaunchFinished),
                _ => Some(SliceMark::Logger),
            },
            b'a' => match name {
                b"activityStart" => Some(SliceMark::ActivityStart),
                b"activityResume" => Some(SliceMark::ActivityResume),
                b"activityRestart" => Some(SliceMark::Stage),
                _ => None,
            },
            b'b' => (name == BIND_APPLICATION.as_bytes()).then_some(SliceMark::BindApplication),
            b'i' => (name == b"inflate").then_some(SliceMark::Stage),
            b'r' => name.starts_with(b"reportFullyDrawn").then_some(SliceMark::ReportFullyDrawn),
            b'O' => name.starts_with(b"OpenDexFilesFromOat").then_some(SliceMark::Stage),
            b'R' => (name == b"ResourcesManager#getResources").then_some(SliceMark::Stage),
            b'V' => name.starts_with(b"VerifyClass").then_some(SliceMark::Stage),
            b'd' => name.starts_with(b"dlopen").then_some(SliceMark::Stage),
            _ => None,
        }
    }
}

/// The number of a frame whose slice has a name that begins with `prefix`: its second word. 0 and -1 number
/// no frame. `None` for a slice of another kind.
fn frame_number(name: &[u8], prefix: &[u8]) -> Option<Option<i64>> {
    let rest = name.strip_prefix(prefix)?;
    let Some(rest) = rest.strip_prefix(b" ") else { return rest.is_empty().then_some(None) };
    let word = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
    // "Choreographer#doFrame - resynced to 11 in 0.0s" is no frame of its own.
    let number: i64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    Some((number > 0).then_some(number))
}

/// An asynchronous slice that is a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AsyncMark<'a> {
    /// Up to Android 11: the launch of this package.
    Launching(&'a [u8]),
    /// From Android 12 on: the launch with this number.
    LaunchingActivity(i64),
}

impl AsyncMark<'_> {
    /// The launch that an asynchronous slice of this name is.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<AsyncMark<'_>> {
        if let Some(package) = name.strip_prefix(LAUNCHING) {
            return Some(AsyncMark::Launching(package));
        }
        let number = std::str::from_utf8(name.strip_prefix(LAUNCHING_ACTIVITY)?).ok()?;
        number.parse().ok().map(AsyncMark::LaunchingActivity)
    }
}

/// The news that an instant tells of the launch with the number `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaunchNews<'a> {
    pub number: i64,
    /// The type and the package, where the launch is complete: `-cold`, `-warm`, `-hot` or nothing.
    pub completed: Option<(&'a [u8], &'a [u8])>,
}

impl LaunchNews<'_> {
    /// The news of a launch that an instant of this name tells.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<LaunchNews<'_>> {
        let mut parts = name.strip_prefix(LAUNCHING_ACTIVITY)?.split(|byte| *byte == b':');
        let number = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let event = parts.next()?;
        let package = parts.next();
        // An activity that starts in the process of the one before it ends no launch.
        let launch_type = event.strip_prefix(b"completed").filter(|rest| *rest != b"-same-process");
        Some(LaunchNews { number, completed: launch_type.zip(package) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_frame_is_the_second_word_of_its_name() {
        let of = |name: &str| SliceMark::from_name(name.as_bytes());
        assert_eq!(of("Choreographer#doFrame"), Some(SliceMark::DoFrame(None)));
        assert_eq!(of("Choreographer#doFrame 123"), Some(SliceMark::DoFrame(Some(123))));
        assert_eq!(of("Choreographer#doFrame 123 of a vendor"), Some(SliceMark::DoFrame(Some(123))));
        assert_eq!(of("Choreographer#doFrame -1"), Some(SliceMark::DoFrame(None)));
        assert_eq!(of("Choreographer#doFrame - resynced to 11 in 0.0s"), None);
        assert_eq!(of("DrawFrame"), Some(SliceMark::DrawFrame(None)));
        assert_eq!(of("DrawFrames 7"), Some(SliceMark::DrawFrame(Some(7))));
        assert_eq!(of("DrawFrame 7"), Some(SliceMark::DrawFrame(Some(7))));
        assert_eq!(of("DrawFrames 99999999999999999999"), None);
        assert_eq!(of("Drawer"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn an_instant_says_what_a_launch_came_to() {
        let of = |name: &'static str| LaunchNews::from_name(name.as_bytes());
        let complete = |kind: &'static str| {
            Some(LaunchNews { number: 3, completed: Some((kind.as_bytes(), b"com.example")) })
        };
        assert_eq!(of("launchingActivity#3:completed:com.example"), complete(""));
        assert_eq!(of("launchingActivity#3:completed-hot:com.example"), complete("-hot"));
        let none = Some(LaunchNews { number: 3, completed: None });
        assert_eq!(of("launchingActivity#3:completed-same-process:com.example"), none);
        assert_eq!(of("launchingActivity#3:cancelled"), none);
        assert_eq!(of("launchingActivity#3"), None);
        assert_eq!(AsyncMark::from_name(b"launchingActivity#3"), Some(AsyncMark::LaunchingActivity(3)));
        assert_eq!(AsyncMark::from_name(b"launchingActivity#3:completed"), None);
        assert_eq!(
            AsyncMark::from_name(b"launching: com.example"),
            Some(AsyncMark::Launching(b"com.example"))
        );
    }
}
