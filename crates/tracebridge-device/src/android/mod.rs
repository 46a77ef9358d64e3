//! Android's own services as the recorder uses them: system properties, the activity manager, and the
//! user that the process runs as.

pub(crate) mod activity_manager;
pub(crate) mod atrace_properties;
mod properties;
pub(crate) mod simpleperf;

use std::fs;

use serde::Serialize;

pub(crate) use atrace_properties::{NO_PROPERTIES, SavedProperties, UserspaceRequest, UserspaceTags};
pub(crate) use properties::{Properties, PropertyError, system_bin, use_android_root};
pub(crate) use tracebridge_core::android::{methods_refused, tags};

/// uid of Android's `shell` user.
const SHELL_UID: u32 = 2000;
/// Android gives each of its users a range of this many uids.
const UIDS_PER_USER: u32 = 100_000;
/// The lowest uid of an app within the range of its user.
pub(crate) const FIRST_APP_UID: u32 = 10_000;

/// The kinds of users. Android gives each kind different permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum UserKind {
    /// uid 0.
    Root,
    /// uid 2000, the user of `adb shell`.
    Shell,
    /// The uid of an Android app.
    App,
    /// Any other user.
    User,
}

/// The user that this process runs as.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UserIdentity {
    /// The effective user id.
    pub(crate) uid: u32,
    /// The ids of all groups, the effective group included.
    pub(crate) groups: Vec<u32>,
    #[serde(rename = "who")]
    pub(crate) kind: UserKind,
    /// The SELinux domain (`u:r:shell:s0`), if there is SELinux.
    pub(crate) domain: Option<String>,
    /// Whether SELinux forbids what its policy does not allow. In permissive mode it only logs.
    pub(crate) selinux_enforcing: bool,
}

impl UserIdentity {
    /// The identity of this process.
    pub(crate) fn current() -> UserIdentity {
        let uid = nix::unistd::geteuid().as_raw();
        let mut groups: Vec<u32> =
            nix::unistd::getgroups().unwrap_or_default().iter().map(|g| g.as_raw()).collect();
        groups.push(nix::unistd::getegid().as_raw());
        let is_android = Properties::find().is_some();
        let kind = match uid {
            0 => UserKind::Root,
            SHELL_UID if is_android => UserKind::Shell,
            uid if is_android && uid % UIDS_PER_USER >= FIRST_APP_UID => UserKind::App,
            _ => UserKind::User,
        };
        let domain = fs::read_to_string("/proc/self/attr/current")
            .ok()
            .map(|d| d.trim_end_matches(['\0', '\n']).to_owned())
            .filter(|d| d.split(':').count() >= 3);
        UserIdentity { uid, groups, kind, domain, selinux_enforcing: selinux_enforcing() }
    }

    /// Whether owners and modes of files do not restrict this user.
    pub(crate) fn is_root(&self) -> bool {
        self.kind == UserKind::Root
    }
}

fn selinux_enforcing() -> bool {
    match fs::read_to_string("/sys/fs/selinux/enforce") {
        Ok(text) => text.trim() == "1",
        // Apps may not read the file. A device whose policy forbids that is in enforcing mode.
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}
