//! Method traces inside of other files. Android writes the long-running methods of an app that does not
//! respond (ANR) as a line of base64 into the dump of the app's threads; bug reports hold such dumps, as text
//! or in their zip. Perfetto traces may hold the same in packets.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::contained_trace::ContainedTrace;
use super::input::Input;
use super::perfetto::PerfettoRecording;
use super::{Damage, Recording, base64, identify, is_zip, perfetto};

/// What stands in front of the base64 (AOSP art, `runtime/signal_catcher.cc`).
const LINE: &[u8] = b"LongRunningMethods: ";

/// A line that begins the dump of one process: `----- pid 1234 at 2026-11-22 15:00:00 -----`.
const DUMP: &[u8] = b"----- pid ";

/// Texts that may hold a dump have a line in their first bytes that begins with one of these.
const TEXTS: [&[u8]; 4] = [DUMP, LINE, b"== dumpstate", b"Subject: "];

/// The first bytes of a text that are searched for [`TEXTS`].
const SEARCHED_BYTES: usize = 64 << 10;

/// The first bytes of a dump have the name of its process.
const MAX_DUMP_HEAD: usize = 4 << 10;

/// The method traces in a dump of threads, in a bug report or in a Perfetto trace; none where `input` is
/// another file.
pub fn method_traces(input: &Input) -> Vec<Input> {
    let traces = match identify(input) {
        Ok(format) if format.name == perfetto::NAME => {
            PerfettoRecording::open_within(input, &input.unpack_budget).method_traces()
        }
        Ok(_) => return Vec::new(),
        Err(_) if is_zip(input) => in_zip(input),
        Err(_) => in_text(input),
    };
    traces.into_iter().map(|trace| trace.into_input(&input.name)).collect()
}

/// The inputs that hold method traces, with the traces inside in their places.
pub fn with_contained(inputs: Vec<Input>) -> Vec<Input> {
    let expand = |input: Input| {
        let traces = method_traces(&input);
        if traces.is_empty() { vec![input] } else { traces }
    };
    inputs.into_iter().flat_map(expand).collect()
}

/// Like [`method_traces`], for texts and zips alone: the traces in a Perfetto trace are read with it.
pub fn replace_texts(input: Input) -> Vec<Input> {
    let is_other = identify(&input).is_ok();
    let traces = if is_other { Vec::new() } else { method_traces(&input) };
    if traces.is_empty() { vec![input] } else { traces }
}

/// The traces in the members of a bug report's zip.
fn in_zip(input: &Input) -> Vec<ContainedTrace> {
    let mut traces: Vec<ContainedTrace> = Vec::new();
    let Ok(mut zip) = ZipArchive::new(Cursor::new(&input[..])) else { return traces };
    for index in 0..zip.len() {
        let Ok(mut member) = zip.by_index(index) else { continue };
        let name = String::from_utf8_lossy(member.name_raw()).into_owned();
        let is_text = name.contains("anr") || name.starts_with("bugreport") || name.starts_with("dumpstate");
        let (mut text, mut start) = (Vec::new(), Vec::new());
        if !is_text || member.by_ref().take(SEARCHED_BYTES as u64).read_to_end(&mut start).is_err() {
            continue;
        }
        // What of the member does not fit into the budget is not searched.
        if may_hold_a_dump(&start) && input.unpack_budget.read_to_end(start.chain(member), &mut text).is_ok()
        {
            for trace in in_text(&text) {
                // The report's own text repeats the dump.
                if !traces
                    .iter()
                    .any(|known| (&known.process, &known.bytes) == (&trace.process, &trace.bytes))
                {
                    traces.push(trace);
                }
            }
        }
    }
    traces
}

fn may_hold_a_dump(text: &[u8]) -> bool {
    let start = &text[..text.len().min(SEARCHED_BYTES)];
    !start.contains(&0) && TEXTS.iter().any(|line| lines_with(start, line).next().is_some())
}

