//! Whose time a cause is: the app's code, other programs, the system, the hardware. It answers whether a span
//! took long because of the code or because of the phone.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::Cause;
use super::model::Model;
use super::waits::is_kernel_worker;
use crate::ids::Tid;

/// Programs that a line names.
const NAMED_PROGRAMS: usize = 2;

/// Whoever a cause's time belongs to, in the order in which lines name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Party {
    /// The span's own thread ran, or slept by itself.
    OwnCode,
    /// Another thread of the same process did.
    OwnThreads,
    OtherPrograms,
    SystemServices,
    /// Threads and drivers of the kernel, its choice of CPUs, and its limits of CPU time and memory.
    Kernel,
    Storage,
    Graphics,
    Network,
    Interrupts,
    Tracing,
    /// There was nothing to do.
    Idle,
    NotRecorded,
}

impl Party {
    pub fn words(self) -> &'static str {
        match self {
            Party::OwnCode => "your code",
            Party::OwnThreads => "your other threads",
            Party::OtherPrograms => "other programs",
            Party::SystemServices => "system services",
            Party::Kernel => "the kernel",
            Party::Storage => "storage",
            Party::Graphics => "graphics",
            Party::Network => "network",
            Party::Interrupts => "interrupts",
            Party::Tracing => "tracing",
            Party::Idle => "nothing to do",
            Party::NotRecorded => "not recorded",
        }
    }
}

/// The party of a cause, and the thread that stands for it: whoever ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartyOf {
    pub party: Party,
    pub thread: Option<Tid>,
}

/// The threads that tell whose time a cause is.
#[derive(Debug, Clone, Copy)]
pub(super) struct CauseThreads {
    /// The span's own thread.
    pub own: Tid,
    /// The thread in whose time the cause lies.
    pub at: Tid,
    /// The thread that had the CPU while that one was ready.
    pub ran: Option<Tid>,
}

impl Model {
    pub(super) fn party(&self, cause: Cause, threads: CauseThreads) -> PartyOf {
        let alone = |party| PartyOf { party, thread: None };
        match cause {
            Cause::Runnable => {
                threads.ran.map_or(alone(Party::Kernel), |ran| self.party_of_thread(threads.own, ran))
            }
            Cause::Running
            | Cause::SlowCpu
            | Cause::Gc
            | Cause::Jit
            | Cause::ClassLoading
            | Cause::Lock
            | Cause::Sleep => self.party_of_thread(threads.own, threads.at),
            Cause::Throttled | Cause::Reclaim | Cause::Kernel => alone(Party::Kernel),
            Cause::Disk | Cause::PageFault => alone(Party::Storage),
            Cause::Binder => alone(Party::SystemServices),
            Cause::Ipc => alone(Party::Network),
            Cause::OtherThread => alone(Party::OtherPrograms),
            Cause::Gpu => alone(Party::Graphics),
            Cause::Idle | Cause::Vsync => alone(Party::Idle),
            Cause::Interrupt => alone(Party::Interrupts),
            Cause::Tracing => alone(Party::Tracing),
            Cause::Start | Cause::Unexplained | Cause::NotRecorded => alone(Party::NotRecorded),
        }
    }

    /// Whose the time of a thread is, beside a span's own thread.
    fn party_of_thread(&self, own: Tid, tid: Tid) -> PartyOf {
        let process = self.process(tid);
        let name = self.tasks.thread_name(tid);
        let party = if tid == own {
            Party::OwnCode
        } else if self.is_recorder(tid) {
            Party::Tracing
        } else if process.is_some() && process == self.process(own) {
            Party::OwnThreads
        } else if is_kernel_worker(&name) {
            Party::Kernel
        } else if is_system_service(&self.process_name(tid)) || is_system_service(&name) {
            Party::SystemServices
        } else {
            Party::OtherPrograms
        };
        PartyOf { party, thread: Some(tid) }
    }
}

