//! A video of the screen, which the device's own `screenrecord` makes beside a recording: in the directory of
//! the session, from before the recorder begins until it has ended.

use super::{COMMAND_TIMEOUT, Device, DeviceError, Privilege};

/// The name in a session's directory.
pub(super) const VIDEO_FILE: &str = "capture.mp4";
/// The longest video that `screenrecord` makes on every release, s.
pub const MAX_VIDEO_SECONDS: u64 = 180;

/// The commands that begin a video of so many seconds. They wait until its file has a beginning, or until two
/// seconds are over: an encoder needs a moment.
pub(super) fn before(seconds: u64) -> String {
    format!(
        "screenrecord --time-limit {seconds} \"$PWD/{VIDEO_FILE}\" </dev/null >video.log 2>&1 & v=$!; \
         echo $v >video; n=0; until [ -s {VIDEO_FILE} ] || [ ! -d /proc/$v ] || [ $n = 10 ]; do sleep 0.2; \
         n=$((n+1)); done; "
    )
}

/// The commands that end the video and wait for its file, which `screenrecord` completes on SIGINT. A file
/// that was never begun goes, and what `screenrecord` said about that goes to the log.
pub(super) fn after() -> String {
    format!(
        "! {IS_RUNNING} || kill -INT $v; wait $v; rm -f video; \
         [ -s {VIDEO_FILE} ] || {{ rm -f {VIDEO_FILE}; cat video.log >>log; }}; "
    )
}

/// The commands that end the video of a session that is given up, whose directory is about to be removed.
pub(super) fn abandon() -> String {
    format!(
        "v=; [ ! -e video ] || read v <video; if [ -n \"$v\" ] && {IS_RUNNING}; then kill -INT $v; \
         for i in 1 2 3; do {IS_RUNNING} || break; sleep 1; done; ! {IS_RUNNING} || kill -KILL $v; fi; "
    )
}

/// Whether the process is still the one that makes the video: its number may belong to another one by then.
const IS_RUNNING: &str = "grep -q screenrecord /proc/$v/cmdline 2>/dev/null";

/// Whether a file of the device or of the host is the video of a recording.
pub fn is_video(file: &str) -> bool {
    file.ends_with(".mp4")
}

impl Device {
    /// Whether the device has `screenrecord`.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn has_screenrecord(&self) -> Result<bool, DeviceError> {
        let found = self.run_script("command -v screenrecord", Privilege::Shell, COMMAND_TIMEOUT)?;
        Ok(found.status == 0)
    }
}
