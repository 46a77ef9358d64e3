//! Recording on the device: the seam to tracefs, the settings it saves and puts back, the page movers.

mod capture;
mod clocks;
pub mod drain;
mod error;
pub mod events;
pub mod flight;
mod metadata;
mod output;
pub mod recorder;
mod session;
mod settings;
pub mod setup;
mod signals;
pub mod stats;
mod summary;
mod tracefs;

pub use clocks::snapshot;
pub use error::Error;
pub use metadata::page_layout;
pub use output::Output;
pub use session::Target;
pub use settings::{
    CaptureFound, Leftover, RecordFound, RecordState, Restored, Settings, records, restore_all, state_dir,
};
pub use signals::Signals;
pub use summary::{CpuSummary, Summary};
pub use tracefs::{EventName, Tracefs, USUAL_PLACES};
