//! Which options of `profile` go with which: one table. An option that a request would not use is refused by
//! its name, so that nobody takes a result for what it is not. Here is also which output files an ending
//! names.

use std::path::{Path, PathBuf};

use super::endings::{check_ending, ends_with};
use super::profile::{ProfileArgs, RowArg};
use super::profile_files::{FileOption, OPTIONS};
use crate::cli::exit::UsageError;
use crate::export::convert::ConvertError;
use crate::output_file::check_distinct;

/// Outputs: a set of the kinds below.
type Outputs = u16;

/// The table of rows, which is printed without any output option.
const TABLE: Outputs = 1;
const JSON: Outputs = 1 << 1;
const CSV: Outputs = 1 << 2;
const TREE: Outputs = 1 << 3;
const BOTTOM_UP: Outputs = 1 << 4;
const FOLDED: Outputs = 1 << 5;
const FLAMEGRAPH: Outputs = 1 << 6;
const DOT: Outputs = 1 << 7;
const PNG: Outputs = 1 << 8;
const SVG: Outputs = 1 << 9;
const SPEEDSCOPE: Outputs = 1 << 10;
const FIREFOX: Outputs = 1 << 11;
const PPROF: Outputs = 1 << 12;

const ROWS: Outputs = TABLE | JSON | CSV;
const TREES: Outputs = TREE | BOTTOM_UP;
const STACKS: Outputs = FOLDED | FLAMEGRAPH;
const GRAPHS: Outputs = DOT | PNG | SVG;
const FILES: Outputs = STACKS | GRAPHS | SPEEDSCOPE | FIREFOX | PPROF;
const ALL: Outputs = ROWS | TREES | FILES;

/// The names of the outputs, in the order of their bits.
const NAMES: [&str; 13] = [
    "the table",
    "--json",
    "--csv",
    "--tree",
    "--bottom-up",
    "--folded",
    "--flamegraph",
    "--dot",
    "--png",
    "--svg",
    "--speedscope",
    "--firefox",
    "--pprof",
];

/// One option of a command line.
struct Given {
    name: &'static str,
    is_given: bool,
    /// The outputs that the option may stand beside.
    goes_with: Outputs,
    /// The outputs that use it, of which the command line needs one.
    used_by: Outputs,
}

/// All options that select or shape a result.
fn options(args: &ProfileArgs) -> Vec<Given> {
    let given = |name, is_given, goes_with, used_by| Given { name, is_given, goes_with, used_by };
    // The whole result depends on such an option, so that every output must use it.
    let selects = |name, is_given, used_by| given(name, is_given, used_by, used_by);
    let mut options = vec![
        selects("--by", args.by.is_some(), ROWS),
        selects("--sort", args.sort.is_some(), ROWS),
        selects("--clock", args.clock.is_some(), ALL),
        selects("--top", args.top.is_some(), ROWS),
        selects("--calls", args.calls, TABLE | JSON),
        selects("--signatures", args.signatures, TABLE | TREES),
        selects("--thread", !args.thread.is_empty(), ALL),
        selects("--from", args.from.is_some(), ALL),
        selects("--to", args.to.is_some(), ALL),
        selects("--mapping", args.mapping.is_some(), ALL),
        selects("--method", args.method.is_some(), ROWS),
        selects("--against", args.against.is_given(), ROWS | STACKS),
        given("--threshold", args.threshold.is_some(), ALL & !(TABLE | CSV), TREES | GRAPHS),
        given("--merge-threads", args.merge_threads, FILES, STACKS),
        given("--app", !args.app.is_empty(), FILES, FLAMEGRAPH),
        selects("--event", args.event.is_some(), ALL),
        selects("--weight", args.weight.is_some(), ALL),
        selects("--symbols", !args.symbols.is_empty(), ALL),
        selects("--overhead", args.overhead, TABLE | JSON),
        selects("--strict", args.strict, ALL),
        selects("--max-memory", args.memory.is_given(), ALL),
        // The outputs. Several files can be written at once.
        given("--tree", args.tree, TREE | JSON, TREE),
        given("--bottom-up", args.bottom_up, BOTTOM_UP | JSON, BOTTOM_UP),
        given("--json", args.json, JSON | TREES, JSON),
        selects("--csv", args.csv, CSV),
        // They have become the options of their endings.
        given("--output", !args.output.is_empty(), FILES, FILES),
    ];
    let files = OPTIONS.iter().zip(&args.files.0);
    options.extend(files.map(|(option, path)| given(option.name, path.is_some(), FILES, bit(option.name))));
    options
}

