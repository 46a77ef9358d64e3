//! Holds the sources to the structure that ARCHITECTURE.md draws and to the style of CONTRIBUTING.md: rooms
//! on floors, imports downward only, no circle of files, names, statements and comments in one form, and
//! pages whose links lead somewhere.

mod borders;
mod code;
mod desks;
mod hermetic;
mod hostile;
mod imports;
mod links;
mod style;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use code::for_each_source;
use imports::Sources;

/// A crate of the product. Cargo sees to it that crates depend on each other in one direction alone, and that
/// a crate names nothing that another one does not hand out; what is checked here is inside of a crate.
struct Crate {
    /// The directory of its sources, below the project's.
    dir: &'static str,
    /// Its rooms, from the ground floor up. A room may import rooms of lower floors, and itself. Empty where
    /// a crate has no rooms: its files must not import each other in a circle all the same.
    floors: &'static [&'static [&'static str]],
}

const CRATES: &[Crate] = &[
    Crate {
        dir: "src",
        floors: &[
            &["file_access", "http", "markup", "progress", "statistics", "varint", "workers"],
            &["adb", "art"],
            &["tables"],
            &["formats"],
            &["timeline"],
            &["tracks"],
            &["measure"],
            &["why"],
            &["export", "profile"],
            &["live"],
            &["dataset", "desk", "gate", "inspect"],
            &["mcp"],
            &["cli"],
            &["lib"],
        ],
    },
    Crate {
        dir: "crates/tracebridge-device/src",
        floors: &[
            &["step_log", "system"],
            &["android"],
            &["record"],
            &["atrace_command", "doctor"],
            &["cli"],
            &["lib"],
        ],
    },
    Crate {
        dir: "crates/tracebridge-core/src",
        floors: &[
            &["clock", "console", "depth", "ids", "ignored_signals", "system_calls", "text"],
            &["child", "output_file"],
            &["android", "ftrace"],
            &["categories", "trace_dat"],
            &["cli"],
            &["lib"],
        ],
    },
    Crate { dir: "crates/tracebridge-markers/src", floors: &[] },
];

/// The only file of the product that may choose code by feature.
const FEATURES: &str = "crates/tracebridge-markers/src/lib.rs";

impl Crate {
    fn src(&self) -> PathBuf {
        root().join(self.dir)
    }

    /// The first part of a file's path below the crate's sources, without `.rs`.
    fn room(&self, file: &Path) -> String {
        let below = file.strip_prefix(self.src()).unwrap();
        let first = below.components().next().unwrap().as_os_str().to_str().unwrap();
        first.trim_end_matches(".rs").to_owned()
    }

    fn floor(&self, room: &str) -> usize {
        self.floors.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| {
            panic!("{}/{room} is on no floor: add it to CRATES here, and to ARCHITECTURE.md", self.dir);
        })
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn no_import_leads_upward() {
    for one in CRATES.iter().filter(|one| !one.floors.is_empty()) {
        for (file, imported) in Sources::read(&one.src()).imports() {
            let from = one.room(&file);
            let floor = one.floor(&from);
            for target in imported {
                let to = one.room(&target);
                let downward = from == to || floor > one.floor(&to);
                assert!(
                    downward,
                    "{} imports {}: {from} must not know {to}",
                    file.display(),
                    target.display()
                );
            }
        }
    }
}

#[test]
fn every_crate_is_looked_at() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("members = [\"crates/*\", \"tests/support\"]"), "the members are others");
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let src = entry.unwrap().path().join("src");
        assert!(CRATES.iter().any(|one| one.src() == src), "{}: add the crate to CRATES", src.display());
    }
    for one in CRATES {
        let imports = Sources::read(&one.src()).imports();
        assert!(imports.values().any(|targets| !targets.is_empty()), "{}: no import is seen", one.dir);
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for one in CRATES {
        let imports = Sources::read(&one.src()).imports();
        for start in imports.keys() {
            let reached = reachable(&imports, start);
            if reached.contains(start) {
                let members = reached.iter().filter(|file| reachable(&imports, file).contains(start));
                circles.push(members.cloned().collect::<BTreeSet<PathBuf>>());
            }
        }
    }
    circles.sort();
    circles.dedup();
    assert!(circles.is_empty(), "circles of files: {circles:#?}");
}

fn reachable(imports: &BTreeMap<PathBuf, BTreeSet<PathBuf>>, start: &Path) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start.to_owned()];
    while let Some(file) = next.pop() {
        for target in imports.get(&file).into_iter().flatten() {
            if reached.insert(target.clone()) {
                next.push(target.clone());
            }
        }
    }
    reached
}

#[test]
fn no_room_asks_for_a_feature() {
    let mut lines = Vec::new();
    for one in CRATES {
        for_each_source(&one.src(), &mut |path, text| {
            // Schemas describe what is printed, and change nothing of it.
            let with_feature = |line: &&str| {
                line.contains("cfg") && line.contains("feature =") && !line.contains("\"schema\"")
            };
            let found = text.lines().filter(with_feature).map(|line| format!("{}: {line}", path.display()));
            // The demo leaves a sixth of the host's crates out.
            let found = found.filter(|line| !line.contains("feature = \"mcp\""));
            lines.extend(found.filter(|_| path != root().join(FEATURES)));
        });
    }
    assert!(lines.is_empty(), "what a build has is decided by crates: {lines:#?}");
}

/// Inputs of one fuzz target that may be files of their own: each is a fault that was mended, and says which.
const MAX_NAMED_INPUTS: usize = 10;

#[test]
fn every_fuzz_target_is_built_described_and_has_inputs() {
    let fuzz = root().join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let table = fs::read_to_string(fuzz.join("README.md")).unwrap();
    for entry in fs::read_dir(fuzz.join("fuzz_targets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            manifest.contains(&format!("[[bin]]\nname = \"{name}\"\n")),
            "{name}: not in fuzz/Cargo.toml"
        );
        assert!(table.contains(&format!("\n| `{name}` | ")), "{name}: not in fuzz/README.md");
        let archive = fs::read(fuzz.join("corpus").join(name).with_extension("zip")).unwrap_or_default();
        let inputs = zip::ZipArchive::new(Cursor::new(archive)).map_or(0, |inputs| inputs.len());
        assert!(
            inputs > 0,
            "{name}: no inputs in fuzz/corpus/{name}.zip: run scripts/fuzz --minimise {name}"
        );
        let named = fs::read_dir(fuzz.join("corpus").join(name)).map_or(0, Iterator::count);
        assert!(
            named <= MAX_NAMED_INPUTS,
            "{name}: {named} files in fuzz/corpus/{name}: only mended faults stay"
        );
    }
}
