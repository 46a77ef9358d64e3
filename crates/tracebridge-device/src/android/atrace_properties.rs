//! Switches userspace tags on for a recording through the properties `debug.atrace.*`, and restores them
//! afterwards.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::properties::{Properties, PropertyError, system_program};
use crate::android::tags::{self, APP_NUMBER_PROPERTY, MAX_APP_PATTERNS, TAGS_PROPERTY, app_property};

const USER_INITIATED: &str = "debug.atrace.user_initiated";
const PREFER_SDK: &str = "debug.atrace.prefer_sdk";
const CORE_SERVICES: &str = "ro.atrace.core.services";

/// `IBinder::SYSPROPS_TRANSACTION` (`_SPR`): the call that makes a service read its properties again.
const SYSPROPS_TRANSACTION: u32 = u32::from_be_bytes(*b"_SPR");
/// Android 10, the last release whose services must be told of a change. Newer ones notice it by themselves.
const LAST_SDK_TO_NOTIFY: u32 = 29;
/// The note for a system without properties.
pub const NO_PROPERTIES: &str = "no system properties here: userspace tags are not switched on";

/// The tags and apps that a recording asks for.
#[derive(Debug, Clone, Default)]
pub struct UserspaceRequest {
    /// The mask of tags ([`crate::android::tags`]).
    pub tags: u64,
    /// Patterns for the command lines of the apps whose own markers are wanted (`com.example*`, `*`).
    pub apps: Vec<String>,
    /// Whether the processes in `ro.atrace.core.services` are wanted too.
    pub core_services: bool,
    /// Whether to announce that a user records: init then stops Perfetto's `traced_probes` until the end. A
    /// recording in the kernel's top-level buffer needs this.
    pub user_initiated: bool,
}

/// Whether a recording sets this property.
pub fn is_set_by_recordings(name: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|digit| digit.is_ascii_digit());
    [TAGS_PROPERTY, APP_NUMBER_PROPERTY, PREFER_SDK, USER_INITIATED].contains(&name)
        || app_property(0).strip_suffix('0').and_then(|app| name.strip_prefix(app)).is_some_and(is_number)
}

/// The values of properties before a recording. They can be stored and restored by another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProperties {
    /// Names and values, in the order in which they must be restored.
    pub values: Vec<(String, String)>,
}

impl SavedProperties {
    /// Restores all values. A failure does not keep the rest from being restored; the first error is
    /// returned.
    pub fn restore(&self, properties: &Properties) -> Result<(), PropertyError> {
        let mut result = Ok(());
        for (name, value) in &self.values {
            let done = properties.set(name, value);
            result = result.and(done);
        }
        if !self.values.is_empty() {
            notify_services(properties);
        }
        result
    }

    /// Reads the values that [`UserspaceTags::enable`] is about to overwrite. A recorder stores them first,
    /// so that they can be restored even after it was killed.
    pub fn read(
        properties: &Properties,
        request: &UserspaceRequest,
    ) -> Result<SavedProperties, PropertyError> {
        let number = properties.get(APP_NUMBER_PROPERTY)?;
        let apps = app_list(properties, request)?.len();
        // No process may see a mixture of two lists of apps: the number goes first, because nobody reads the
        // list while the number is empty; then the tags; last the property that other recorders wait for.
        let mut values = vec![
            (APP_NUMBER_PROPERTY.to_owned(), String::new()),
            (TAGS_PROPERTY.to_owned(), properties.get(TAGS_PROPERTY)?),
        ];
        for n in 0..app_number(properties)?.max(apps) {
            let name = app_property(n);
            let value = properties.get(&name)?;
            values.push((name, value));
        }
        if !number.is_empty() {
            values.push((APP_NUMBER_PROPERTY.to_owned(), number));
        }
        for name in [PREFER_SDK, USER_INITIATED] {
            values.push((name.to_owned(), properties.get(name)?));
        }
        Ok(SavedProperties { values })
    }

    /// Whether it has all the properties of `other`, which was read later. Lists differ in their apps
    /// alone: one that is as long has the same.
    pub fn covers(&self, other: &SavedProperties) -> bool {
        self.values.len() >= other.values.len()
    }

    fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }
}

/// Userspace tags that stay on as long as this guard lives.
#[derive(Debug)]
#[must_use = "dropping the guard restores the tags"]
pub struct UserspaceTags {
    properties: Properties,
    saved: SavedProperties,
}

