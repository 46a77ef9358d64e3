//! A recording that is followed while it runs.
//!
//! A [`Live`] takes the bytes of the recorder's stream as they come. It decodes them in the order of time into
//! the tracks of the report page, and hands out in batches what has become complete (docs/live-format.md). The
//! kernel's pages of the last seconds stay in memory: a [`Kept`] of them is a recording of its own.

mod kept;
mod session;
mod trigger;

pub use self::kept::{Kept, KeptError};
pub use self::session::{Live, LiveError, LiveMessage, LiveOptions};
pub use self::trigger::{Occurrence, Trigger, TriggerError};
