//! The places of tracebridge's files on a device. Its user `shell` and root alone may write there.

/// The binary.
pub const REMOTE_PATH: &str = "/data/local/tmp/tracebridge";

/// The directory of all recordings that go on without a connection.
pub const SESSIONS: &str = "/data/local/tmp/tracebridge.d";
