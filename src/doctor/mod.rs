//! What this device or host permits: where its tracefs is, which of its files this user may use, what refuses
//! the others, and what would change that. Examining changes nothing.

mod access;
mod categories;
mod paths;
mod report;
mod system;

pub(crate) use categories::CategoryReport;
pub(crate) use paths::{FilePurpose, PathReport};
pub(crate) use report::{DoctorReport, examine};
