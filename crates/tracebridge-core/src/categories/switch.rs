//! The commands by which a desk switches categories of a recording that runs, and the recorder's answers:
//! lines on its standard input, and lines on its standard error.

/// The most names in a command.
pub const MAX_SWITCHED: usize = 64;
/// The longest name, bytes.
pub const MAX_CATEGORY_BYTES: usize = 64;
/// The longest command, bytes.
pub const MAX_COMMAND_BYTES: usize = 8192;

/// The begin of the answer to a command that was carried out; the names of what is on follow.
pub const SWITCHED: &str = "categories: ";
/// The begin of the answer to a command that was refused; the reason follows.
pub const REFUSED: &str = "categories stay: ";

/// The categories to be switched. As a line: `on NAME… off NAME…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CategorySwitch {
    pub on: Vec<String>,
    pub off: Vec<String>,
}

impl CategorySwitch {
    /// The command that stands on a line. `None` if none does.
    pub fn parse(line: &str) -> Option<CategorySwitch> {
        let mut switch = CategorySwitch::default();
        let mut names = None;
        for word in line.split_ascii_whitespace() {
            match (word, &mut names) {
                ("on", _) => names = Some(&mut switch.on),
                ("off", _) => names = Some(&mut switch.off),
                (name, Some(names)) => names.push(name.to_owned()),
                _ => return None,
            }
        }
        switch.is_sound().then_some(switch)
    }

    /// The command as a line, with its end.
    pub fn line(&self) -> String {
        format!("on {} off {}\n", self.on.join(" "), self.off.join(" "))
    }

    /// Whether it has neither too few nor too many names, and no others than categories can have.
    pub fn is_sound(&self) -> bool {
        let count = self.on.len() + self.off.len();
        (1..=MAX_SWITCHED).contains(&count)
            && self.on.iter().chain(&self.off).all(|name| is_category_name(name))
    }
}

/// Whether a category can have this name. One that begins with a dash would be a flag somewhere, and the
/// words of a command are none.
fn is_category_name(name: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
    (1..=MAX_CATEGORY_BYTES).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && !matches!(name, "on" | "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(on: &[&str], off: &[&str]) -> CategorySwitch {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        CategorySwitch { on: names(on), off: names(off) }
    }

    #[test]
    fn a_command_is_read_as_it_was_written() {
        for switch in
            [switch(&["gfx", "binder_driver"], &["sched"]), switch(&["am"], &[]), switch(&[], &["am"])]
        {
            assert_eq!(CategorySwitch::parse(&switch.line()), Some(switch));
        }
        assert_eq!(CategorySwitch::parse("off sched"), Some(switch(&[], &["sched"])));
        let most = switch(&["a"; MAX_SWITCHED], &[]);
        assert!(CategorySwitch::parse(&most.line()).is_some());
        let longest = "x".repeat(MAX_CATEGORY_BYTES);
        let longest = switch(&[longest.as_str(); MAX_SWITCHED], &[]);
        assert!(longest.is_sound() && longest.line().len() <= MAX_COMMAND_BYTES);
    }

    #[test]
    fn what_is_no_command_is_none() {
        let many = switch(&["a"; MAX_SWITCHED + 1], &[]).line();
        let long = format!("on {}", "x".repeat(MAX_CATEGORY_BYTES + 1));
        for line in [
            "",
            "on",
            "on off",
            "gfx",
            "on --output=/x",
            "on ../x",
            "on sched/sched_switch",
            "on a\0b",
            "ön a",
            &many,
            &long,
        ] {
            assert_eq!(CategorySwitch::parse(line), None, "{line:?}");
        }
    }
}
