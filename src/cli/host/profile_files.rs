//! The output files of `profile`: which of them an ending names, and endings that contradict an option.

use std::path::{Path, PathBuf};

use super::profile::ProfileArgs;
use crate::cli::exit::UsageError;

/// An option that writes a file.
struct FileOption {
    name: &'static str,
    /// The thing that it writes.
    what: &'static str,
    /// The endings of its files, the usual one first. `-o` chooses the first option with the file's ending.
    endings: &'static [&'static str],
}

/// The options, in the order of [`places`].
const OPTIONS: [FileOption; 8] = [
    FileOption { name: "--flamegraph", what: "a flame graph is SVG", endings: &[".svg"] },
    FileOption { name: "--folded", what: "folded stacks are text", endings: &[".folded", ".txt"] },
    FileOption { name: "--dot", what: "Graphviz's language is text", endings: &[".dot", ".gv"] },
    FileOption { name: "--png", what: "the picture is PNG", endings: &[".png"] },
    FileOption { name: "--svg", what: "the picture is SVG", endings: &[".svg"] },
    FileOption {
        name: "--speedscope",
        what: "speedscope's file is JSON",
        endings: &[".speedscope.json", ".speedscope"],
    },
    FileOption {
        name: "--firefox",
        what: "the Firefox profiler's file is JSON",
        endings: &[".firefox.json", ".profile.json"],
    },
    FileOption {
        name: "--pprof",
        what: "pprof's file is packed protobuf",
        endings: &[".pb.gz", ".pprof", ".pb"],
    },
];

/// The endings of pictures and pages. A file with one of them is opened as what its ending says.
const PICTURES: [&str; 11] =
    [".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".pdf", ".ps", ".html", ".htm"];

/// Where each option of [`OPTIONS`] puts its path.
fn places(args: &mut ProfileArgs) -> [&mut Option<PathBuf>; 8] {
    [
        &mut args.flamegraph,
        &mut args.folded,
        &mut args.dot,
        &mut args.png,
        &mut args.svg,
        &mut args.speedscope,
        &mut args.firefox,
        &mut args.pprof,
    ]
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().to_ascii_lowercase().ends_with(ending.as_bytes()))
}

/// Turns `-o FILE` into the option that the file's ending names.
///
/// # Errors
/// No option writes such a file, or that option is given too.
pub(super) fn take_output(args: &mut ProfileArgs) -> Result<(), UsageError> {
    let Some(path) = args.output.take() else { return Ok(()) };
    let has_ending = |option: &FileOption| option.endings.iter().any(|ending| ends_with(&path, ending));
    let Some(at) = OPTIONS.iter().position(has_ending) else {
        return Err(UsageError::from(format!(
            "-o {}: {}; endings that name an output: {}",
            path.display(),
            other_way(&path),
            OPTIONS
                .iter()
                .map(|option| option.endings[0])
                .filter(|e| *e != ".svg")
                .fold(".svg".to_owned(), |list, ending| list + ", " + ending)
        )));
    };
    let place = &mut *places(args)[at];
    if place.is_some() {
        let name = OPTIONS[at].name;
        return Err(UsageError::from(format!("-o {} and {name}: name one of them", path.display())));
    }
    *place = Some(path);
    Ok(())
}

/// How a file of this name is written, if `-o` does not.
fn other_way(path: &Path) -> &'static str {
    let is = |ending| ends_with(path, ending);
    if is(".csv") {
        "CSV is printed: `tracebridge profile … --csv >FILE`"
    } else if is(".json") {
        "JSON is printed: `tracebridge profile … --json >FILE`"
    } else if [".pftrace", ".perfetto-trace", ".html", ".htm", ".zip"].into_iter().any(is) {
        "the calls on a timeline are written by `tracebridge convert TRACE -o FILE`"
    } else {
        "no output has this ending"
    }
}

/// Refuses a file whose ending says that it is another kind of picture than the option writes.
///
/// # Errors
/// A sentence that names the option and the endings of its files.
pub(super) fn check_endings(args: &ProfileArgs) -> Result<(), UsageError> {
    let paths = [
        &args.flamegraph,
        &args.folded,
        &args.dot,
        &args.png,
        &args.svg,
        &args.speedscope,
        &args.firefox,
        &args.pprof,
    ];
    for (option, path) in OPTIONS.iter().zip(paths) {
        let Some(path) = path else { continue };
        let is_own = option.endings.iter().any(|ending| ends_with(path, ending));
        if !is_own && PICTURES.iter().any(|ending| ends_with(path, ending)) {
            let FileOption { name, what, endings } = option;
            let path = path.display();
            return Err(UsageError::from(format!(
                "{name} {path}: {what}: name the file {}",
                endings.join(" or ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn args(line: &str) -> ProfileArgs {
        ProfileArgs::try_parse_from(line.split(' ')).unwrap()
    }

    #[test]
    fn an_output_is_what_its_ending_says() {
        for (file, at) in [
            ("f.svg", 0),
            ("f.SVG", 0),
            ("f.folded", 1),
            ("f.gv", 2),
            ("f.png", 3),
            ("f.speedscope.json", 5),
            ("f.firefox.json", 6),
            ("f.pb.gz", 7),
        ] {
            let mut args = args(&format!("profile x.trace -o {file}"));
            take_output(&mut args).unwrap();
            let given: Vec<_> = places(&mut args).into_iter().map(|place| place.take()).collect();
            assert_eq!(given.iter().position(Option::is_some), Some(at), "{file}");
            assert_eq!(given.into_iter().flatten().collect::<Vec<_>>(), [PathBuf::from(file)]);
        }
    }

    #[test]
    fn an_output_that_is_written_in_another_way_is_refused_with_that_way() {
        for (file, words) in [
            ("f.csv", "--csv >FILE"),
            ("f.json", "--json >FILE"),
            ("f.pftrace", "tracebridge convert TRACE -o FILE"),
            ("f.foo", "no output has this ending; endings that name an output: .svg, .folded, .dot, .png"),
            ("f.svg --flamegraph g.svg", "-o f.svg and --flamegraph: name one of them"),
        ] {
            let refused = take_output(&mut args(&format!("profile x.trace -o {file}"))).unwrap_err();
            assert!(refused.to_string().contains(words), "{file}: {refused}");
        }
    }

    #[test]
    fn a_picture_gets_no_ending_of_another_one() {
        for (line, words) in [
            ("--flamegraph f.png", "--flamegraph f.png: a flame graph is SVG: name the file .svg"),
            ("--png f.svg", "--png f.svg: the picture is PNG: name the file .png"),
            ("--folded f.html", "folded stacks are text: name the file .folded or .txt"),
        ] {
            let refused = check_endings(&args(&format!("profile x.trace {line}"))).unwrap_err();
            assert!(refused.to_string().contains(words), "{line}: {refused}");
        }
        for line in ["--flamegraph -", "--flamegraph f.out", "--folded stacks", "--svg f.svg --png f.PNG"] {
            check_endings(&args(&format!("profile x.trace {line}"))).unwrap();
        }
    }
}
