//! Parses a command line as bionic's `getopt_long(3)` does for atrace: options may follow operands, letters
//! may be grouped, and long options may be abbreviated.

use std::collections::VecDeque;

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
