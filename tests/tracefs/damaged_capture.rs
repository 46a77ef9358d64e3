//! Damaged copies of a capture that the recorder made from the running kernel are refused or read in part.

use std::fs;

use crate::recording::record;
use crate::tracefs_fixture::machine;
use support::damage::check_damaged_copies;

#[test]
fn a_damaged_recording_is_refused_or_read_in_part() {
    let bytes = {
        let Some(machine) = machine() else { return };
        let dir = support::tempdir();
        let out = record(&machine, dir.path(), &["sched", "-t", "0.5"]).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        fs::read(dir.path().join("x.dat")).unwrap()
    };
    check_damaged_copies("short.dat", &bytes);
}
