//! The adb server's protocol: finding and starting the server, its list of devices, commands in a device's
//! shell, and files to and from it. A module of our own over the standard library's TCP, for Linux, macOS and
//! Windows: the crates for it either lose the exit status and standard error, or bring an asynchronous
//! runtime, and none has a deadline on both reads and writes.
//!
//! Every read and write ends after a deadline, lengths from the other side are never believed, and a server
//! that runs is never ended.

mod attached;
mod connection;
mod error;
mod pace;
mod server;
mod shell;
mod sync;
mod transport;

pub use attached::AttachedDevice;
pub use error::AdbError;
pub use pace::Pace;
pub use server::Server;
pub use shell::{RawStream, Shell, ShellEvent, ShellOutput, shown};
pub use sync::Sync;
pub use transport::Transport;
