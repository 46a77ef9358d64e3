//! The result of a command on one device, and the results of several.

use std::fmt::{self, Display, Formatter};

use super::device_json::DeviceJson;
use super::error::DeskError;

/// Whether a result is there and whole. Of several results the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completeness {
    /// Everything was done, and nothing was lost.
    Complete,
    /// The result is there, but events were lost, or the output has no place for some of the data.
    Lossy,
    /// The command failed. Files of it may be there all the same.
    Failed,
}

impl Completeness {
    /// The completeness of a result that is `self` before, and of which something is missing if `is_lossy`.
    pub fn with_loss(self, is_lossy: bool) -> Completeness {
        if is_lossy { self.max(Completeness::Lossy) } else { self }
    }
}

/// Which part of a result a line tells. Many launches in a row say each note once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The output's name, its format and its size.
    Output,
    /// Times and counts of this one recording.
    Figures,
    /// An event that this one recording lacks, or how it ended early.
    Loss,
    /// Anything else.
    Note,
}

/// The lines that a command prints for people.
#[derive(Debug, Clone, Default)]
pub struct OutcomeText {
    lines: Vec<(LineKind, String)>,
}

impl OutcomeText {
    /// Adds the lines of this text at the end.
    pub fn push(&mut self, kind: LineKind, text: &str) {
        self.lines.extend(text.lines().map(|line| (kind, line.to_owned())));
    }

    /// Adds the lines of this text, which are notes, at the beginning.
    pub fn put_before(&mut self, notes: &str) {
        self.lines.splice(..0, notes.lines().map(|line| (LineKind::Note, line.to_owned())));
    }

    /// Keeps the lines of which `keeps` says so.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.lines.retain(|(_, line)| keeps(line));
    }

    /// The lines of this kind, in their order.
    pub fn lines_of(&self, kind: LineKind) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(of, _)| *of == kind).map(|(_, line)| line.as_str())
    }
}

impl From<String> for OutcomeText {
    /// A text of notes.
    fn from(text: String) -> OutcomeText {
        let mut lines = OutcomeText::default();
        lines.push(LineKind::Note, &text);
        lines
    }
}

impl Display for OutcomeText {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))
    }
}

/// The result of a command on one device: a text for people, an object for scripts.
#[derive(Debug, Clone)]
pub struct DeviceOutcome {
    /// Whether the result is whole.
    pub completeness: Completeness,
    /// Lines for people; none if there is nothing to print.
    pub text: OutcomeText,
    /// An object.
    pub json: DeviceJson,
}

impl DeviceOutcome {
    /// The outcome of a command that has done everything.
    pub fn complete(text: String, json: DeviceJson) -> DeviceOutcome {
        DeviceOutcome { completeness: Completeness::Complete, text: text.into(), json }
    }
}

/// The result of a command on the device with this serial.
#[derive(Debug)]
pub struct DeviceResult<T = DeviceOutcome> {
    /// The device.
    pub serial: String,
    /// The result.
    pub result: Result<T, DeskError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_makes_a_complete_result_lossy_and_leaves_a_failure() {
        assert_eq!(Completeness::Complete.with_loss(false), Completeness::Complete);
        assert_eq!(Completeness::Complete.with_loss(true), Completeness::Lossy);
        assert_eq!(Completeness::Failed.with_loss(true), Completeness::Failed);
        let all = [Completeness::Complete, Completeness::Failed, Completeness::Lossy];
        assert_eq!(all.into_iter().max(), Some(Completeness::Failed));
    }

    #[test]
    fn the_lines_of_a_text_keep_their_order_and_their_kinds() {
        let mut text = OutcomeText::from("a note\n".to_owned());
        text.push(LineKind::Output, "x.dat (trace.dat)");
        text.push(LineKind::Loss, "  1 events lost\n  2 events left\n");
        text.put_before("first\nsecond\n");
        assert_eq!(
            text.to_string(),
            "first\nsecond\na note\nx.dat (trace.dat)\n  1 events lost\n  2 events left\n"
        );
        assert_eq!(text.lines_of(LineKind::Note).collect::<Vec<_>>(), ["first", "second", "a note"]);
        assert_eq!(text.lines_of(LineKind::Figures).count(), 0);
        text.retain(|line| !line.ends_with("lost"));
        assert_eq!(text.lines_of(LineKind::Loss).collect::<Vec<_>>(), ["  2 events left"]);
    }
}
