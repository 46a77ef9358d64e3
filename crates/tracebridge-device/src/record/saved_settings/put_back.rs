//! Puts saved settings back. One setting that cannot be put back keeps no other from its old value, and
//! nothing that a retry cannot mend is tried again.

use std::collections::HashMap;
use std::fs;
use std::io;

use super::super::tracefs::BufferId;
use super::super::{RecordError, Tracefs};
use super::settings_file::{SavedKnob, SavedSetting};
use crate::android::Properties;
use crate::step_log::print_step;

/// The fate of saved settings when they were put back.
#[derive(Debug, Default)]
pub(crate) struct PutBackReport {
    /// The number of settings that were written.
    pub(crate) written: usize,
    /// The number of settings that had their old value already.
    pub(crate) unchanged: usize,
    /// Files that another program has changed since. They keep that program's values.
    pub(crate) foreign: Vec<String>,
    /// Why settings were given up: this user may not write them, or their file is gone. A retry would not
    /// help.
    pub(crate) given_up: Vec<RecordError>,
    /// Why settings could not be put back now, for example because another tracer is using the buffer. They
    /// stay saved.
    pub(crate) refused: Vec<RecordError>,
}

impl PutBackReport {
    /// One sentence for each setting that does not have its old value.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let given_up = self.given_up.iter().map(|error| format!("{error}: given up"));
        given_up.chain(self.refused.iter().map(|error| format!("{error}; try `tracebridge restore` later")))
    }
}

/// Writes the saved values in reverse order. Of `saved`, the settings remain that could not be put back but
/// may be later. If the trace buffer that they were saved of, `buffer`, is gone, only settings of the
/// top-level buffer are left to put back. A file in `own` is put back only if it has the value given there.
pub(super) fn put_back(
    tracefs: &Tracefs,
    buffer: Option<BufferId>,
    saved: &mut Vec<SavedSetting>,
    own: &HashMap<String, String>,
) -> PutBackReport {
    let is_gone = is_gone(tracefs, buffer);
    let mut report = PutBackReport::default();
    let mut remaining = Vec::new();
    for setting in saved.drain(..).rev() {
        let result = match &setting {
            SavedSetting::Knob(saved) if is_gone && !saved.knob.starts_with("../..") => Ok(false),
            SavedSetting::Knob(saved) if is_foreign(tracefs, saved, own) => {
                report.foreign.push(saved.knob.clone());
                continue;
            }
            SavedSetting::Knob(saved) => put_knob_back(tracefs, saved),
            SavedSetting::Properties(saved) => match Properties::find() {
                Some(properties) => saved.restore(&properties).map(|()| true).map_err(RecordError::from),
                None => Ok(false),
            },
        };
        match result {
            Ok(true) => report.written += 1,
            Ok(false) => report.unchanged += 1,
            Err(error) if is_final(&error) => report.given_up.push(error.explained()),
            Err(error) => {
                report.refused.push(error);
                remaining.push(setting);
            }
        }
    }
    remaining.reverse();
    *saved = remaining;
    report
}

/// Whether the trace buffer does not exist any more. An instance that was removed and made again is another
/// buffer.
fn is_gone(tracefs: &Tracefs, buffer: Option<BufferId>) -> bool {
    match buffer {
        Some(_) => tracefs.buffer_id() != buffer,
        None => tracefs.instance_name().is_some() && !tracefs.exists(),
    }
}

/// Whether a retry cannot help.
fn is_final(error: &RecordError) -> bool {
    let kind = error.kernel_error().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound))
}

/// Whether a file has neither its old value nor the recorder's own one.
fn is_foreign(tracefs: &Tracefs, saved: &SavedKnob, own: &HashMap<String, String>) -> bool {
    let Some(own) = own.get(&saved.knob) else { return false };
    tracefs.read(&saved.knob).is_ok_and(|now| ![own, &saved.value].contains(&&restorable(&now)))
}

/// Returns whether the value had to be written.
fn put_knob_back(tracefs: &Tracefs, saved: &SavedKnob) -> Result<bool, RecordError> {
    if tracefs.read(&saved.knob).is_ok_and(|now| restorable(&now) == saved.value) {
        return Ok(false);
    }
    tracefs.write(&saved.knob, &saved.value).map(|()| true)
}

