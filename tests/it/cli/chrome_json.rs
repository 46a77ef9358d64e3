//! Chrome's JSON as an input: what tracebridge has written comes back, other writers' files keep what they
//! say, and damage is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::python::{PERFETTO, python_with};
use support::scenario::{Era, Scenario};
use support::{Command, Ran, tracebridge};

fn convert(dir: &Path, from: &[&str], to: &str) -> Ran {
    tracebridge().current_dir(dir).arg("merge").args(from).args(["-o", to]).run()
}

/// How often each row of a kind is in a CSV, by the named columns.
fn rows(csv: &Path, kinds: &[&str], columns: &[&str]) -> BTreeMap<Vec<String>, usize> {
    let text = fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &&str| header.iter().position(|column| column == name).unwrap();
    let places: Vec<usize> = columns.iter().map(at).collect();
    let mut counts = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if kinds.contains(&cells[0]) {
            let row = places.iter().map(|place| cells[*place].to_owned()).collect();
            *counts.entry(row).or_default() += 1;
        }
    }
    counts
}

#[test]
fn our_own_json_comes_back_with_every_slice_call_counter_and_thread() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario { length: 40_000_000, ..Scenario::new(5, Era::Art14) }.make();
    fs::write(path("app.dat"), &made.dat).unwrap();
    fs::write(path("app.trace"), &made.trace).unwrap();
    for (from, to) in [
        (&["app.dat", "app.trace"][..], "app.json"),
        (&["app.dat", "app.trace"], "first.csv"),
        (&["app.json"], "second.csv"),
    ] {
        convert(dir.path(), from, to).exited(0);
    }
    // Calls of methods are slices of a track now; JSON writes a begin up to 2 ns later where its viewers
    // would mix it up with the slice beside it.
    let names = |csv: &str, kinds: &[&str]| rows(&path(csv), kinds, &["name"]);
    let calls = names("first.csv", &["method", "slice"]);
    let slices = names("second.csv", &["slice"]);
    assert!(calls.len() > 3, "{calls:?}");
    for (name, count) in &calls {
        assert_eq!(slices.get(name), Some(count), "{name:?}");
    }
    let counters = |csv: &str| rows(&path(csv), &["counter"], &["ts_ns", "name", "value"]);
    assert_eq!(counters("first.csv"), counters("second.csv"));
    let threads = |csv: &str| rows(&path(csv), &["thread"], &["pid", "tid", "name"]);
    let second = threads("second.csv");
    for thread in threads("first.csv").keys().filter(|thread| !thread[0].is_empty() && !thread[2].is_empty())
    {
        assert!(second.contains_key(thread), "{thread:?} of {second:?}");
    }
}

/// A file with an event of each phase that is read, one a line.
const ALL_PHASES: &str = r#"{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":10,"name":"process_name","args":{"name":"com.example.app"}},
{"ph":"M","pid":10,"tid":11,"name":"thread_name","args":{"name":"1.ui"}},
{"ph":"M","pid":10,"tid":11,"name":"thread_sort_index","args":{"sort_index":-3}},
{"ph":"M","pid":10,"name":"process_sort_index","args":{"sort_index":4}},
{"ph":"B","pid":10,"tid":11,"ts":100,"name":"begin","cat":"a,b","args":{"text":"x","int":-5,"float":1.5,"yes":true,"list":[1,{"in":2}],"none":null}},
{"ph":"E","pid":10,"tid":11,"ts":200,"name":"begin","cat":"a,b","tts":190},
{"ph":"X","pid":10,"tid":12,"ts":250,"dur":50,"name":"whole","tts":240,"tdur":40},
{"ph":"X","pid":10,"tid":12,"ts":250.5,"dur":10.25,"name":"inner"},
{"ph":"I","pid":10,"tid":11,"ts":300,"name":"global","s":"g"},
{"ph":"i","pid":10,"tid":11,"ts":310,"name":"of process","s":"p"},
{"ph":"R","pid":10,"tid":11,"ts":320,"name":"of thread"},
{"ph":"b","pid":10,"tid":11,"ts":400,"name":"load","cat":"c","id2":{"global":"x"}},
{"ph":"n","pid":10,"tid":11,"ts":410,"name":"load","cat":"c","id2":{"global":"x"}},
{"ph":"e","pid":10,"tid":11,"ts":420,"name":"load","cat":"c","id2":{"global":"x"}},
{"ph":"s","pid":10,"tid":12,"ts":260,"name":"flow","id":"0x2a"},
{"ph":"f","pid":10,"tid":11,"ts":320,"name":"flow","id":"0x2a","bp":"e"},
{"ph":"C","pid":10,"ts":500,"name":"mem","id":1,"args":{"java":100.5,"native":"25"}}
]}"#;