impl UserspaceTags {
    /// Switches the tags on and notifies the running processes. After an error, everything already changed is
    /// restored.
    pub fn enable(
        properties: &Properties,
        request: &UserspaceRequest,
    ) -> Result<UserspaceTags, PropertyError> {
        let saved = SavedProperties::read(properties, request)?;
        let guard = UserspaceTags { properties: properties.clone(), saved };
        if request.user_initiated {
            properties.set(USER_INITIATED, "1")?;
        }
        set_tags(properties, request)?;
        let prefer_sdk = tags::parse_mask(guard.saved.value(PREFER_SDK));
        // Categories for which Perfetto's SDK is preferred would not be written as markers.
        if prefer_sdk & request.tags != 0 {
            properties.set(PREFER_SDK, &format_mask(prefer_sdk & !request.tags))?;
        }
        Ok(guard)
    }

    /// Leaves the tags on and returns the values that another process has to restore later.
    pub fn leave_on(mut self) -> SavedProperties {
        std::mem::take(&mut self.saved)
    }
}

impl Drop for UserspaceTags {
    fn drop(&mut self) {
        // A destructor cannot return an error. SavedProperties::restore() does.
        let _ = self.saved.restore(&self.properties);
    }
}

/// Sets the tags and the list of apps without saving anything. `atrace --only_userspace` does this; its
/// caller switches the tags off again.
pub fn set_tags(properties: &Properties, request: &UserspaceRequest) -> Result<(), PropertyError> {
    let apps = app_list(properties, request)?;
    let before = app_number(properties)?;
    for (n, pattern) in apps.iter().enumerate() {
        properties.set(&app_property(n), pattern)?;
    }
    let number = if apps.is_empty() { String::new() } else { apps.len().to_string() };
    properties.set(APP_NUMBER_PROPERTY, &number)?;
    properties.set(TAGS_PROPERTY, &format_mask(request.tags))?;
    // No process reads these patterns any more.
    for n in apps.len()..before {
        properties.set(&app_property(n), "")?;
    }
    notify_services(properties);
    Ok(())
}

/// Returns the number of app patterns, at most [`MAX_APP_PATTERNS`].
fn app_number(properties: &Properties) -> Result<usize, PropertyError> {
    Ok(properties.get(APP_NUMBER_PROPERTY)?.trim().parse::<usize>().unwrap_or(0).min(MAX_APP_PATTERNS))
}

/// Switches every tag off and withdraws the announcement of a user's recording. This ends a recording whose
/// earlier property values are unknown.
pub fn switch_off(properties: &Properties) -> Result<(), PropertyError> {
    set_tags(properties, &UserspaceRequest::default())?;
    properties.set(USER_INITIATED, "")
}

/// Sets the tags for which processes use Perfetto's SDK instead of markers (Android 16).
pub fn set_prefer_sdk(properties: &Properties, tags: u64) -> Result<(), PropertyError> {
    properties.set(PREFER_SDK, &format_mask(tags))
}

/// Returns the mask of the tags that are on. `app` is among them if a pattern matches `cmdline`.
pub fn tags_on(properties: &Properties, cmdline: &[u8]) -> Result<u64, PropertyError> {
    let on = tags::from_property(&properties.get(TAGS_PROPERTY)?) & !tags::APP;
    for n in 0..app_number(properties)? {
        if tags::app_is_traced([properties.get(&app_property(n))?.as_str()], cmdline) {
            return Ok(on | tags::APP);
        }
    }
    Ok(on)
}

/// Returns the property `ro.atrace.core.services`: command lines with commas between them, or nothing.
pub fn core_services(properties: &Properties) -> Result<String, PropertyError> {
    properties.get(CORE_SERVICES)
}

fn app_list(properties: &Properties, request: &UserspaceRequest) -> Result<Vec<String>, PropertyError> {
    let mut apps = request.apps.clone();
    if request.core_services {
        apps.extend(core_services(properties)?.split(',').map(|s| s.trim().to_owned()));
    }
    apps.retain(|app| !app.is_empty());
    Ok(apps)
}

/// Formats a mask as C's `%#x` does.
fn format_mask(tags: u64) -> String {
    if tags == 0 { "0".to_owned() } else { format!("{tags:#x}") }
}

