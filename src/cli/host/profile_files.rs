//! The output files of `profile`: the kinds, and the endings of each. `-o FILE` names a kind by the file's
//! ending, and a hidden option names it whatever the ending is.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::profile::ProfileFiles;

/// An option that writes a file.
pub(super) struct FileOption {
    pub(super) name: &'static str,
    /// The thing that it writes.
    pub(super) what: &'static str,
    /// The endings of its files, the usual one first. `-o` chooses the option with the longest ending that a
    /// file has.
    pub(super) endings: &'static [&'static str],
    /// More general endings that are true of its files, too.
    pub(super) also: &'static [&'static str],
}

impl FileOption {
    /// The name without its dashes.
    fn id(&self) -> &'static str {
        &self.name[2..]
    }
}

/// The options. `-o` has taken their place, so that no help lists them.
pub(super) const OPTIONS: [FileOption; 8] = [
    FileOption { name: "--flamegraph", what: "a flame graph is SVG", endings: &[".svg"], also: &[] },
    FileOption { name: "--folded", what: "folded stacks are text", endings: &[".folded", ".txt"], also: &[] },
    FileOption {
        name: "--dot",
        what: "Graphviz's language is text",
        endings: &[".dot", ".gv"],
        also: &[".txt"],
    },
    FileOption { name: "--png", what: "the picture is PNG", endings: &[".png"], also: &[] },
    FileOption { name: "--svg", what: "the picture is SVG", endings: &[".dot.svg"], also: &[".svg"] },
    FileOption {
        name: "--speedscope",
        what: "speedscope's file is JSON",
        endings: &[".speedscope.json", ".speedscope"],
        also: &[".json"],
    },
    FileOption {
        name: "--firefox",
        what: "the Firefox profiler's file is JSON",
        endings: &[".firefox.json", ".profile.json"],
        also: &[".json", ".json.gz"],
    },
    FileOption {
        name: "--pprof",
        what: "pprof's file is packed protobuf",
        endings: &[".pb.gz", ".pprof", ".pb"],
        also: &[".gz"],
    },
];

/// The path of each option of [`OPTIONS`].
#[derive(Default)]
pub(super) struct FileArgs(pub(super) [Option<PathBuf>; OPTIONS.len()]);

impl Args for FileArgs {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().map(|option| {
            let arg = Arg::new(option.id()).long(option.id()).value_name("FILE").hide(true);
            arg.value_parser(value_parser!(PathBuf))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        FileArgs::augment_args(command)
    }
}

impl FromArgMatches for FileArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FileArgs, clap::Error> {
        Ok(FileArgs(OPTIONS.each_ref().map(|option| matches.get_one(option.id()).cloned())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FileArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl FileArgs {
    pub(super) fn into_request(self, app: Vec<String>, merge_threads: bool) -> ProfileFiles {
        let [flamegraph, folded, dot, png, svg, speedscope, firefox, pprof] = self.0;
        ProfileFiles { folded, flamegraph, app, merge_threads, dot, png, svg, speedscope, firefox, pprof }
    }
}
