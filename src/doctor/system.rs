//! Who asks, and what machine this is.

use std::fs;

use serde::Serialize;

use crate::android::Properties;

/// Android's kinds of users, as far as recording is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// uid 0.
    Root,
    /// uid 2000, what `adb shell` is.
    Shell,
    /// An app's uid: from 10000 on, in each of Android's users.
    App,
    /// Anybody else.
    User,
}

/// Who asks.
#[derive(Debug, Clone, Serialize)]
pub struct Identity {
    /// The effective user id.
    pub uid: u32,
    /// The groups, the effective one included.
    pub groups: Vec<u32>,
    /// What kind of user that is.
    pub who: Who,
    /// The SELinux domain (`u:r:shell:s0`), where there is SELinux.
    pub domain: Option<String>,
    /// Whether SELinux forbids, and does not merely log.
    pub selinux_enforcing: bool,
}

impl Identity {
    /// This process.
    pub fn here() -> Identity {
        let uid = nix::unistd::geteuid().as_raw();
        let mut groups: Vec<u32> =
            nix::unistd::getgroups().unwrap_or_default().iter().map(|g| g.as_raw()).collect();
        groups.push(nix::unistd::getegid().as_raw());
        let android = Properties::here().is_some();
        let who = match uid {
            0 => Who::Root,
            2000 if android => Who::Shell,
            // 100000 ids a user, apps from 10000 on.
            uid if android && uid % 100_000 >= 10_000 => Who::App,
            _ => Who::User,
        };
        let domain = fs::read_to_string("/proc/self/attr/current")
            .ok()
            .map(|d| d.trim_end_matches(['\0', '\n']).to_owned())
            .filter(|d| d.split(':').count() >= 3);
        Identity { uid, groups, who, domain, selinux_enforcing: selinux_enforcing() }
    }

    /// Whether owners and modes do not matter.
    pub fn is_root(&self) -> bool {
        self.who == Who::Root
    }
}

fn selinux_enforcing() -> bool {
    match fs::read_to_string("/sys/fs/selinux/enforce") {
        Ok(text) => text.trim() == "1",
        // Apps may not read it, and a device on which that is so enforces.
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// What machine this is.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The kernel's release (`6.6.30-android15`).
    pub kernel: String,
    /// The kernel's architecture (`aarch64`).
    pub arch: String,
    /// This binary's ABI, by Android's name.
    pub abi: &'static str,
    /// CPUs online.
    pub cpus: usize,
    /// Bytes per page.
    pub page_size: usize,
    /// Android's release, SDK and build type (`15 (SDK 35), userdebug`); absent on another Linux.
    pub android: Option<String>,
}

impl Machine {
    /// This machine.
    pub fn here(properties: Option<&Properties>) -> Machine {
        let uname = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let android = properties.and_then(|p| {
            let get = |name| p.get(name).ok().filter(|v| !v.is_empty());
            let (release, sdk) = (get("ro.build.version.release")?, get("ro.build.version.sdk")?);
            Some(format!("{release} (SDK {sdk}), {}", get("ro.build.type").unwrap_or_default()))
        });
        Machine {
            kernel: text(uname.as_ref().map(|u| u.release())),
            arch: text(uname.as_ref().map(|u| u.machine())),
            abi: abi(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            page_size: nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .map_or(0, |n| n as usize),
            android,
        }
    }
}

fn abi() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64-v8a",
        "arm" => "armeabi-v7a",
        other => other,
    }
}
