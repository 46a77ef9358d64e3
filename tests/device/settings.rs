//! The kernel's settings on the device: every one that can be read, for comparing before and after a
//! recording.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::adb::Device;

/// Every setting's file and its value.
pub type Settings = BTreeMap<String, String>;

/// Every readable setting of tracefs and its value, as tools/settings_snapshot.rs prints them on the device.
pub fn settings(device: &Device) -> Settings {
    let printed = device.run(&device.program(device.abi(), "settings_snapshot"));
    let found: Settings = printed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(file, value)| (file.to_owned(), value.to_owned()))
        .collect();
    assert!(found.len() > 1000, "only {} settings found", found.len());
    found
}

/// Fails if a setting differs, and names every one that does.
pub fn assert_same(before: &Settings, after: &Settings, when: &str) {
    let changed: Vec<_> = before
        .iter()
        .filter(|(file, value)| after.get(*file) != Some(value))
        .map(|(file, value)| format!("{file}: {value:?} -> {:?}", after.get(file)))
        .collect();
    let new: Vec<_> = after.keys().filter(|file| !before.contains_key(*file)).collect();
    assert!(changed.is_empty() && new.is_empty(), "{when}: changed: {changed:#?} new: {new:#?}");
}

/// Sets settings that differ from the kernel's own, so that a test can tell restoring from resetting. Returns
/// all settings as they must be after the test's recordings; they are read once, for all tests.
pub fn unusual(device: &Device) -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    device.run(
        "cd /sys/kernel/tracing && echo mono >trace_clock && echo 2000 >buffer_size_kb && echo 0 >options/overwrite \
         && echo 1 >events/sched/sched_process_fork/enable && echo 1 >events/irq/softirq_raise/enable \
         && echo 0 >tracing_on",
    );
    SETTINGS.get_or_init(|| settings(device))
}

/// Sets the kernel's own settings. Returns all settings as they must be after the test's recordings; they are
/// read once, for all tests.
pub fn usual(device: &Device) -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    reset(device);
    SETTINGS.get_or_init(|| settings(device))
}

/// Sets the kernel's own settings.
pub fn reset(device: &Device) {
    device.run(
        "cd /sys/kernel/tracing && echo 0 >events/enable && echo boot >trace_clock && echo 1408 >buffer_size_kb \
         && echo 1 >options/overwrite && echo 1 >tracing_on",
    );
}
