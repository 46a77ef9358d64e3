//! The machine that the command runs on.

use serde::Serialize;

use crate::android::Properties;

/// The machine that this process runs on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MachineInfo {
    /// The kernel's release (`6.6.30-android15`).
    pub(crate) kernel: String,
    /// The kernel's architecture (`aarch64`).
    pub(crate) arch: String,
    /// Android's name of the ABI that this binary was built for.
    pub(crate) abi: &'static str,
    /// The number of CPUs that this process may use.
    pub(crate) cpus: usize,
    /// The size of a memory page, bytes.
    pub(crate) page_size: usize,
    /// Android's release, SDK level and build type (`15 (SDK 35), userdebug`); `None` on other systems.
    pub(crate) android: Option<String>,
}

impl MachineInfo {
    /// Describes this machine.
    pub(crate) fn here(properties: Option<&Properties>) -> MachineInfo {
        let uname = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let android = properties.and_then(|p| {
            let get = |name| p.get(name).ok().filter(|v| !v.is_empty());
            let (release, sdk) = (get("ro.build.version.release")?, get("ro.build.version.sdk")?);
            Some(format!("{release} (SDK {sdk}), {}", get("ro.build.type").unwrap_or_default()))
        });
        MachineInfo {
            kernel: text(uname.as_ref().map(|u| u.release())),
            arch: text(uname.as_ref().map(|u| u.machine())),
            abi: android_abi(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            page_size: nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .map_or(0, |n| n as usize),
            android,
        }
    }
}

fn android_abi() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64-v8a",
        "arm" => "armeabi-v7a",
        other => other,
    }
}
