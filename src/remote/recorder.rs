//! What records on a device: tracebridge's own recorder, or a recorder that the device has. The latter may
//! record while tracebridge's `launch` starts an app.

use std::fmt::Write;

use super::paths::REMOTE_PATH;
use super::words::command_line;

/// Where the user `shell` may have Perfetto write, and read what it has written.
const PERFETTO_DIR: &str = "/data/misc/perfetto-traces";

/// Has a session end its recorder with SIGTERM. A shell starts its jobs with SIGINT ignored, and not every
/// program minds to change that.
const TERM: &str = "echo TERM >signal; ";

/// The recorder of a session.
#[derive(Debug, Clone, Copy)]
pub enum Recorder<'a> {
    /// A command of the binary that is pushed (`record …`, `launch …`). The first word is the command.
    Own(&'a [String]),
    /// The device's own `perfetto`, which is given this configuration: an encoded `TraceConfig`.
    Perfetto(&'a [u8]),
    /// The device's own `atrace`, for releases before Perfetto: categories, `-a` and `-b` as `atrace` takes
    /// them, and the time in seconds.
    Atrace(&'a [String], Option<u64>),
}

/// What a session does.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// What records.
    pub recorder: Recorder<'a>,
    /// What the pushed binary does while another recorder is at work, which ends with it: `launch …`.
    pub meanwhile: Option<&'a [String]>,
    /// The package of the app whose own traces are collected (see [`super::app_traces`]).
    pub app: Option<&'a str>,
}

impl<'a> Job<'a> {
    /// A recorder alone.
    pub fn of(recorder: Recorder<'a>) -> Job<'a> {
        Job { recorder, meanwhile: None, app: None }
    }

    /// The commands that record in the directory of the session, up to the end. Then `$s` is the exit status.
    /// The process that the user's signal is for has its id in `pid`. `id` is the session's name.
    pub(super) fn script(&self, dir: &str, id: &str) -> String {
        let start = self.recorder.start(dir, id, self.meanwhile.is_some());
        let finish = self.recorder.finish(id);
        let Some(words) = self.meanwhile else {
            return format!("{start} & p=$!; echo $p >pid; wait $p; s=$?; r=$s; {finish}");
        };
        // A recorder needs a moment before it records. One that has failed is not waited for.
        let begun = self.recorder.has_begun();
        format!(
            "{start} & r=$!; n=0; until {begun} || [ ! -d /proc/$r ] || [ $n = 50 ]; do sleep 0.2; n=$((n+1)); done; \
             rm -f signal; {} & p=$!; echo $p >pid; wait $p; s=$?; kill -TERM $r; wait $r; r=$?; [ $s != 0 ] || s=$r; \
             {finish}",
            own(words, dir)
        )
    }
}

/// The command of the pushed binary. Its first word is the command's name.
fn own(words: &[String], dir: &str) -> String {
    format!(
        "{REMOTE_PATH} {} -o {dir}/capture.dat --json {} </dev/null >summary.json 2>log",
        command_line(&words[..words.len().min(1)]),
        command_line(words.get(1..).unwrap_or_default())
    )
}

impl Recorder<'_> {
    /// The commands before the recorder, and the recorder itself, which runs in the directory of the session.
    fn start(&self, dir: &str, id: &str, is_meanwhile: bool) -> String {
        match self {
            Recorder::Own(words) => own(words, dir),
            // From a pipe: Perfetto may not open files of the shell on releases before 12.
            Recorder::Perfetto(config) => format!(
                "{TERM}printf '{}' >config; cat config | perfetto -c - -o {PERFETTO_DIR}/{id} >recorder.log 2>&1",
                octal(config)
            ),
            Recorder::Atrace(words, Some(seconds)) if !is_meanwhile => format!(
                "{TERM}atrace -t {seconds} {} </dev/null >capture.txt 2>recorder.log",
                command_line(words)
            ),
            // Of a signal atrace makes an end without a trace. The clearing of its buffer that comes with
            // --async_dump leaves nothing for --async_stop, which on Android 5 clears before it prints.
            Recorder::Atrace(words, _) => format!(
                "{TERM}( trap e=1 TERM; atrace --async_start {} >/dev/null && : >begun && \
                 while [ -z \"$e\" ]; do sleep 0.2; done && atrace --async_dump >capture.txt; s=$?; \
                 atrace --async_stop >/dev/null; exit $s ) </dev/null 2>recorder.log",
                command_line(words)
            ),
        }
    }

    /// A condition that is true when the recorder records.
    fn has_begun(&self) -> &'static str {
        match self {
            Recorder::Own(_) => ":",
            // Its data sources are started when its connection stands.
            Recorder::Perfetto(_) => "{ grep -q 'starting tracing' recorder.log 2>/dev/null && sleep 1; }",
            Recorder::Atrace(..) => "[ -e begun ]",
        }
    }

    /// The commands behind the recorder, whose exit status is in `$r`. What it has said about a success is
    /// nothing that a user of tracebridge needs.
    fn finish(&self, id: &str) -> String {
        const SAY: &str = "[ $r = 0 ] || cat recorder.log >>log; ";
        match self {
            Recorder::Own(_) => String::new(),
            Recorder::Perfetto(_) => format!(
                "{SAY}f={PERFETTO_DIR}/{id}; [ ! -e $f ] || cat $f >capture.pftrace; rm -f $f; \
                 [ -s capture.pftrace ] || rm -f capture.pftrace; "
            ),
            Recorder::Atrace(..) => format!("{SAY}[ -s capture.txt ] || rm -f capture.txt; "),
        }
    }
}

/// Bytes as a format of `printf`, which every shell has.
fn octal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:03o}");
        text
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gives_perfetto_every_byte_of_its_configuration() {
        let bytes: Vec<u8> = (0..=255).chain(*b"%s%d\\n").collect();
        let printed =
            std::process::Command::new("sh").args(["-c", &format!("printf '{}'", octal(&bytes))]).output();
        assert_eq!(printed.unwrap().stdout, bytes);
    }

    #[test]
    fn each_recorder_has_its_own_command() {
        let words = ["record", "-t", "1", "a b"].map(str::to_owned);
        let own = Recorder::Own(&words).start("/d", "id", false);
        assert!(
            own.ends_with("record -o /d/capture.dat --json -t 1 'a b' </dev/null >summary.json 2>log"),
            "{own}"
        );
        let words = ["-b", "4096", "sched"].map(str::to_owned);
        let atrace = Recorder::Atrace(&words, Some(5)).start("/d", "id", false);
        assert_eq!(
            atrace,
            "echo TERM >signal; atrace -t 5 -b 4096 sched </dev/null >capture.txt 2>recorder.log"
        );
        let atrace = Recorder::Atrace(&words, Some(5)).start("/d", "id", true);
        assert!(atrace.contains("atrace --async_start -b 4096 sched >/dev/null"), "{atrace}");
    }
}
