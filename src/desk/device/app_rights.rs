//! Whether Android traces the methods of an app on a device.

use super::privilege::Privilege;
use super::shell_words::quoted;
use super::{COMMAND_TIMEOUT, Device};
use crate::adb::AdbError;

/// Since this API level (Android 10) a manifest can say that the shell may profile the app.
const FIRST_PROFILEABLE_SDK: u32 = 29;

/// Why an app's methods can be traced, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppRights {
    /// The build of Android permits it for every app: userdebug and eng builds, the emulator's images.
    DebuggableBuild,
    /// The app is debuggable.
    Debuggable,
    /// The app's manifest says `<profileable android:shell="true"/>`.
    Profileable,
    /// Neither, on a user build.
    Refused,
    /// The device does not tell.
    Unknown,
}

impl AppRights {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            AppRights::DebuggableBuild => "debuggable build",
            AppRights::Debuggable => "debuggable",
            AppRights::Profileable => "profileable",
            AppRights::Refused => "refused",
            AppRights::Unknown => "unknown",
        }
    }

    /// The command whose output [`AppRights::parse`] reads. `dumpsys package` has the app's flags;
    /// `simpleperf_app_runner` (Android 12 and newer) knows the manifest's rule for profiling, which not
    /// every release has among the flags.
    fn script(package: &str) -> String {
        let package = quoted(package);
        format!(
            "echo \"debuggable=$(getprop ro.debuggable 2>/dev/null)\"; \
             echo \"type=$(simpleperf_app_runner {package} --show-app-type 2>/dev/null)\"; \
             dumpsys package {package} 2>/dev/null | grep -i 'flags=\\['"
        )
    }

    /// Parses the output of [`AppRights::script`].
    fn parse(text: &str, build_type: &str, sdk: Option<u32>) -> AppRights {
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        if value("debuggable=") == "1" || ["userdebug", "eng"].contains(&build_type) {
            return AppRights::DebuggableBuild;
        }
        let flags: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once("lags=[")?.1.split(']').next())
            .flat_map(str::split_whitespace)
            .collect();
        let is_profileable = flags.iter().any(|flag| flag.ends_with("PROFILEABLE_BY_SHELL"));
        match value("type=") {
            _ if flags.contains(&"DEBUGGABLE") => AppRights::Debuggable,
            "debuggable" => AppRights::Debuggable,
            "profileable" => AppRights::Profileable,
            _ if is_profileable => AppRights::Profileable,
            "non_profileable" => AppRights::Refused,
            _ if !flags.is_empty() && sdk.is_some_and(|sdk| sdk < FIRST_PROFILEABLE_SDK) => {
                AppRights::Refused
            }
            _ => AppRights::Unknown,
        }
    }
}

impl Device {
    /// Asks whether Android traces the methods of a package's app.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn app_rights(&self, package: &str) -> Result<AppRights, AdbError> {
        let answer = self.run_script(&AppRights::script(package), Privilege::Shell, COMMAND_TIMEOUT)?;
        Ok(AppRights::parse(&answer.text(), &self.facts.build_type, self.facts.sdk.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_the_apps_type_tell_what_is_permitted() {
        use AppRights::*;
        let plain = "    pkgFlags=[ HAS_CODE ALLOW_BACKUP ]\r\n    privatePkgFlags=[ HAS_DOMAIN_URLS ]\r\n";
        let debuggable = "    flags=[ DEBUGGABLE HAS_CODE ]\n";
        let by_flag = "    flags=[ HAS_CODE ]\n    privateFlags=[ PRIVATE_FLAG_PROFILEABLE_BY_SHELL ]\n";
        for (text, build, sdk, rights) in [
            (format!("debuggable=0\r\ntype=\r\n{plain}"), "user", 28, Refused),
            // Android 10 and 11 may be silent about profileable apps.
            (format!("debuggable=0\ntype=\n{plain}"), "user", 30, Unknown),
            (format!("debuggable=0\ntype=non_profileable\n{plain}"), "user", 35, Refused),
            (format!("debuggable=0\ntype=profileable\n{plain}"), "user", 35, Profileable),
            (format!("debuggable=0\ntype=\n{by_flag}"), "user", 29, Profileable),
            (format!("debuggable=0\ntype=\n{debuggable}"), "user", 21, Debuggable),
            (format!("debuggable=1\ntype=\n{plain}"), "user", 30, DebuggableBuild),
            (format!("debuggable=\ntype=\n{plain}"), "userdebug", 30, DebuggableBuild),
            ("debuggable=\ntype=\n".to_owned(), "", 0, Unknown),
        ] {
            assert_eq!(AppRights::parse(&text, build, Some(sdk)), rights, "{text}{build} {sdk}");
        }
    }
}
