//! A recording that is followed while it runs.
//!
//! A [`Live`] takes the bytes of the recorder's stream as they come. It decodes them in the order of time
//! into the tracks of the report page, and hands out in batches what has become complete
//! (docs/live-format.md). The kernel's pages of the last seconds stay in memory: a [`Kept`] of them is a
//! recording of its own.

mod figures;
mod followed;
mod kept;
mod launches;
mod pages;
mod server;
mod session;
mod stream;
mod trigger;
mod watch;
mod window;

pub use self::kept::{Kept, KeptError, WrittenFile};
pub use self::server::{LiveCommand, LiveHost, LiveServer, SavedFormat};
pub use self::session::{Live, LiveError, LiveMessage, LiveOptions};
pub use self::trigger::{Occurrence, Trigger, TriggerError};
