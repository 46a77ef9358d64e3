//! What this device or host permits: where its tracefs is, what of it this user may use, why not the rest, and what
//! would change that. Nothing is written anywhere.

mod access;
mod categories;
mod paths;
mod report;
mod system;

pub use access::{Access, Obstacle};
pub use categories::CategoryReport;
pub use paths::{PathReport, Purpose};
pub use report::{Report, examine};
pub use system::{Identity, Machine, Who};
