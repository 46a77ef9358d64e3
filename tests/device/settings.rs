//! The kernel's settings on the device: all that can be read, to be the same before and after.

use std::collections::BTreeMap;

use crate::adb::Device;

/// Every readable file under tracefs that is a setting: not the trace itself, not what the kernel counts, and not
/// `free_buffer`, which empties the buffer when it is closed.
const SETTINGS: &str = "cd /sys/kernel/tracing && find . -type f ! -name trace ! -name 'trace_pipe*' \
    ! -name 'snapshot*' ! -name 'trace_marker*' ! -name free_buffer ! -name stats ! -name saved_cmdlines \
    ! -name saved_tgids ! -name 'available_*' ! -name format ! -name id ! -name hist ! -name printk_formats ! -name README \
    ! -name touched_functions ! -name enabled_functions | sort | xargs grep -H '' 2>/dev/null";

/// Every setting and its value.
pub fn settings(device: &Device) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in device.shell(SETTINGS).stdout.split(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((file, value)) = line.split_once(':') else { continue };
        found.entry(file.to_owned()).or_default().push_str(value);
    }
    assert!(found.len() > 1000, "only {} settings found", found.len());
    found
}

/// Fails with what differs.
pub fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, what: &str) {
    let changed: Vec<_> = before
        .iter()
        .filter(|(file, value)| after.get(*file) != Some(value))
        .map(|(file, value)| format!("{file}: {value:?} -> {:?}", after.get(file)))
        .collect();
    let new: Vec<_> = after.keys().filter(|file| !before.contains_key(*file)).collect();
    assert!(changed.is_empty() && new.is_empty(), "{what}: changed: {changed:#?} new: {new:#?}");
}

/// Settings that differ from the kernel's own, so that restoring them is something else than resetting them.
pub fn unusual(device: &Device) {
    device.run(
        "cd /sys/kernel/tracing && echo mono >trace_clock && echo 2000 >buffer_size_kb && echo 0 >options/overwrite \
         && echo 1 >events/sched/sched_process_fork/enable && echo 1 >events/irq/softirq_raise/enable \
         && echo 0 >tracing_on",
    );
}

/// The kernel's own.
pub fn usual(device: &Device) {
    device.run(
        "cd /sys/kernel/tracing && echo 0 >events/enable && echo boot >trace_clock && echo 1408 >buffer_size_kb \
         && echo 1 >options/overwrite && echo 1 >tracing_on",
    );
}
