//! Examines what this device or host permits: where its tracefs is, which files this user may use for a
//! recording, what refuses access to the other files, and what would change that. Examining changes nothing.

mod categories;
mod paths;
mod report;

pub(crate) use categories::CategoryReport;
pub(crate) use paths::{FilePurpose, PathReport};
pub(crate) use report::{DoctorReport, Scope, examine};
