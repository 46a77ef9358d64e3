//! Compiles programs in C with the marker library: for this machine, and for those of Android's ABIs whose
//! library scripts/build-markers has built. QEMU runs what this machine does not.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use support::Command;

use support::{has_program, skip};

/// A machine that programs in C are compiled for.
pub struct CTarget {
    pub abi: &'static str,
    /// The directory with the library and its header.
    library: PathBuf,
    /// The compiler with its options.
    compiler: Vec<String>,
    runner: Option<&'static str>,
}

/// Builds the library for this machine, once. Returns its directory; `None` without a compiler of C.
pub fn c_library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    if !has_program("cc") {
        skip("cc", "no compiler of C");
        return None;
    }
    Some(LIBRARY.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("markers");
        // A compiler of Rust runs: on a machine that compiles other things too it takes minutes.
        let mut build = Command::new(root().join("scripts/build-markers"));
        run(build.arg("--out").arg(&out).limit(Duration::from_secs(900)));
        out.join("host")
    }))
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) {
    let done = command.run();
    assert!(done.status.success(), "{command:?}: {}", done.stderr);
}

impl CTarget {
    /// This machine.
    pub fn host() -> Option<CTarget> {
        let library = c_library()?.to_owned();
        let compiler = vec!["cc".to_owned()];
        Some(CTarget { abi: "host", library, compiler, runner: None })
    }

    /// The ABIs of Android whose library is built and whose programs run here.
    pub fn android() -> Vec<CTarget> {
        let of = |(abi, compiler, runner): (&'static str, &str, Option<&'static str>)| {
            let library = root().join("out/markers").join(abi);
            let script = root().join("android/cc-static").into_os_string().into_string().unwrap();
            let why = if !library.join("libtracebridge_markers.a").is_file() {
                format!("scripts/build-markers --abi {abi} was not run")
            } else if runner.is_some_and(|runner| !has_program(runner)) {
                format!("no program runs {abi} here")
            } else if !has_program(compiler) {
                format!("there is no {compiler}: run scripts/setup")
            } else {
                let compiler = vec![script, abi.to_owned()];
                return Some(CTarget { abi, library, compiler, runner });
            };
            skip(&format!("markers-{abi}"), &why);
            None
        };
        let is_x86 = cfg!(target_arch = "x86_64");
        let is_arm = cfg!(target_arch = "aarch64");
        let abis = [
            ("arm64-v8a", "aarch64-linux-gnu-gcc", (!is_arm).then_some("qemu-aarch64-static")),
            ("armeabi-v7a", "arm-linux-gnueabihf-gcc", Some("qemu-arm-static")),
            ("x86", "gcc", (!is_x86).then_some("qemu-i386-static")),
            ("x86_64", "gcc", (!is_x86).then_some("qemu-x86_64-static")),
        ];
        abis.into_iter().filter_map(of).collect()
    }

    /// Compiles a file, and links it with the library. Returns the program, which is removed with the value:
    /// a file of its own, since another test may be running the same program.
    pub fn compile(&self, source: &Path) -> tempfile::TempPath {
        let program = tempfile::NamedTempFile::new_in(support::run_dir()).unwrap().into_temp_path();
        let mut cc = Command::new(&self.compiler[0]);
        cc.args(&self.compiler[1..]).args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_DEFAULT_SOURCE",
            "-o",
        ]);
        cc.arg(&program).arg("-I").arg(&self.library).arg(source);
        run(cc.arg(self.library.join("libtracebridge_markers.a")));
        program
    }

    /// Runs a program of this machine.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.runner.map_or(program, Path::new));
        command.args(self.runner.map(|_| program));
        command
    }
}
