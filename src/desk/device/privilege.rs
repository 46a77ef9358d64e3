//! How root is had on a device.

use std::fmt;

use serde::Serialize;

use super::shell_words::quoted;

/// How a `su` takes a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum SuDialect {
    /// `su -c COMMAND`: Magisk, KernelSU, SuperSU, busybox.
    Command,
    /// `su 0 COMMAND`: AOSP's own, on userdebug builds. (Its other form `su root` is older.)
    Zero,
    /// `su root COMMAND`.
    Root,
}

impl SuDialect {
    /// All dialects, in the order in which they are tried. A `su` of one dialect refuses the others.
    pub const ALL: [SuDialect; 3] = [SuDialect::Command, SuDialect::Zero, SuDialect::Root];

    /// The word that names the dialect: the one behind `su`.
    pub fn name(self) -> &'static str {
        match self {
            SuDialect::Command => "-c",
            SuDialect::Zero => "0",
            SuDialect::Root => "root",
        }
    }

    /// The command line that runs `script` as root.
    pub fn command(self, script: &str) -> String {
        let shell = if self == SuDialect::Command { "" } else { " sh -c" };
        format!("su {}{shell} {}", self.name(), quoted(script))
    }
}

impl From<SuDialect> for &'static str {
    fn from(dialect: SuDialect) -> &'static str {
        dialect.name()
    }
}

/// The rights that commands on a device have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// adbd runs as root, and with it every command.
    AdbdRoot,
    /// Commands become root through `su`.
    Su(SuDialect),
    /// Commands are the user `shell`.
    Shell,
}

impl Privilege {
    /// The command line that runs `script` with these rights.
    pub fn command(self, script: &str) -> String {
        match self {
            Privilege::Su(dialect) => dialect.command(script),
            Privilege::AdbdRoot | Privilege::Shell => script.to_owned(),
        }
    }

    /// Whether commands are root.
    pub fn is_root(self) -> bool {
        self != Privilege::Shell
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Privilege::AdbdRoot => f.write_str("adbd"),
            Privilege::Su(dialect) => write!(f, "su {}", dialect.name()),
            Privilege::Shell => f.write_str("no"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_gives_a_shell_the_whole_script() {
        let commands = SuDialect::ALL.map(|dialect| dialect.command("echo 'a b'; id"));
        assert_eq!(
            commands,
            [
                r"su -c 'echo '\''a b'\''; id'",
                r"su 0 sh -c 'echo '\''a b'\''; id'",
                r"su root sh -c 'echo '\''a b'\''; id'"
            ]
        );
        assert_eq!(Privilege::Shell.command("id"), "id");
    }
}
