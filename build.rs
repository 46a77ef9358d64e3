//! Puts the device binaries into a release's host binary. The environment variable `TRACEBRIDGE_EMBED` names
//! a directory with a file `ABI.zst` for each ABI (`scripts/dist` makes it); without the variable, none is
//! put in.
//!
//! The program is also told for which target and of which commit it is built. The commit is that of
//! `TRACEBRIDGE_COMMIT`; else, for a binary with device binaries, that of the work tree; else that which
//! cargo has written into a package. A build for every day knows none: with it, each commit would build all
//! anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRACEBRIDGE_EMBED");
    println!("cargo::rerun-if-env-changed=TRACEBRIDGE_COMMIT");
    println!("cargo::rustc-env=BUILD_TARGET={}", env::var("TARGET").expect("cargo names the target"));
    let dir = env::var_os("TRACEBRIDGE_EMBED").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo names a directory")).join("embedded.rs");
    let commit = named_commit().or_else(|| dir.as_ref().and_then(|_| commit_of_work_tree()));
    let commit = commit.or_else(packaged_commit).unwrap_or_default();
    println!("cargo::rustc-env=BUILD_COMMIT={commit}");
    fs::write(&out, dir.map_or("&[]".to_owned(), |dir| table(&dir)))
        .expect("cargo's directory can be written to");
}

/// The source of a table of names and contents of the files in `dir`.
fn table(dir: &Path) -> String {
    println!("cargo::rerun-if-changed={}", dir.display());
    let entries =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("TRACEBRIDGE_EMBED: {}: {error}", dir.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the directory can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "zst"));
    files.sort();
    assert!(!files.is_empty(), "TRACEBRIDGE_EMBED: {}: no file ABI.zst", dir.display());
    let mut source = String::from("&[\n");
    for file in files {
        let file = fs::canonicalize(&file).expect("the file is there");
        let abi = file.file_stem().expect("the file has a name");
        let _ = writeln!(source, "    ({abi:?}, include_bytes!({file:?})),");
    }
    source + "]\n"
}

/// The commit that whoever builds has named.
fn named_commit() -> Option<String> {
    env::var("TRACEBRIDGE_COMMIT").ok().filter(|commit| is_commit(commit))
}

/// The commit of the work tree, with `+` behind it where tracked files differ from it.
fn commit_of_work_tree() -> Option<String> {
    let commit = git(&["rev-parse", "HEAD"]).filter(|commit| is_commit(commit))?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists());
        if let Some(path) = path {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { commit + "+" })
}

/// What git prints in the directory of this file, without the line feed at its end.
fn git(args: &[&str]) -> Option<String> {
    let ran = Command::new("git").args(args).output().ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8(ran.stdout).ok()?.trim_end().to_owned())
}

/// The commit that `cargo package` has noted in the package that this file is in.
fn packaged_commit() -> Option<String> {
    let noted = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let commit = noted.split("\"sha1\": \"").nth(1)?.split('"').next()?;
    is_commit(commit).then(|| commit.to_owned())
}

fn is_commit(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
