//! Puts the device binaries into a release's host binary. The environment variable `TRACEBRIDGE_EMBED` names
//! a directory with a file `ABI.zst` for each ABI (`scripts/dist` makes it); without the variable, none is
//! put in.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRACEBRIDGE_EMBED");
    let dir = env::var_os("TRACEBRIDGE_EMBED").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo names a directory")).join("embedded.rs");
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
