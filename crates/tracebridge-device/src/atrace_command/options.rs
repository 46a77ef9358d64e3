//! The options of atrace, with the meaning, the defaults and the quirks of AOSP's atrace.
//!
//! The command line is taken apart as bionic's `getopt_long(3)` does it for atrace: options may follow
//! operands, letters may be grouped, and long options may be abbreviated.

use std::collections::VecDeque;

const LETTERS: &str = "a:b:cf:k:ns:t:zo:";
const NAMES: [&str; 7] =
    ["async_start", "async_stop", "async_dump", "only_userspace", "list_categories", "stream", "prefer_sdk"];

/// The options and categories of one command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtraceOptions {
    /// `-a`: patterns for the command lines of apps, separated by commas.
    pub apps: String,
    /// `-b`: the size of the ring buffer, in KiB per CPU.
    pub buffer_kb: u32,
    /// `-c`: overwrite the oldest events when the buffer is full, instead of dropping the newest.
    pub circular: bool,
    /// `-f`: the path of a file with names of categories.
    pub categories_file: Option<String>,
    /// `-k`: kernel functions, separated by commas.
    pub functions: Option<String>,
    /// `-n`: SIGHUP, SIGINT, SIGQUIT and SIGTERM do not end the recording.
    pub ignore_signals: bool,
    /// `-s`: seconds to wait before the recording.
    pub sleep: u64,
    /// `-t`: the length of the recording in seconds.
    pub seconds: u64,
    /// `-z`: the trace is written as a zlib stream.
    pub compress: bool,
    /// `-o`: the path of the output; standard output without it.
    pub output: Option<String>,
    /// One of the `--async_…` options was given: atrace does not wait.
    pub asynchronous: bool,
    /// atrace configures the kernel and starts tracing.
    pub start: bool,
    /// atrace stops tracing and restores every setting.
    pub stop: bool,
    /// atrace writes the trace.
    pub dump: bool,
    /// `--stream`: events are printed as they happen.
    pub stream: bool,
    /// `--prefer_sdk`: the categories use Perfetto's SDK from now on; nothing is recorded.
    pub prefer_sdk: bool,
    /// `--only_userspace`: only the userspace tags are switched.
    pub only_userspace: bool,
    /// The names of the categories.
    pub categories: Vec<String>,
}

/// The request of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedCommandLine {
    /// A run with these options.
    Run(Box<AtraceOptions>),
    /// The list of categories. `--list_categories` takes effect where it stands; later arguments are not
    /// read.
    ListCategories,
    /// The help text. `--help` counts only as the single argument.
    Help,
}

/// Parses the arguments behind the program's name.
pub fn parse(args: Vec<String>) -> Result<ParsedCommandLine, GetoptError> {
    if args == ["--help"] {
        return Ok(ParsedCommandLine::Help);
    }
    let mut o = AtraceOptions {
        apps: String::new(),
        buffer_kb: 2048,
        circular: false,
        categories_file: None,
        functions: None,
        ignore_signals: false,
        sleep: 0,
        seconds: 5,
        compress: false,
        output: None,
        asynchronous: false,
        start: true,
        stop: true,
        dump: true,
        stream: false,
        prefer_sdk: false,
        only_userspace: false,
        categories: Vec::new(),
    };
    for item in Getopt::new(args, LETTERS, &NAMES) {
        match item? {
            Argument::Operand(name) => o.categories.push(name),
            Argument::Short(letter, argument) => o.short(letter, argument.unwrap_or_default()),
            Argument::Long("list_categories") => return Ok(ParsedCommandLine::ListCategories),
            Argument::Long(name) => o.long(name),
        }
    }
    Ok(ParsedCommandLine::Run(Box::new(o)))
}

impl AtraceOptions {
    fn short(&mut self, letter: char, argument: String) {
        match letter {
            'a' => self.apps = argument,
            'b' => self.buffer_kb = u32::try_from(atoi(&argument)).unwrap_or(0).max(1),
            'c' => self.circular = true,
            'f' => self.categories_file = Some(argument),
            'k' => self.functions = Some(argument).filter(|functions| !functions.is_empty()),
            'n' => self.ignore_signals = true,
            's' => self.sleep = u64::try_from(atoi(&argument)).unwrap_or(0),
            't' => self.seconds = u64::try_from(atoi(&argument)).unwrap_or(0),
            'z' => self.compress = true,
            _ => self.output = Some(argument),
        }
    }

    /// Applies a long option. Options given twice or together each set their own fields, as in AOSP.
    fn long(&mut self, name: &str) {
        match name {
            "async_start" => {
                self.asynchronous = true;
                self.stop = false;
                self.dump = false;
                self.circular = true;
            }
            "async_stop" => {
                self.asynchronous = true;
                self.start = false;
            }
            "async_dump" => {
                self.asynchronous = true;
                self.start = false;
                self.stop = false;
            }
            "only_userspace" => self.only_userspace = true,
            "stream" => (self.stream, self.dump) = (true, false),
            _ => self.prefer_sdk = true,
        }
    }
}

