//! The summaries that recording commands print with `--json` have the form of the published schemas.

use crate::tracefs_fixture::{Knobs, machine};
use crate::wrap::command;
use support::schemas::Documents;

#[test]
fn summaries_of_recordings_have_the_form_of_their_schemas() {
    let Some(machine) = machine() else { return };
    let Some(mut documents) = Documents::new() else { return };
    let before = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let mut check = |name: &str, line: &str| {
        let mut command = command(&machine, dir.path(), name);
        command.current_dir(dir.path()).arg("--json").args(line.split(' '));
        documents.add("record", &mut command);
    };
    check("record", "-t 100ms -o stream.dat sched");
    check("record", "-t 100ms --mode ring -b 64 -o ring.dat sched freq");
    let name = machine.instance_name("schemas");
    check("record", &format!("-t 100ms --compress --instance {name} -o compressed.dat sched"));
    let mut start = command(&machine, dir.path(), "start");
    start.args(["-b", "64", "sched"]).run().exited(0);
    check("dump", "-o dump.dat");
    check("stop", "-o stop.dat");
    assert_eq!(documents.check(), 5);
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}
