//! `version`: which build of the program this is, and what is inside it.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::cli::Exit;
use crate::console::say;
use crate::desk::{self, EmbeddedBinary};

/// Say which build this is: version, commit, target and, with --verify, what is inside and its SHA-256 sums
#[derive(Debug, Args)]
#[command(after_help = "\
The commit is `unknown` in a build that nobody has told it: `cargo build` in a work tree. A `+` behind it means that files
had been changed since. docs/supply-chain.md says how the sums are compared with those of a release.

Exit status: 0; 1 where a device binary inside the program is damaged.

  tracebridge version --verify
  tracebridge version --verify --json")]
pub struct VersionArgs {
    /// Read the program's own file and unpack the device binaries in it, and print the SHA-256 sum of each
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The build, and with `--verify` what is inside.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct BuildFacts {
    version: &'static str,
    /// The commit in hexadecimal digits, with `+` behind it where files had been changed; null if nobody
    /// told it.
    commit: Option<&'static str>,
    /// The target as the compiler names it.
    target: &'static str,
    /// Parts that not every build has.
    features: Vec<&'static str>,
    #[serde(flatten)]
    verified: Option<Verified>,
}

/// The files that `--verify` has read.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Verified {
    program: ProgramFile,
    device_binaries: Vec<EmbeddedBinary>,
}

/// The program's own file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ProgramFile {
    path: PathBuf,
    bytes: u64,
    sha256: String,
}

/// Runs `version`.
pub fn run(args: &VersionArgs) -> anyhow::Result<Exit> {
    let facts = BuildFacts {
        version: env!("CARGO_PKG_VERSION"),
        commit: Some(env!("BUILD_COMMIT")).filter(|commit| !commit.is_empty()),
        target: env!("BUILD_TARGET"),
        features: features(),
        verified: if args.verify { Some(verify()?) } else { None },
    };
    if args.json {
        say(format_args!("{}\n", serde_json::to_string(&facts)?));
    } else {
        say(format_args!("{}", facts.text()));
    }
    Ok(Exit::Complete)
}

/// The parts that not every build has.
fn features() -> Vec<&'static str> {
    let all = [
        ("records-this-machine", cfg!(any(target_os = "linux", target_os = "android"))),
        ("device-binaries-inside", desk::has_embedded_binaries()),
        ("debug-assertions", cfg!(debug_assertions)),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

fn verify() -> anyhow::Result<Verified> {
    let path = env::current_exe().context("the program's own path")?;
    let named = || path.display().to_string();
    let bytes = fs::metadata(&path).with_context(named)?.len();
    let sha256 = desk::file_sha256(&path).with_context(named)?;
    let device_binaries =
        desk::embedded_binaries().with_context(|| format!("{}: install it anew", named()))?;
    Ok(Verified { program: ProgramFile { path, bytes, sha256 }, device_binaries })
}

impl BuildFacts {
    fn text(&self) -> String {
        let BuildFacts { version, commit, target, features, verified } = self;
        let commit = commit.unwrap_or("unknown");
        let mut text = format!("tracebridge {version}\ncommit    {commit}\ntarget    {target}\n");
        text +=
            &format!("features  {}\n", if features.is_empty() { "none".into() } else { features.join(", ") });
        let Some(Verified { program, device_binaries }) = verified else { return text };
        let ProgramFile { path, bytes, sha256 } = program;
        text += &format!("program   sha256 {sha256}  {bytes} bytes  {}\n", path.display());
        for EmbeddedBinary { abi, bytes, sha256 } in device_binaries {
            text += &format!("device    sha256 {sha256}  {bytes} bytes  {abi}\n");
        }
        if device_binaries.is_empty() {
            text += "device    no binary is inside: those of TRACEBRIDGE_DEVICE_BINARIES are pushed, or of out/android\n";
        }
        text
    }
}