/// Names of processes of Android that serve apps, and of the system's own apps; the begins of others, which
/// end with `.`, `/` or `_`.
const SYSTEM_SERVICES: &[&str] = &[
    "init",
    "ueventd",
    "logd",
    "lmkd",
    "servicemanager",
    "hwservicemanager",
    "vndservicemanager",
    "vold",
    "installd",
    "netd",
    "zygote",
    "zygote64",
    "webview_zygote",
    "app_process",
    "system_server",
    "surfaceflinger",
    "audioserver",
    "cameraserver",
    "mediaserver",
    "drmserver",
    "keystore",
    "keystore2",
    "gatekeeperd",
    "statsd",
    "incidentd",
    "storaged",
    "tombstoned",
    "healthd",
    "gpuservice",
    "adbd",
    "wificond",
    "wpa_supplicant",
    "thermalserviced",
    "thermal-engine",
    "update_engine",
    "bootanimation",
    "dex2oat",
    "dex2oat32",
    "dex2oat64",
    "artd",
    "odrefresh",
    "profman",
    "idmap2d",
    "credstore",
    "rild",
    "bluetooth",
    "system",
    "ueventd",
    "systemd",
    "dbus-daemon",
    "composer",
    "heapprofd",
    "iorapd",
    "apexd",
    "media.",
    "android.",
    "vendor.",
    "com.android.",
    "com.google.android.gms",
    "systemd-",
    "/system/",
    "/vendor/",
    "/apex/",
    "qcom.",
    "mm-",
];

fn is_system_service(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    SYSTEM_SERVICES.iter().any(|service| {
        if service.ends_with(['.', '/', '-']) { name.starts_with(service) } else { file == *service }
    })
}

/// The time of one party in a span.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub(crate) struct PartyShare {
    pub party: Party,
    pub ns: u64,
    /// Of the span, from 0 to 1.
    pub share: f64,
    /// The programs of the party that took most; empty where the party says it all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// The time of each party: the party, the program, and the ns of each cause.
pub(super) fn shares<'a>(causes: impl Iterator<Item = (Party, &'a str, u64)>, whole: u64) -> Vec<PartyShare> {
    let mut parties: BTreeMap<Party, BTreeMap<&str, u64>> = BTreeMap::new();
    for (party, program, ns) in causes {
        *parties.entry(party).or_default().entry(program).or_default() += ns;
    }
    let share = |(party, programs): (Party, BTreeMap<&str, u64>)| {
        let ns = programs.values().sum();
        let mut programs: Vec<(&str, u64)> =
            programs.into_iter().filter(|(name, _)| !name.is_empty()).collect();
        programs.sort_by_key(|(_, ns)| Reverse(*ns));
        PartyShare {
            party,
            ns,
            share: if whole == 0 { 0.0 } else { ns as f64 / whole as f64 },
            programs: programs.iter().take(NAMED_PROGRAMS).map(|(name, _)| (*name).to_owned()).collect(),
        }
    };
    parties.into_iter().map(share).collect()
}

/// `your code 33 % · other programs 25 % (sh) · not recorded 0 %`. Parties that round to 0 % are left out.
pub(super) fn line(shares: &[PartyShare]) -> String {
    let one = |share: &PartyShare| {
        let programs = &share.programs;
        let names = if programs.is_empty() { String::new() } else { format!(" ({})", programs.join(", ")) };
        format!("{} {:.0} %{names}", share.party.words(), share.share * 100.0)
    };
    let is_shown = |share: &&PartyShare| share.share >= 0.005 && share.party != Party::NotRecorded;
    let mut texts: Vec<String> = shares.iter().filter(is_shown).map(one).collect();
    let unknown = shares.iter().find(|share| share.party == Party::NotRecorded);
    texts.push(unknown.map_or_else(|| format!("{} 0 %", Party::NotRecorded.words()), one));
    texts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_parties_in_one_order_with_the_programs_that_took_most() {
        let causes = [
            (Party::OtherPrograms, "sh", 150),
            (Party::OtherPrograms, "dd", 90),
            (Party::OtherPrograms, "tar", 10),
            (Party::OwnCode, "", 330),
            (Party::Tracing, "", 3),
        ];
        let shares = shares(causes.into_iter(), 1000);
        assert_eq!(line(&shares), "your code 33 % · other programs 25 % (sh, dd) · not recorded 0 %");
        assert!(is_system_service("system_server") && is_system_service("/system/bin/installd"));
        assert!(is_system_service("android.hardware.graphics.composer@2.1-service"));
        assert!(!is_system_service("com.example.app") && !is_system_service("initial"));
    }
}