/// Tells the services of Android 10 and older that properties changed. A service that cannot be reached
/// writes no markers; AOSP's atrace behaves in the same way.
fn notify_services(properties: &Properties) {
    if properties.sdk().is_none_or(|sdk| sdk > LAST_SDK_TO_NOTIFY) {
        return;
    }
    let service = properties.bin().join("service");
    let Ok(list) = system_program(&service).arg("list").output() else { return };
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let names: Vec<&str> =
        list.lines().filter_map(|line| line.split_once('\t')?.1.split(':').next()).collect();
    for batch in names.chunks(8) {
        let calls: Vec<_> = batch
            .iter()
            .filter_map(|name| {
                system_program(&service)
                    .args(["call", name, &SYSPROPS_TRANSACTION.to_string()])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .ok()
            })
            .collect();
        for mut call in calls {
            let _ = call.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// Makes stand-ins for `getprop`, `setprop` and `service` that work on one file per property, and log
    /// each change.
    fn system(dir: &Path, properties: &[(&str, &str)]) -> Properties {
        // A shell writes the files: a file that is open for writing here while another test forks cannot be
        // executed.
        let script = |name: &str, body: &str| {
            let text = format!("#!/bin/sh\ncd {}\n{body}\n", dir.display());
            let write = r#"printf %s "$1" >"$0" && chmod 755 "$0""#;
            let done = Command::new("sh").arg("-c").arg(write).arg(dir.join(name)).arg(text).status();
            assert!(done.unwrap().success());
        };
        script("getprop", r#"cat "$1" 2>/dev/null; echo"#);
        script(
            "setprop",
            r#"case "$1" in ro.*) echo no >&2; exit 1;; esac; printf %s "$2" >"$1"; echo "$1=$2" >>log"#,
        );
        script(
            "service",
            r#"case $1 in list) printf 'Found 1 services:\n0\tphone: [x]\n';; *) echo "$*" >>log;; esac"#,
        );
        for (name, value) in properties {
            std::fs::write(dir.join(name), value).unwrap();
        }
        Properties::at(dir)
    }

    fn log(dir: &Path) -> String {
        let text = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
        let _ = std::fs::remove_file(dir.join("log"));
        text.replace("debug.atrace.", "")
    }

    #[test]
    fn tags_come_on_and_go_back_in_an_order_nobody_can_misread() {
        let dir = tempfile::tempdir().unwrap();
        let before = [
            ("debug.atrace.tags.enableflags", "0x8"),
            ("debug.atrace.app_number", "1"),
            ("debug.atrace.app_0", "com.old"),
            ("debug.atrace.prefer_sdk", "0x6"),
            ("ro.atrace.core.services", "a,b"),
        ];
        let properties = system(dir.path(), &before);
        let request = UserspaceRequest {
            tags: 2,
            apps: vec!["com.new".into()],
            core_services: true,
            user_initiated: true,
        };
        let tags = UserspaceTags::enable(&properties, &request).unwrap();
        assert_eq!(
            log(dir.path()),
            "user_initiated=1\napp_0=com.new\napp_1=a\napp_2=b\napp_number=3\ntags.enableflags=0x2\nprefer_sdk=0x4\n"
        );
        assert_eq!(tags_on(&properties, b"a").unwrap(), 2 | tags::ALWAYS | tags::APP);
        assert_eq!(tags_on(&properties, b"c").unwrap(), 2 | tags::ALWAYS);
        drop(tags);
        assert_eq!(
            log(dir.path()),
            "app_number=\ntags.enableflags=0x8\napp_0=com.old\napp_1=\napp_2=\napp_number=1\nprefer_sdk=0x6\nuser_initiated=\n"
        );
    }

    #[test]
    fn dropping_the_guard_puts_back_too() {
        let dir = tempfile::tempdir().unwrap();
        let properties = system(dir.path(), &[]);
        drop(
            UserspaceTags::enable(&properties, &UserspaceRequest { tags: 2, ..Default::default() }).unwrap(),
        );
        assert_eq!(properties.get("debug.atrace.tags.enableflags").unwrap(), "");
    }

    #[test]
    fn apps_of_an_earlier_list_do_not_stay_behind() {
        let dir = tempfile::tempdir().unwrap();
        let properties = system(dir.path(), &[]);
        let two = UserspaceRequest { apps: vec!["a".into(), "b".into()], ..Default::default() };
        set_tags(&properties, &two).unwrap();
        log(dir.path());
        set_tags(&properties, &UserspaceRequest::default()).unwrap();
        assert_eq!(log(dir.path()), "app_number=\ntags.enableflags=0\napp_0=\napp_1=\n");
    }

    #[test]
    fn services_of_android_10_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let properties = system(dir.path(), &[("ro.build.version.sdk", "29")]);
        set_tags(&properties, &UserspaceRequest::default()).unwrap();
        assert!(log(dir.path()).ends_with("tags.enableflags=0\ncall phone 1599295570\n"));
        std::fs::write(dir.path().join("ro.build.version.sdk"), "30").unwrap();
        set_tags(&properties, &UserspaceRequest::default()).unwrap();
        assert!(log(dir.path()).ends_with("tags.enableflags=0\n"));
    }

    #[test]
    fn a_refused_property_says_which() {
        let dir = tempfile::tempdir().unwrap();
        let error = system(dir.path(), &[]).set("ro.x", "1").unwrap_err().to_string();
        assert!(error.contains("ro.x") && error.contains("(no)"), "{error}");
    }
}
