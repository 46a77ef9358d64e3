//! Notices that another program has taken the trace buffer over while a recording runs. Perfetto's
//! `traced_probes` and other tracers switch tracing off, clear and resize the buffer, and change the clock
//! without asking.

use super::Tracefs;

/// The files of a trace buffer that no other program may change during a recording.
const WATCHED: [&str; 4] = ["tracing_on", "trace_clock", "buffer_size_kb", "options/overwrite"];

/// The values of [`WATCHED`] when a recording started.
#[derive(Debug)]
pub(super) struct SettingsWatch {
    values: Vec<(&'static str, String)>,
}

impl SettingsWatch {
    /// Reads the values as they are now. A file that this user may not read is not watched.
    pub(super) fn begin(tracefs: &Tracefs) -> SettingsWatch {
        let value = |knob| Some((knob, tracefs.read(knob).ok()?));
        SettingsWatch { values: WATCHED.into_iter().filter_map(value).collect() }
    }

    /// What another program has changed since, for a sentence: `tracing_on from 1 to 0`. Empty if nothing.
    pub(super) fn changes(&self, tracefs: &Tracefs) -> Vec<String> {
        let change = |(knob, before): &(&'static str, String)| {
            let now = tracefs.read(knob).ok()?;
            let current = |text: &str| super::parse_choices(text).1.unwrap_or_else(|| text.to_owned());
            (now != *before).then(|| format!("{knob} from {} to {}", current(before), current(&now)))
        };
        self.values.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_with_both_values() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        std::fs::write(dir.path().join("trace_clock"), "local [boot] mono\n").unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let watch = SettingsWatch::begin(&tracefs);
        assert_eq!(watch.changes(&tracefs), [""; 0]);
        std::fs::write(dir.path().join("trace_clock"), "local boot [mono]\n").unwrap();
        std::fs::write(dir.path().join("tracing_on"), "0\n").unwrap();
        assert_eq!(watch.changes(&tracefs), ["tracing_on from 1 to 0", "trace_clock from boot to mono"]);
    }
}
