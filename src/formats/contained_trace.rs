//! A method trace that was found inside of another file.

use super::Damage;
use super::input::Input;

/// A method trace inside of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainedTrace {
    /// The process that it is of, for people: `pid 1234, com.example`.
    pub process: String,
    /// The bytes of a method trace.
    pub bytes: Vec<u8>,
    /// The damage of the text that held it; offsets count from its start.
    pub damage: Vec<Damage>,
}

impl ContainedTrace {
    /// The trace as an input, whose name is that of the file that holds it and the process.
    pub fn into_input(self, file: &str) -> Input {
        let mut input = Input::from_bytes(&format!("{file} ({})", self.process), self.bytes);
        input.damage = self.damage;
        input
    }
}