/// Removes the instance that was created for a recording, unless its name is another buffer's by now.
pub(super) fn remove_instance(tracefs: &Tracefs, buffer: Option<BufferId>) -> Result<(), RecordError> {
    if is_gone(tracefs, buffer) {
        return Ok(());
    }
    match fs::remove_dir(tracefs.root()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(RecordError::knob(tracefs.root(), "remove this instance", e))
        }
        _ => {
            print_step(format_args!("removed the instance {}", tracefs.root().display()));
            Ok(())
        }
    }
}

/// The number of settings that do not have their saved value now.
pub(super) fn count_changed(tracefs: &Tracefs, buffer: Option<BufferId>, saved: &[SavedSetting]) -> usize {
    let is_gone = is_gone(tracefs, buffer);
    let is_changed = |setting: &&SavedSetting| match setting {
        SavedSetting::Knob(saved) if is_gone && !saved.knob.starts_with("../..") => false,
        SavedSetting::Knob(saved) => {
            tracefs.read(&saved.knob).map_or(true, |now| restorable(&now) != saved.value)
        }
        SavedSetting::Properties(_) => true,
    };
    saved.iter().filter(is_changed).count()
}

/// The value to write to a file of tracefs so that it shows `shown` again.
///
/// - `local [boot] mono`: the choice in brackets.
/// - `7 (expanded: 1408)`: the size of a buffer before its first use, KiB. That state cannot be restored.
///   1408 is the size after the first use.
/// - `none`, in the `filter` of an event: `0` clears the filter.
/// - `#### all functions enabled ####`: nothing, which empties a list.
/// - `1*`, in the `enable` of an event: `1`. The asterisk means that a trigger uses the event too.
pub(super) fn restorable(shown: &str) -> String {
    if let Some(expanded) = shown.split_once("(expanded: ").and_then(|(_, n)| n.strip_suffix(')')) {
        return expanded.to_owned();
    }
    if let Some(chosen) = shown.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']')) {
        return chosen.to_owned();
    }
    if shown.starts_with('#') {
        return String::new();
    }
    if shown == "none" { "0".to_owned() } else { shown.trim_end_matches('*').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_to_write_differs_from_the_value_shown() {
        assert_eq!(restorable("[local] global boot"), "local");
        assert_eq!(restorable("7 (expanded: 1408)"), "1408");
        assert_eq!(restorable("none"), "0");
        assert_eq!(restorable("prev_pid==1"), "prev_pid==1");
        assert_eq!(restorable("1*"), "1");
        assert_eq!(restorable("#### all functions enabled ####"), "");
    }

    #[test]
    fn one_setting_that_cannot_be_put_back_keeps_no_other_from_its_old_value() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        fs::write(dir.path().join("same"), "5\n").unwrap();
        // The kernel refuses to write this file with EIO, whoever asks.
        std::os::unix::fs::symlink("/proc/version", dir.path().join("refused")).unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let knob = |knob: &str, value: &str| {
            SavedSetting::Knob(SavedKnob { knob: knob.to_owned(), value: value.to_owned() })
        };
        let mut saved =
            vec![knob("tracing_on", "0"), knob("refused", "x"), knob("gone", "1"), knob("same", "5")];
        assert_eq!(count_changed(&tracefs, None, &saved), 3);
        let report = put_back(&tracefs, None, &mut saved, &HashMap::new());
        assert_eq!((report.written, report.unchanged), (1, 1), "{report:?}");
        assert_eq!((report.given_up.len(), report.refused.len()), (1, 1), "{report:?}");
        assert_eq!(tracefs.read("tracing_on").unwrap(), "0");
        assert_eq!(saved, [knob("refused", "x")], "what may succeed later stays saved");
    }

    #[test]
    fn what_another_program_has_changed_since_is_left_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["tracing_on", "ours", "theirs"];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "1\n").unwrap());
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let knob =
            |name: &&str| SavedSetting::Knob(SavedKnob { knob: (*name).to_owned(), value: "0".to_owned() });
        let mut saved = names.iter().map(knob).collect();
        let own = [("ours", "1"), ("theirs", "7")].map(|(knob, value)| (knob.to_owned(), value.to_owned()));
        let report = put_back(&tracefs, None, &mut saved, &HashMap::from(own));
        assert_eq!((report.written, &report.foreign[..]), (2, &["theirs".to_owned()][..]), "{report:?}");
        assert_eq!(names.map(|name| tracefs.read(name).unwrap()), ["0", "0", "1"]);
    }
}
