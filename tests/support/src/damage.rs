//! Damages a file in every way that a user's file may be damaged, and checks what the product says about each
//! copy.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many shortened copies of a file are tried, usually and in a full run, cut at places that lie evenly
/// over the file.
const CUTS: [usize; 2] = [40, 200];

/// Gives damaged copies of `bytes` to `info` and to `merge`, each copy as a file of this name: an empty copy,
/// copies that are cut short, and copies that are random from some byte on. Every run must end with status 1
/// or 3, without a panic, and must say where the damage is or what is missing; an error (status 1) must name
/// the file.
pub fn check_damaged_copies(name: &str, bytes: &[u8]) {
    let copies = damaged_copies(bytes);
    // The runs are independent of each other: every CPU takes the next copy until none is left.
    let next = AtomicUsize::new(0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                let dir = crate::tempdir();
                let file = dir.path().join(name);
                while let Some((damage, content)) = copies.get(next.fetch_add(1, Ordering::Relaxed)) {
                    fs::write(&file, content).expect("a temporary file");
                    for command in [&["info"][..], &["merge", "-o", "/dev/null", "--format", "perfetto"]] {
                        check_run(command, &file, damage);
                    }
                }
            });
        }
    });
}

/// The damaged copies, each with a description of the damage.
fn damaged_copies(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut copies = vec![("that is empty".to_owned(), Vec::new())];
    let cuts = crate::rounds(CUTS[0], CUTS[1]);
    for n in 1..=cuts {
        let at = bytes.len() * n / (cuts + 1);
        copies.push((format!("that is cut at byte {at} of {}", bytes.len()), bytes[..at].to_vec()));
    }
    // xorshift64 gives the same bytes in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    copies.push(("of random bytes".into(), (0..65536).map(|_| random()).collect()));
    for kept in [3, 16, 64, 1024] {
        let tail = (0..20_000).map(|_| random());
        let content = bytes.iter().take(kept).copied().chain(tail).collect();
        copies.push((format!("that is random after byte {kept}"), content));
    }
    copies
}

fn check_run(command: &[&str], file: &Path, damage: &str) {
    let output = crate::tracebridge().args(command).arg(file).run();
    let printed = format!("{}{}", output.stdout, output.stderr);
    let run = format!("{command:?} of a file {damage}: {}: {printed}", output.status);
    assert!(matches!(output.code(), Some(1 | 3)), "{run}");
    assert!(!printed.contains("panicked"), "{run}");
    let place = ["offset", "byte", "empty", "unknown kind", "missing", "cut"];
    let names_the_place = place.iter().any(|word| printed.contains(word));
    assert!(names_the_place, "the output says neither where the damage is nor what is missing: {run}");
    if output.code() == Some(1) {
        assert!(printed.contains(&*file.to_string_lossy()), "the error does not name the file: {run}");
    }
}
