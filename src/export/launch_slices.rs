//! The slices with which Android marks the launch of an app.

/// With this slice Android binds a new process to its app: the thread that has it is the app's main thread.
pub(super) const BIND: &[u8] = b"bindApplication";
/// The slice of a frame. With the first one the launch ends.
pub(super) const FRAME: &[u8] = b"Choreographer#doFrame";
/// With this prefix, followed by the package, the system server calls the asynchronous slice from the request
/// to start an app to its first frame on the screen (AOSP `ActivityMetricsLogger`).
pub(super) const LAUNCHING: &[u8] = b"launching: ";
