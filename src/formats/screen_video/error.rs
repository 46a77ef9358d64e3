//! The reasons why a video of the screen cannot be read.

/// The reason why an MP4 file is not read.
#[derive(Debug, thiserror::Error)]
pub enum VideoError {
    /// The file has a video, but no times of its frames.
    #[error(
        "this MP4 file has no table of the times of its frames, without which a video has no place on the \
         timeline: {AGAIN}"
    )]
    NoTable,
    /// The file ends before its table.
    #[error(
        "the file is cut: its box {kind} at byte {offset} has {size} bytes, and the file ends at byte {end}; \
         the table of the times of its frames is missing: copy it again, or {AGAIN}"
    )]
    Cut {
        /// The four characters of the box's type.
        kind: String,
        /// The byte where the box begins.
        offset: usize,
        /// The size that the box claims, bytes.
        size: u64,
        /// The size of the file, bytes.
        end: usize,
    },
    /// The file has no index, which `screenrecord` writes at its end.
    #[error(
        "the file of {end} bytes has neither an index (the box moov) nor a table of the times of its frames: \
         screenrecord was killed, or the file is cut: {AGAIN}"
    )]
    NoIndex {
        /// The size of the file, bytes.
        end: usize,
    },
    /// The table is of a version that is not known.
    #[error("the table of the times of the frames at byte {offset} is of the unknown version {version}")]
    UnknownVersion {
        /// The byte where the table begins.
        offset: usize,
        /// The version that it names.
        version: u32,
    },
    /// The table lists no frame of which a time is left.
    #[error("the table of the times of the frames at byte {offset} lists none: {AGAIN}")]
    NoFrames {
        /// The byte where the table begins.
        offset: usize,
    },
}

/// The way to a video with a table.
const AGAIN: &str = "record with `tracebridge adb record --video`, or with the device's screenrecord, ended by \
                     Ctrl-C (SIGINT), and take the file as it is: programs that convert or cut a video drop the \
                     table";
