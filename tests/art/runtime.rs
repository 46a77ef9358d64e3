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
pub const WRITERS: [Writer; 7] = [
    writer("dual", Kind::File),
    writer("wall", Kind::File),
    writer("threadcpu", Kind::File),
    writer("dual", Kind::Stream),
    writer("wall", Kind::Stream),
    writer("threadcpu", Kind::Stream),
    writer("dual", Kind::Samples),
];

/// The runtime and the compiled program.
pub struct Runtime {
    launcher: PathBuf,
    program: PathBuf,
    _dir: TempDir,
}

/// The runtime; `None`, with a message, where it was not made.
pub fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(Runtime::with_program).as_ref()
}

impl Runtime {
    fn with_program() -> Option<Runtime> {
        let Some(art) = std::env::var_os("TRACEBRIDGE_ART") else {
            skip("art", "TRACEBRIDGE_ART names no runtime: scripts/test --stage art makes one");
            return None;
        };
        let dir = tempdir();
        let program = dir.path().join("calls.jar");
        let source = project_dir().join("tests/art/Calls.java");
        let mut compile = Command::new(project_dir().join("scripts/art"));
        compile.args(["compile", "-o"]).arg(&program).arg(source).run().exited(0);
        Some(Runtime { launcher: Path::new(&art).join("art"), program, _dir: dir })
    }

    /// The words of a command that runs the program, which takes `seed`, and has `writer` write to `trace`.
    pub fn command(&self, writer: Writer, seed: u64, trace: &Path) -> Vec<String> {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let mut words = vec![path(&self.launcher)];
        if writer.kind != Kind::Samples {
            words.extend(["-Xmethod-trace".into(), format!("-Xmethod-trace-file:{}", path(trace))]);
            words.extend([
                "-Xmethod-trace-file-size:60000000".into(),
                format!("-Xprofile:{}clock", writer.clock),
            ]);
        }
        if writer.kind == Kind::Stream {
            words.push("-Xmethod-trace-stream".into());
        }
        words.extend([path(&self.program), "Calls".into(), seed.to_string()]);
        // Samples are few: the program runs for longer.
        let rounds = if writer.kind == Kind::Samples { 400 } else { 40 + seed % 3 * 30 };
        words.extend([(seed % 4).to_string(), rounds.to_string()]);
        if writer.kind == Kind::Samples {
            words.push(path(trace));
        }
        words
    }
}