/// The output of this name.
fn bit(name: &str) -> Outputs {
    NAMES.iter().position(|output| *output == name).map_or(0, |bit| 1 << bit)
}

/// The outputs of a command line; the table where it names none.
fn outputs(args: &ProfileArgs) -> Outputs {
    let named = options(args).into_iter().filter(|option| option.is_given).map(|option| bit(option.name));
    match named.fold(0, |all, output| all | output) {
        0 => TABLE,
        outputs => outputs,
    }
}

/// Options that one output uses, each for itself, and that contradict each other. The second is an option
/// with the reason.
fn contradiction(args: &ProfileArgs) -> Option<String> {
    let by_other = args.by.is_some_and(|by| by != RowArg::Method);
    let refused =
        |option: &str, other: &str, why: &str| Some(format!("{option} does not go with {other}: {why}"));
    match () {
        () if args.calls && args.against.is_given() => {
            refused("--calls", "--against", "a comparison has no callers and callees")
        }
        () if args.calls && by_other => {
            refused("--calls", "--by", "only methods have callers and callees (--by method)")
        }
        () if args.signatures && by_other => {
            refused("--signatures", "--by", "only methods have them (--by method)")
        }
        () if args.mapping.is_some() && args.by == Some(RowArg::Thread) => {
            refused("--mapping", "--by thread", "threads keep their names")
        }
        () => None,
    }
}

/// Checks that every option of the command line is used.
///
/// # Errors
/// A sentence that names the option that is not.
pub(super) fn check(args: &ProfileArgs) -> Result<(), UsageError> {
    let outputs = outputs(args);
    for option in options(args).into_iter().filter(|option| option.is_given) {
        let beside = outputs & !option.goes_with;
        if beside == 0 && outputs & option.used_by != 0 {
            continue;
        }
        let with = names(if beside == 0 { outputs } else { beside });
        let refusal = format!("{} does not go with {with}", option.name);
        let is_output = NAMES.contains(&option.name);
        let hint =
            if is_output { String::new() } else { format!("; it goes with {}", names(option.used_by)) };
        return Err(UsageError::from(refusal + &hint));
    }
    contradiction(args).map_or(Ok(()), |contradiction| Err(contradiction.into()))
}

/// The names of outputs as a list.
fn names(outputs: Outputs) -> String {
    let names: Vec<&str> = NAMES
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| outputs >> bit & 1 == 1)
        .map(|(_, name)| name)
        .collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Turns each `-o FILE` into the option that the file's ending names.
///
/// # Errors
/// The file is an input or a directory, no option writes such a file, or that option is given too.
pub(super) fn take_output(args: &mut ProfileArgs) -> anyhow::Result<()> {
    let inputs: Vec<&Path> = args.traces.iter().map(PathBuf::as_path).collect();
    for path in std::mem::take(&mut args.output) {
        check_distinct(&inputs, &[&path])?;
        if path.is_dir() {
            let error = ConvertError::OutputIsDirectory { output: path.display().to_string() };
            return Err(UsageError::from(error.to_string()).into());
        }
        let longest = |option: &FileOption| {
            option.endings.iter().filter(|ending| ends_with(&path, ending)).map(|ending| ending.len()).max()
        };
        let named = OPTIONS.iter().enumerate().filter_map(|(at, option)| Some((longest(option)?, at)));
        let Some((_, at)) = named.max() else {
            let endings = OPTIONS.map(|option| option.endings[0]).join(", ");
            return Err(UsageError::from(format!(
                "-o {}: {}; endings that name an output: {endings}",
                path.display(),
                other_way(&path)
            ))
            .into());
        };
        if let Some(other) = args.files.0[at].replace(path) {
            let path = args.files.0[at].as_deref().unwrap_or(&other).display();
            let error = format!("-o {path} and {} {}: name one of them", OPTIONS[at].name, other.display());
            return Err(UsageError::from(error).into());
        }
    }
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
        "the calls on a timeline are written by `tracebridge merge TRACE -o FILE`"
    } else {
        "no output has this ending"
    }
}

