//! `getopt_long(3)` as atrace calls it: permuted operands, grouped letters, abbreviated long options.

use std::collections::VecDeque;

/// One element of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// `-b 2048`, `-b2048`, or one letter of `-cz`.
    Short(char, Option<String>),
    /// `--async_start`, or an unambiguous abbreviation of it.
    Long(&'static str),
    /// What is no option.
    Operand(String),
}

/// What bionic's getopt prints, without the program's name in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetoptError {
    /// `-x`, where there is none.
    #[error("unknown option -- {0}")]
    UnknownLetter(char),
    /// `--xyz`, where there is none.
    #[error("unknown option -- {0}")]
    UnknownName(String),
    /// `-b` at the end.
    #[error("option requires an argument -- {0}")]
    NoArgument(char),
    /// `--async`.
    #[error("ambiguous option -- {0}")]
    Ambiguous(String),
    /// `--stream=x`.
    #[error("option doesn't take an argument -- {0}")]
    NeedlessArgument(String),
}

/// Walks over the arguments: options as they come, then the operands.
pub struct Getopt<'a> {
    /// Letters, each followed by `:` where it takes an argument.
    letters: &'a str,
    /// Long options; none takes an argument.
    names: &'a [&'static str],
    args: VecDeque<String>,
    /// The rest of a group of letters.
    group: String,
    operands: VecDeque<String>,
    only_operands: bool,
}

impl<'a> Getopt<'a> {
    /// `args` are without the program's name.
    pub fn new(
        args: impl IntoIterator<Item = String>,
        letters: &'a str,
        names: &'a [&'static str],
    ) -> Getopt<'a> {
        let args = args.into_iter().collect();
        Getopt { letters, names, args, group: String::new(), operands: VecDeque::new(), only_operands: false }
    }

    fn letter(&mut self, letter: char) -> Result<Item, GetoptError> {
        let at =
            self.letters.find(letter).filter(|_| letter != ':').ok_or(GetoptError::UnknownLetter(letter))?;
        if self.letters[at + 1..].starts_with(':') {
            let rest = std::mem::take(&mut self.group);
            let argument = if rest.is_empty() { self.args.pop_front() } else { Some(rest) };
            return Ok(Item::Short(letter, Some(argument.ok_or(GetoptError::NoArgument(letter))?)));
        }
        Ok(Item::Short(letter, None))
    }

    fn name(&self, given: &str) -> Result<Item, GetoptError> {
        let (name, argument) = given.split_once('=').map_or((given, None), |(n, a)| (n, Some(a)));
        let exact = self.names.iter().find(|n| **n == name);
        let mut begin_so = self.names.iter().filter(|n| n.starts_with(name));
        let found = match (exact, begin_so.next(), begin_so.next()) {
            (Some(exact), ..) => exact,
            (None, Some(one), None) => one,
            (None, Some(_), Some(_)) => return Err(GetoptError::Ambiguous(name.to_owned())),
            (None, None, _) => return Err(GetoptError::UnknownName(name.to_owned())),
        };
        match argument {
            None => Ok(Item::Long(found)),
            Some(_) => Err(GetoptError::NeedlessArgument(name.to_owned())),
        }
    }
}

impl Iterator for Getopt<'_> {
    type Item = Result<Item, GetoptError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.group.is_empty() {
                let letter = self.group.remove(0);
                return Some(self.letter(letter));
            }
            let Some(arg) = self.args.pop_front() else {
                return self.operands.pop_front().map(|operand| Ok(Item::Operand(operand)));
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
                    Item::Short(letter, argument) => format!("{letter}={}", argument.unwrap_or_default()),
                    Item::Long(name) => name.to_owned(),
                    Item::Operand(operand) => format!("({operand})"),
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