/// The offsets of the lines that begin with `what`.
fn lines_with<'a>(text: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(text, what).filter(|at| *at == 0 || text[at - 1] == b'\n')
}

/// The traces in a text.
fn in_text(text: &[u8]) -> Vec<ContainedTrace> {
    if !may_hold_a_dump(text) {
        return Vec::new();
    }
    let mut dumps = lines_with(text, DUMP).peekable();
    let mut dump = None;
    let found = lines_with(text, LINE).map(|at| {
        while let Some(next) = dumps.next_if(|next| *next < at) {
            dump = Some(&text[next + DUMP.len()..]);
        }
        let line = &text[at + LINE.len()..];
        let (bytes, len) = base64::decode(line);
        let damage = (!matches!(line.get(len), Some(b'\n' | b'\r')) || len % 4 != 0).then(|| Damage {
            offset: (at + LINE.len() + len) as u64,
            what: "the line of long-running methods is cut, or holds a character that is not base64's".into(),
        });
        let process = dump.map_or("long-running methods".to_owned(), process);
        ContainedTrace { process, bytes, damage: damage.into_iter().collect() }
    });
    found.filter(|trace| !trace.bytes.is_empty()).collect()
}

/// The process of a dump, which begins with the process id.
fn process(dump: &[u8]) -> String {
    let dump = &dump[..dump.len().min(MAX_DUMP_HEAD)];
    let word = |line: &[u8]| {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        String::from_utf8_lossy(&line[..end]).into_owned()
    };
    let name = memchr::memmem::find(dump, b"\nCmd line: ").map(|at| word(&dump[at + 11..]));
    format!("pid {}{}", word(dump), name.map_or(String::new(), |name| format!(", {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMPS: &str = "Subject: Input dispatching timed out\n\n----- pid 77 at 2026-11-22 15:00:00.000000 -----\n\
        Cmd line: com.example:remote\nBuild: x\n\"main\" prio=5\n  at a.B.c(F.kt)\nLongRunningMethods: AQID\n\
        ----- end 77 -----\n\n----- pid 88 at 2026-11-22 15:00:01 -----\nLongRunningMethods: \n\
        ----- end 88 -----\n----- pid 99 at 2026-11-22 15:00:01 -----\nLongRunningMethods: BAUG!\n";

    fn found(bytes: &[u8]) -> Vec<(String, Vec<u8>, usize)> {
        let input = Input::from_bytes("anr.txt", bytes.to_vec());
        let traces = method_traces(&input);
        traces.into_iter().map(|trace| (trace.name.clone(), trace.to_vec(), trace.damage.len())).collect()
    }

    #[test]
    fn each_process_in_a_dump_has_its_own_trace() {
        let expected = [
            ("anr.txt (pid 77, com.example:remote)".to_owned(), vec![1, 2, 3], 0),
            ("anr.txt (pid 99)".to_owned(), vec![4, 5, 6], 1),
        ];
        assert_eq!(found(DUMPS.as_bytes()), expected);
        let cut = DUMPS.len() - 6;
        assert_eq!(found(&DUMPS.as_bytes()[..cut]).len(), 1, "the last line has no base64 left");
        assert!(found(b"LongRunningMethod: AQID\n").is_empty());
        assert!(found(b"a text: LongRunningMethods: AQID\n").is_empty());
    }

    #[test]
    fn a_dump_that_a_bug_report_holds_twice_is_taken_once() {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        let report = format!("=========\n== dumpstate: 2026-11-22\n{DUMPS}");
        for (name, text) in
            [("FS/data/anr/anr_1", DUMPS), ("bugreport-x.txt", &report), ("version.txt", "2.0")]
        {
            zip.start_file(name, options).unwrap();
            std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
        }
        let zip = zip.finish().unwrap().into_inner();
        let names: Vec<String> = found(&zip).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for cut in (4..zip.len()).step_by(7) {
            let _ = found(&zip[..cut]);
        }
    }
}
