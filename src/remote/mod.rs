//! A device at the other end of adb: what it is, how root is had on it, the tracebridge binary on it,
//! recordings that go on there without a connection, and files that are pulled and verified.

mod app_rights;
mod app_traces;
mod binary;
mod device;
mod device_binary;
mod embedded;
mod error;
mod facts;
mod paths;
mod privilege;
mod pull;
mod recorder;
mod session;
mod stream;
mod words;

pub use app_rights::AppRights;
pub use device::{COMMAND_TIME, Choice, Device, choose};
pub use facts::device_text;
pub use paths::REMOTE_PATH;
pub use privilege::Privilege;
pub use pull::Verified;
pub use recorder::{Job, Recorder};
pub use session::{Ended, Session, SessionState, abandon_all};
pub use words::{command_line, quoted};
