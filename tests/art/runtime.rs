//! The runtime, its options for each writer of method traces, and the program that is traced.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::{Command, TempDir, project_dir, skip, tempdir};

/// A writer of method traces that ART 11 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// `dual`, `wall` or `threadcpu`.
    pub clock: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every call, in a buffer that becomes a file at the end.
    File,
    /// Every call, in a file that grows.
    Stream,
    /// The stacks of all threads, each ms.
    Samples,
}

const fn writer(clock: &'static str, kind: Kind) -> Writer {
    Writer { clock, kind }
}

/// All writers.
pub const WRITERS: [Writer; 9] = [
    writer("dual", Kind::File),
    writer("wall", Kind::File),
    writer("threadcpu", Kind::File),
    writer("dual", Kind::Stream),
    writer("wall", Kind::Stream),
    writer("threadcpu", Kind::Stream),
    writer("dual", Kind::Samples),
    writer("wall", Kind::Samples),
    writer("threadcpu", Kind::Samples),
];

/// The runtime and the compiled programs.
pub struct Runtime {
    launcher: PathBuf,
    programs: PathBuf,
    _dir: TempDir,
}

/// The runtime; `None`, with a message, where it was not made.
pub fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(Runtime::with_programs).as_ref()
}

impl Runtime {
    fn with_programs() -> Option<Runtime> {
        let Some(art) = std::env::var_os("TRACEBRIDGE_ART") else {
            skip("art", "TRACEBRIDGE_ART names no runtime: scripts/test --stage art makes one");
            return None;
        };
        let dir = tempdir();
        let programs = dir.path().join("programs.jar");
        let sources = ["tests/art/Calls.java", "tools/art/causes/Causes.java"];
        let mut compile = Command::new(project_dir().join("scripts/art"));
        compile.args(["compile", "-o"]).arg(&programs).args(sources.map(|source| project_dir().join(source)));
        compile.run().exited(0);
        Some(Runtime { launcher: Path::new(&art).join("art"), programs, _dir: dir })
    }

    /// The words of a command that runs the program with this main class.
    pub fn program(&self, class: &str, arguments: &[&str]) -> Vec<String> {
        let words = [&[path(&self.launcher), "-Xmx256m", path(&self.programs), class], arguments].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// The words of a command that runs the program `Calls`, which takes `seed`, and has `writer` write to
    /// `trace`.
    pub fn command(&self, writer: Writer, seed: u64, trace: &Path) -> Vec<String> {
        let trace = path(trace);
        let mut words = vec![path(&self.launcher).to_owned(), format!("-Xprofile:{}clock", writer.clock)];
        if writer.kind != Kind::Samples {
            words.extend(["-Xmethod-trace".into(), format!("-Xmethod-trace-file:{trace}")]);
            words.push("-Xmethod-trace-file-size:60000000".into());
        }
        if writer.kind == Kind::Stream {
            words.push("-Xmethod-trace-stream".into());
        }
        words.extend([path(&self.programs).to_owned(), "Calls".into(), seed.to_string()]);
        // Samples are few: the program runs for longer.
        let rounds = if writer.kind == Kind::Samples { 400 } else { 40 + seed % 3 * 30 };
        words.extend([(seed % 4).to_string(), rounds.to_string()]);
        if writer.kind == Kind::Samples {
            words.push(trace.to_owned());
        }
        words
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
