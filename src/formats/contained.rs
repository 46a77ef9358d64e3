//! Method traces inside of other files. Android writes the long-running methods of an app that does not
//! respond (ANR) as a line of base64 into the dump of the app's threads; bug reports hold such dumps, as text
//! or in their zip. Perfetto traces may hold the same in packets.

use super::input::Input;
use super::{Damage, base64};

/// The text in front of the base64 (AOSP art, `runtime/signal_catcher.cc`).
const LINE: &[u8] = b"LongRunningMethods: ";

/// A line that begins the dump of one process: `----- pid 1234 at 2026-11-22 15:00:00 -----`.
const DUMP: &[u8] = b"----- pid ";

/// Texts that may hold a dump have a line in their first bytes that begins with one of these.
const TEXTS: [&[u8]; 4] = [DUMP, LINE, b"== dumpstate", b"Subject: "];

/// The first bytes of a text that are searched for [`TEXTS`].
const SEARCHED_BYTES: usize = 64 << 10;

/// The first bytes of a dump have the name of its process.
const MAX_DUMP_HEAD: usize = 4 << 10;

/// A method trace inside of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainedTrace {
    /// The process that it is of, and the time of the dump, for people: `pid 1234, com.example`.
    pub process: String,
    /// The bytes of a method trace.
    pub bytes: Vec<u8>,
    /// The damage of the text that held it; offsets count from its start.
    pub damage: Vec<Damage>,
}

impl ContainedTrace {
    /// Makes an input of the trace. Its name is made of the name of the file that holds it and of the
    /// process.
    pub fn into_input(self, file: &str) -> Input {
        let mut input = Input::from_bytes(&format!("{file} ({})", self.process), self.bytes);
        input.damage = self.damage;
        input
    }
}

/// The method traces in a text with dumps of threads.
pub(super) fn inputs_in(input: &Input) -> Vec<Input> {
    in_text(input).into_iter().map(|trace| trace.into_input(&input.name)).collect()
}

/// Whether a file that begins with these bytes may be a text with dumps of threads.
pub(super) fn may_hold_a_dump(text: &[u8]) -> bool {
    let start = &text[..text.len().min(SEARCHED_BYTES)];
    !start.contains(&0) && TEXTS.iter().any(|line| lines_with(start, line).next().is_some())
}

/// The offsets of the lines that begin with `what`.
fn lines_with<'a>(text: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(text, what).filter(|at| *at == 0 || text[at - 1] == b'\n')
}

/// The traces in a text.
pub(super) fn in_text(text: &[u8]) -> Vec<ContainedTrace> {
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

/// The process of a dump, which begins with the process id: its id, its name and the time of the dump.
fn process(dump: &[u8]) -> String {
    let dump = &dump[..dump.len().min(MAX_DUMP_HEAD)];
    let word = |line: &[u8]| {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        String::from_utf8_lossy(&line[..end]).into_owned()
    };
    let name = memchr::memmem::find(dump, b"\nCmd line: ").map(|at| word(&dump[at + 11..]));
    let line = &dump[..memchr::memchr(b'\n', dump).unwrap_or(dump.len())];
    let time = memchr::memmem::find(line, b" at ").map(|at| &line[at + 4..]);
    // Down to the second: `2026-11-22 15:00:00`.
    let time = time.and_then(|time| time.get(..19)).map(|time| String::from_utf8_lossy(time).into_owned());
    let more: String = name.into_iter().chain(time).map(|more| format!(", {more}")).collect();
    format!("pid {}{more}", word(dump))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const DUMPS: &str = "Subject: Input dispatching timed out\n\n----- pid 77 at 2026-11-22 15:00:00.000000 -----\n\
        Cmd line: com.example:remote\nBuild: x\n\"main\" prio=5\n  at a.B.c(F.kt)\nLongRunningMethods: AQID\n\
        ----- end 77 -----\n\n----- pid 88 at 2026-11-22 15:00:01 -----\nLongRunningMethods: \n\
        ----- end 88 -----\n----- pid 99 at 2026-11-22 15:00:01 -----\nLongRunningMethods: BAUG!\n";

    fn found(bytes: &[u8]) -> Vec<(String, Vec<u8>, usize)> {
        let input = Input::from_bytes("anr.txt", bytes.to_vec());
        let traces = inputs_in(&input);
        traces.into_iter().map(|trace| (trace.name.clone(), trace.to_vec(), trace.damage.len())).collect()
    }

    #[test]
    fn each_process_in_a_dump_has_its_own_trace() {
        let expected = [
            ("anr.txt (pid 77, com.example:remote, 2026-11-22 15:00:00)".to_owned(), vec![1, 2, 3], 0),
            ("anr.txt (pid 99, 2026-11-22 15:00:01)".to_owned(), vec![4, 5, 6], 1),
        ];
        assert_eq!(found(DUMPS.as_bytes()), expected);
        let cut = DUMPS.len() - 6;
        assert_eq!(found(&DUMPS.as_bytes()[..cut]).len(), 1, "the last line has no base64 left");
        assert!(found(b"LongRunningMethod: AQID\n").is_empty());
        assert!(found(b"a text: LongRunningMethods: AQID\n").is_empty());
    }
}
