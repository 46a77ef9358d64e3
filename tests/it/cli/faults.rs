//! Faults at random moments of commands on files: signals, errors of the disk, limits, inputs that change.

use support::inject_faults;

/// The faults of one run, some tens of seconds; docs/faults.md says how to inject more.
const COUNT: u32 = 400;

#[test]
fn commands_on_files_leave_whole_outputs_or_none_after_faults_at_random_moments() {
    inject_faults("files", COUNT);
}
