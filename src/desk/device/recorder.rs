//! The recorders of a device: tracebridge's own, and those that the device has. The latter may record while
//! tracebridge's `launch` starts an app.

use std::fmt::Write;

use super::facts::BINARY_PATH;
use super::shell_words::command_line;

/// The directory in which Perfetto may write, and the user `shell` may read.
const PERFETTO_DIR: &str = "/data/misc/perfetto-traces";

/// Has a session end its recorder with SIGTERM. A shell starts its jobs with SIGINT ignored, and not every
/// program minds to change that.
const TERM: &str = "echo TERM >signal; ";

/// The recorder of a session.
#[derive(Debug, Clone, Copy)]
pub enum Recorder<'a> {
    /// The arguments of the binary that is pushed (`record …`, `launch …`). The first is its command.
    Own(&'a [String]),
    /// The device's own `perfetto`, which is given this configuration: an encoded `TraceConfig`.
    Perfetto(&'a [u8]),
    /// The device's own `atrace`, for releases before Perfetto: categories, `-a` and `-b` as `atrace` takes
    /// them, and the time in seconds.
    Atrace(&'a [String], Option<u64>),
}

/// The work of a session.
#[derive(Debug, Clone, Copy)]
pub struct RecorderJob<'a> {
    /// The recorder.
    pub recorder: Recorder<'a>,
    /// Arguments of the pushed binary's `launch --no-record`, which runs beside a recorder of the device. The
    /// recorder is stopped when it exits.
    pub launch_args: Option<&'a [String]>,
    /// The package of the app whose own traces are collected.
    pub app: Option<&'a str>,
    /// The seconds after which a video of the screen ends at the latest, where one is to be made.
    pub video_seconds: Option<u64>,
}

impl<'a> RecorderJob<'a> {
    /// A recorder alone.
    pub fn new(recorder: Recorder<'a>) -> RecorderJob<'a> {
        RecorderJob { recorder, launch_args: None, app: None, video_seconds: None }
    }

    /// The commands that record in the directory of the session, up to the end. Then `$s` is the exit status.
    /// The process that the user's signal is for has its id in `pid`. `id` is the session's name.
    pub(super) fn script(&self, dir: &str, id: &str) -> String {
        let start = self.recorder.start(dir, id, self.launch_args.is_some());
        let finish = self.recorder.finish(id);
        let Some(args) = self.launch_args else {
            return format!("{start} & p=$!; echo $p >pid; wait $p; s=$?; r=$s; {finish}");
        };
        // A recorder needs a moment before it records. One that has failed is not waited for.
        let begun = self.recorder.has_begun();
        format!(
            "{start} & r=$!; n=0; until {begun} || [ ! -d /proc/$r ] || [ $n = 50 ]; do sleep 0.2; n=$((n+1)); done; \
             rm -f signal; {} & p=$!; echo $p >pid; wait $p; s=$?; kill -TERM $r; wait $r; r=$?; [ $s != 0 ] || s=$r; \
             {finish}",
            binary_command(args, dir)
        )
    }
}

/// The command line of the pushed binary. Its first argument is the command's name.
fn binary_command(args: &[String], dir: &str) -> String {
    format!(
        "{BINARY_PATH} {} -o {dir}/capture.dat --json {} </dev/null >summary.json 2>log",
        command_line(&args[..args.len().min(1)]),
        command_line(args.get(1..).unwrap_or_default())
    )
}

impl Recorder<'_> {
    /// The commands before the recorder, and the recorder itself, which runs in the directory of the session.
    fn start(&self, dir: &str, id: &str, is_beside_launch: bool) -> String {
        match self {
            Recorder::Own(args) => binary_command(args, dir),
            // From a pipe: Perfetto may not open files of the shell on releases before 12.
            Recorder::Perfetto(config) => format!(
                "{TERM}printf '{}' >config; cat config | perfetto -c - -o {PERFETTO_DIR}/{id} >recorder.log 2>&1",
                octal(config)
            ),
            Recorder::Atrace(args, Some(seconds)) if !is_beside_launch => format!(
                "{TERM}atrace -t {seconds} {} </dev/null >capture.txt 2>recorder.log",
                command_line(args)
            ),
            // Of a signal atrace makes an end without a trace. The clearing of its buffer that comes with
            // --async_dump leaves nothing for --async_stop, which on Android 5 clears before it prints.
            Recorder::Atrace(args, _) => format!(
                "{TERM}( trap e=1 TERM; atrace --async_start {} >/dev/null && : >begun && \
                 while [ -z \"$e\" ]; do sleep 0.2; done && atrace --async_dump >capture.txt; s=$?; \
                 atrace --async_stop >/dev/null; exit $s ) </dev/null 2>recorder.log",
                command_line(args)
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

    /// The commands behind the recorder, whose exit status is in `$r`. Its own messages go to the log only if
    /// it has failed.
    fn finish(&self, id: &str) -> String {
        const LOG_FAILURE: &str = "[ $r = 0 ] || cat recorder.log >>log; ";
        match self {
            Recorder::Own(_) => String::new(),
            Recorder::Perfetto(_) => format!(
                "{LOG_FAILURE}f={PERFETTO_DIR}/{id}; [ ! -e $f ] || cat $f >capture.pftrace; rm -f $f; \
                 [ -s capture.pftrace ] || rm -f capture.pftrace; "
            ),
            Recorder::Atrace(..) => format!("{LOG_FAILURE}[ -s capture.txt ] || rm -f capture.txt; "),
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
        let args = ["record", "-t", "1", "a b"].map(str::to_owned);
        let own = Recorder::Own(&args).start("/d", "id", false);
        assert!(
            own.ends_with("record -o /d/capture.dat --json -t 1 'a b' </dev/null >summary.json 2>log"),
            "{own}"
        );
        let args = ["-b", "4096", "sched"].map(str::to_owned);
        let atrace = Recorder::Atrace(&args, Some(5)).start("/d", "id", false);
        assert_eq!(
            atrace,
            "echo TERM >signal; atrace -t 5 -b 4096 sched </dev/null >capture.txt 2>recorder.log"
        );
        let atrace = Recorder::Atrace(&args, Some(5)).start("/d", "id", true);
        assert!(atrace.contains("atrace --async_start -b 4096 sched >/dev/null"), "{atrace}");
    }
}