/// Refuses a file whose ending says that it is something else than the option writes. What is an input is
/// refused for that, when it is opened.
///
/// # Errors
/// A sentence that names the option and the endings of its files.
pub(super) fn check_endings(args: &ProfileArgs) -> Result<(), UsageError> {
    let inputs: Vec<&Path> = args.traces.iter().chain(args.against.given()).map(PathBuf::as_path).collect();
    for (option, path) in OPTIONS.iter().zip(&args.files.0) {
        let Some(path) = path else { continue };
        if check_distinct(&inputs, &[path]).is_err() {
            continue;
        }
        let FileOption { name, what, endings, .. } = option;
        let is_readable = option.also.iter().any(|ending| ends_with(path, ending));
        if !is_readable {
            check_ending(name, path, what, endings)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_table_has_every_option() {
        let args = ProfileArgs::try_parse_from(["profile", "x.trace"]).unwrap();
        let mut listed: Vec<_> = options(&args).iter().map(|option| option.name.to_owned()).collect();
        let command = ProfileArgs::command();
        let mut declared: Vec<_> = command
            .get_arguments()
            .filter_map(|option| option.get_long().map(|long| format!("--{long}")))
            .collect();
        listed.sort();
        declared.sort();
        assert_eq!(listed, declared);
    }

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
            ("f.dot.svg", 4),
        ] {
            let mut args = args(&format!("profile x.trace -o {file}"));
            take_output(&mut args).unwrap();
            let given = args.files.0;
            assert_eq!(given.iter().position(Option::is_some), Some(at), "{file}");
            assert_eq!(given.into_iter().flatten().collect::<Vec<_>>(), [PathBuf::from(file)]);
        }
    }

    #[test]
    fn an_output_that_is_written_in_another_way_is_refused_with_that_way() {
        for (file, words) in [
            ("f.csv", "--csv >FILE"),
            ("f.json", "--json >FILE"),
            ("f.pftrace", "tracebridge merge TRACE -o FILE"),
            (
                "f.foo",
                "no output has this ending; endings that name an output: .svg, .folded, .dot, .png, .dot.svg",
            ),
            ("f.svg --flamegraph g.svg", "-o f.svg and --flamegraph g.svg: name one of them"),
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
            ("--flamegraph f.txt", "--flamegraph f.txt: a flame graph is SVG: name the file .svg"),
            ("--flamegraph f.folded", "a flame graph is SVG"),
            ("--flamegraph f.json", "a flame graph is SVG"),
            (
                "--speedscope f.csv",
                "speedscope's file is JSON: name the file .speedscope.json or .speedscope",
            ),
            ("--pprof f.dat", "pprof's file is packed protobuf"),
        ] {
            let refused = check_endings(&args(&format!("profile x.trace {line}"))).unwrap_err();
            assert!(refused.to_string().contains(words), "{line}: {refused}");
        }
        for line in [
            "--flamegraph -",
            "--flamegraph f.out",
            "--folded stacks",
            "--svg f.svg --png f.PNG",
            "--firefox f.json",
        ] {
            check_endings(&args(&format!("profile x.trace {line}"))).unwrap();
        }
    }
}
