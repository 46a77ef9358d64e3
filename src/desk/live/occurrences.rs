//! The files of conditions that were met: a part of the recording, and a text that says why.

use std::path::{Path, PathBuf};

use crate::desk::error::DeskError;
use crate::desk::output_names::before_ending;
use crate::export::convert::ConvertRequest;
use crate::export::explain::ReadTrace;
use crate::live::{Kept, Occurrence};
use crate::why::{Question, lines};

/// The most lines about a cause.
const MAX_CAUSES: usize = 8;

/// The path of the file of a condition that was met.
pub(super) fn capture_of_occurrence(output: &Path, one: &Occurrence) -> PathBuf {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let what: String = one.what.chars().map(|c| if is_plain(c) { c } else { '_' }).take(80).collect();
    before_ending(&output.with_extension("pftrace"), &what)
}

/// Writes the part of a recording around a condition that was met, and a text about it beside it.
pub(super) fn write_occurrence(part: &Kept, one: &Occurrence, path: &Path) -> Result<(), DeskError> {
    part.write(path, None)?;
    let text = format!("{}\n{}", one.text, why_text(path, one));
    let beside = path.with_extension("txt");
    std::fs::write(&beside, text)
        .map_err(|source| DeskError::LocalFile { path: beside.display().to_string(), source })
}

/// The causes of what met a condition, in lines, by the file that was written for it.
fn why_text(path: &Path, one: &Occurrence) -> String {
    let inputs = [path.to_owned()];
    let explained = ReadTrace::whole(ConvertRequest::to_read(&inputs))
        .map_err(|error| error.to_string())
        .and_then(|trace| trace.explain(&question(one)).map_err(|error| error.to_string()));
    let explained = match explained {
        Ok(explained) => explained,
        Err(error) => return format!("no cause was found: {error}\n"),
    };
    let causes = explained.explanations.iter().flat_map(|explanation| lines(explanation, MAX_CAUSES));
    let notes = explained.missing.iter().map(|missing| format!("note: {missing}"));
    causes.chain(notes).map(|line| line + "\n").collect()
}

/// The question of `why` about what met a condition.
fn question(one: &Occurrence) -> Question {
    if let Some(frame) = one.what.strip_prefix("frame-").and_then(|number| number.parse().ok()) {
        return Question::Frame(frame);
    }
    let slice = one.trigger.trim().strip_prefix("slice ").and_then(|rest| rest.rsplit_once('>'));
    slice.map_or(Question::Usual, |(name, _)| Question::Slice(name.trim().to_owned()))
}