#[test]
fn a_perfetto_trace_of_json_has_its_phases_ids_and_typed_arguments() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    fs::write(dir.path().join("all.json"), ALL_PHASES).unwrap();
    convert(dir.path(), &["all.json"], "all.pftrace").exited(0);
    let script = format!(
        r#"
import sys
from {PERFETTO} import Trace
trace = Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
names = {{}}
for packet in trace.packet:
    if packet.HasField('track_descriptor'):
        d = packet.track_descriptor
        if d.HasField('thread'):
            names[d.uuid] = 'thread %d/%d %s sort %d' % (d.thread.pid, d.thread.tid, d.thread.thread_name, d.thread.legacy_sort_index)
        elif d.HasField('process'):
            names[d.uuid] = 'process %d %s sort %d' % (d.process.pid, d.process.process_name, d.process.legacy_sort_index)
        else:
            names[d.uuid] = 'counter %s of %s' % (d.name, names[d.parent_uuid])
        continue
    e, l = packet.track_event, packet.track_event.legacy_event
    args = ' '.join(str(a).replace('\n', ' ') for a in e.debug_annotations)
    kind = {{0: '', 1: 'begin', 2: 'end', 3: 'instant', 4: 'counter'}}[e.type] + (chr(l.phase) if l.phase else '')
    more = ' '.join('%s=%s' % (f.name, v) for f, v in l.ListFields() if f.name not in ('phase', 'global_id'))
    print(packet.timestamp, kind, e.name, '|'.join(e.categories), names[e.track_uuid].split(' sort')[0], e.double_counter_value or '', e.thread_time_absolute_us or '', more, args)
print(sorted(names.values()))
"#
    );
    let out = Command::new(&python).args(["-c", &script]).arg(dir.path().join("all.pftrace")).run().exited(0);
    let printed = out.stdout;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = printed.lines().map(words).collect();
    let ui = "thread 10/11 1.ui";
    for line in [
        format!(
            "100000 begin begin a,b {ui} string_value: \"x\" name: \"text\" int_value: -5 name: \"int\" \
             double_value: 1.5 name: \"float\" bool_value: true name: \"yes\" name: \"list\" array_values {{ \
             int_value: 1 }} array_values {{ dict_entries {{ int_value: 2 name: \"in\" }} }}"
        ),
        format!("200000 end begin a,b {ui} 190"),
        "250000 X whole thread 10/12 240 duration_us=50 thread_duration_us=40".into(),
        "250500 begin inner thread 10/12".into(),
        "260750 end inner thread 10/12".into(),
        format!("300000 I global {ui} instant_event_scope=1"),
        format!("310000 I of process {ui} instant_event_scope=2"),
        format!("320000 instant of thread {ui}"),
        format!("400000 b load c {ui}"),
        format!("410000 n load c {ui}"),
        format!("420000 e load c {ui}"),
        "260000 s flow thread 10/12 unscoped_id=42".into(),
        format!("320000 f flow {ui} unscoped_id=42 bind_to_enclosing=True"),
        "500000 counter counter mem id: 1 java of process 10 com.example.app 100.5".into(),
        "500000 counter counter mem id: 1 native of process 10 com.example.app 25.0".into(),
    ] {
        assert!(lines.contains(&line), "{line}\nis not in\n{}", lines.join("\n"));
    }
    let tracks = lines.last().unwrap();
    assert!(tracks.contains("'process 10 com.example.app sort 4'"), "{tracks}");
    assert!(tracks.contains("'thread 10/11 1.ui sort -3'"), "{tracks}");
}

#[test]
fn fifty_cuts_of_a_file_are_told_by_every_command() {
    let dir = support::tempdir();
    let file = dir.path().join("cut.json");
    let sound = ALL_PHASES.len();
    let mut in_part = 0;
    for number in 0..50 {
        let cut = 20 + number * (sound - 22) / 49;
        fs::write(&file, &ALL_PHASES.as_bytes()[..cut]).unwrap();
        let info = tracebridge().arg("info").arg(&file).run();
        assert_eq!(info.code(), Some(3), "cut at {cut}");
        let out = convert(dir.path(), &["cut.json"], "cut.pftrace");
        // A cut before the end of the first event leaves nothing to write.
        match out.status.code() {
            Some(3) => in_part += 1,
            code => {
                assert_eq!(code, Some(1), "cut at {cut}");
                let error = &out.stderr;
                assert!(
                    error.contains("no event, call, sample or frame") && error.contains("offset"),
                    "{error}"
                );
            }
        }
    }
    assert!(in_part > 30, "{in_part}");
    fs::write(&file, ALL_PHASES).unwrap();
    tracebridge().arg("info").arg(&file).run().exited(0);
}