/// Parses a number as C's `atoi` does: white space, a sign, digits. Text that is not a number is 0.
fn atoi(text: &str) -> i32 {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let value = digits[..end].parse::<i64>().unwrap_or(if end == 0 { 0 } else { i64::MAX });
    let value = if text.starts_with('-') { -value } else { value };
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// `--help`, and what follows a mistake.
pub fn help(program: &str) -> String {
    format!(
        "usage: {program} [options] [categories...]
options include:
  -a appname      let these apps write their own markers too: command lines
                    with commas between; * stands for any run of characters
  -b N            size of the trace buffer: N KB per CPU [default 2048]
  -c              overwrite the oldest events when the buffer is full
  -f filename     take the categories from a file, with spaces between
  -k fname,...    trace these kernel functions
  -n              ignore signals
  -s N            wait N seconds first [default 0]
  -t N            trace for N seconds [default 5]
  -z              compress what is traced
  -o filename     write what is traced to this file instead of stdout
  --async_start   start tracing into a ring and return
  --async_dump    write out what the ring holds, and go on tracing
  --async_stop    stop tracing and write out what the ring holds
  --stream        write events to stdout as they happen, until a signal;
                    this costs CPU time, which then shows in the trace
  --only_userspace
                  with --async_start or --async_stop: switch the userspace
                    tags only, and leave the kernel's tracing alone
  --list_categories
                  list the categories that this device supports
  --prefer_sdk    let the Perfetto SDK record the given categories instead of
                    markers, and return

Categories are those of --list_categories, and events: group/event, group/*.
Exit status: 0, 1 when it failed or a signal ended it, 255 for a bad option.

  {program} -t 10 -b 8192 -z -a com.example.app gfx view sched freq -o app.atrace
  {program} --async_start -b 16384 sched; …; {program} --async_stop -o it.atrace
"
    )
}

/// One element of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// `-b 2048`, `-b2048`, or one letter of `-cz`.
    Short(char, Option<String>),
    /// `--async_start`, or an unambiguous abbreviation of it.
    Long(&'static str),
    /// An argument that is not an option.
    Operand(String),
}

/// The errors of bionic's getopt, in its words, without the program's name in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetoptError {
    /// No option has this letter.
    #[error("unknown option -- {0}")]
    UnknownLetter(char),
    /// No long option has this name.
    #[error("unknown option -- {0}")]
    UnknownName(String),
    /// The command line ends where the option needs an argument.
    #[error("option requires an argument -- {0}")]
    NoArgument(char),
    /// Several long options begin with this text, for example `--async`.
    #[error("ambiguous option -- {0}")]
    Ambiguous(String),
    /// A long option was given an argument, for example `--stream=x`.
    #[error("option doesn't take an argument -- {0}")]
    NeedlessArgument(String),
}

/// An iterator over a command line: the options in their order, then the operands.
pub struct Getopt<'a> {
    /// The letters of the short options, each followed by `:` if the option takes an argument.
    letters: &'a str,
    /// The names of the long options, none of which takes an argument.
    names: &'a [&'static str],
    args: VecDeque<String>,
    /// The letters of a group (`-cz`) that are not read yet.
    group: String,
    operands: VecDeque<String>,
    only_operands: bool,
}

impl<'a> Getopt<'a> {
    /// Parses `args`, which do not include the program's name.
    pub fn new(
        args: impl IntoIterator<Item = String>,
        letters: &'a str,
        names: &'a [&'static str],
    ) -> Getopt<'a> {
        let args = args.into_iter().collect();
        Getopt { letters, names, args, group: String::new(), operands: VecDeque::new(), only_operands: false }
    }

    fn letter(&mut self, letter: char) -> Result<Argument, GetoptError> {
        let at =
            self.letters.find(letter).filter(|_| letter != ':').ok_or(GetoptError::UnknownLetter(letter))?;
        if self.letters[at + 1..].starts_with(':') {
            let rest = std::mem::take(&mut self.group);
            let argument = if rest.is_empty() { self.args.pop_front() } else { Some(rest) };
            return Ok(Argument::Short(letter, Some(argument.ok_or(GetoptError::NoArgument(letter))?)));
        }
        Ok(Argument::Short(letter, None))
    }

    fn name(&self, given: &str) -> Result<Argument, GetoptError> {
        let (name, argument) = given.split_once('=').map_or((given, None), |(n, a)| (n, Some(a)));
        let exact = self.names.iter().find(|n| **n == name);
        let mut abbreviated = self.names.iter().filter(|n| n.starts_with(name));
        let found = match (exact, abbreviated.next(), abbreviated.next()) {
            (Some(exact), ..) => exact,
            (None, Some(one), None) => one,
            (None, Some(_), Some(_)) => return Err(GetoptError::Ambiguous(name.to_owned())),
            (None, None, _) => return Err(GetoptError::UnknownName(name.to_owned())),
        };
        match argument {
            None => Ok(Argument::Long(found)),
            Some(_) => Err(GetoptError::NeedlessArgument(name.to_owned())),
        }
    }
}

impl Iterator for Getopt<'_> {
    type Item = Result<Argument, GetoptError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.group.is_empty() {
                let letter = self.group.remove(0);
                return Some(self.letter(letter));
            }
            let Some(arg) = self.args.pop_front() else {
                return self.operands.pop_front().map(|operand| Ok(Argument::Operand(operand)));
            };
            if self.only_operands || arg == "-" || !arg.starts_with('-') {
                self.operands.push_back(arg);
            } else if arg == "--" {
                self.only_operands = true;
            } else if let Some(name) = arg.strip_prefix("--") {
                return Some(self.name(name));
            } else {
                self.group = arg[1..].to_owned();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> AtraceOptions {
        match parse(line.split_whitespace().map(str::to_owned).collect()).unwrap() {
            ParsedCommandLine::Run(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_are_read_as_atoi_reads_them() {
        let cases = [
            ("-b 4096", 4096, 5),
            ("-b 16mb", 16, 5),
            ("-b x", 1, 5),
            ("-b -5", 1, 5),
            ("-t 0", 2048, 0),
            ("-t -3", 2048, 0),
            ("-t x", 2048, 0),
            ("-b +7 -t 99999999999", 7, 2_147_483_647),
        ];
        for (line, kb, seconds) in cases {
            let o = options(line);
            assert_eq!((o.buffer_kb, o.seconds), (kb, seconds), "{line}");
        }
    }

    #[test]
    fn systraces_and_perfettos_command_lines() {
        let o = options("-z -t 10 -b 4096 -a com.example gfx view sched");
        assert!(o.compress && o.start && o.stop && o.dump && !o.circular && !o.asynchronous);
        assert_eq!((o.apps.as_str(), o.categories.len()), ("com.example", 3));
        let o = options("--async_start -c -b 4096 sched");
        assert!(o.asynchronous && o.start && !o.stop && !o.dump && o.circular);
        let o = options("--async_stop -z");
        assert!(o.asynchronous && !o.start && o.stop && o.dump);
        let o = options("--async_dump");
        assert!(o.asynchronous && !o.start && !o.stop && o.dump);
        let o = options("--async_start --only_userspace am wm -a *");
        assert!(o.only_userspace && o.start && !o.stop);
        let o = options("--stream sched");
        assert!(o.stream && !o.dump && o.stop);
    }

    #[test]
    fn listing_acts_at_once_and_help_only_alone() {
        let parse = |line: &str| parse(line.split(' ').map(str::to_owned).collect());
        assert_eq!(parse("-c --list_categories --nonsense"), Ok(ParsedCommandLine::ListCategories));
        assert_eq!(parse("--help"), Ok(ParsedCommandLine::Help));
        assert!(parse("--help -c").is_err());
        assert!(parse("--nonsense --list_categories").is_err());
    }

    fn walk(line: &str) -> Result<Vec<String>, String> {
        let args = line.split(' ').map(str::to_owned);
        Getopt::new(args, "a:b:cz", &["async_start", "async_stop", "stream"])
            .map(|item| {
                item.map_err(|e| e.to_string()).map(|item| match item {
                    Argument::Short(letter, argument) => format!("{letter}={}", argument.unwrap_or_default()),
                    Argument::Long(name) => name.to_owned(),
                    Argument::Operand(operand) => format!("({operand})"),
                })
            })
            .collect()
    }

    #[test]
    fn options_are_found_wherever_they_stand() {
        let cases = [
            ("-b 2048 sched -c gfx", "b=2048 c= (sched) (gfx)"),
            ("-cb2048 x", "c= b=2048 (x)"),
            ("-czb 7", "c= z= b=7"),
            ("-b -1 -", "b=-1 (-)"),
            ("--stream -- -c --x", "stream (-c) (--x)"),
            ("--async_sta --str", "async_start stream"),
            ("-a --stream", "a=--stream"),
        ];
        for (line, expected) in cases {
            assert_eq!(walk(line).map(|items| items.join(" ")).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_as_bionic_tells_it() {
        let cases = [
            ("-x", "unknown option -- x"),
            ("-:", "unknown option -- :"),
            ("-cx", "unknown option -- x"),
            ("--nope", "unknown option -- nope"),
            ("--async", "ambiguous option -- async"),
            ("--stream=1", "option doesn't take an argument -- stream"),
            ("-c -b", "option requires an argument -- b"),
        ];
        for (line, message) in cases {
            assert_eq!(walk(line), Err(message.to_owned()), "{line}");
        }
    }
}
