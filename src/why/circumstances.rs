//! What else went on while an app was launched: Perfetto's reasons for a slow start
//! (`metrics/android/startup/slow_start_reasons.sql`), with a size in place of a threshold.

use super::model::{Model, Slice, State};
use super::spans::SpanAsked;

/// Something that went on during a launch. It may overlap the causes, and other circumstances.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Circumstance {
    /// The name in JSON: `gc`, `jit`, `dex2oat`.
    pub name: &'static str,
    /// For people.
    #[serde(skip)]
    pub words: &'static str,
    /// How long together, ns.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

/// A kind of slice: its name, words, whether the main thread's slices count alone, and how the slices are
/// called.
struct SliceKind {
    name: &'static str,
    words: &'static str,
    main_only: bool,
    fits: fn(&str) -> bool,
}

const SLICES: &[SliceKind] = &[
    SliceKind {
        name: "gc",
        words: "garbage collections of the app",
        main_only: false,
        fits: |name| name.ends_with(" GC"),
    },
    SliceKind {
        name: "jit",
        words: "methods compiled by the app",
        main_only: false,
        fits: |name| name.starts_with("JIT compiling"),
    },
    SliceKind {
        name: "bind_application",
        words: "bindApplication",
        main_only: true,
        fits: |name| name == "bindApplication",
    },
    SliceKind { name: "inflate", words: "views inflated", main_only: true, fits: |name| name == "inflate" },
    SliceKind {
        name: "resources",
        words: "ResourcesManager#getResources",
        main_only: true,
        fits: |name| name.starts_with("ResourcesManager#getResources"),
    },
    SliceKind {
        name: "verify_class",
        words: "classes verified",
        main_only: true,
        fits: |name| name.starts_with("VerifyClass"),
    },
    SliceKind {
        name: "open_dex_files",
        words: "OpenDexFilesFromOat",
        main_only: true,
        fits: |name| name.starts_with("OpenDexFilesFromOat"),
    },
    SliceKind {
        name: "no_profile",
        words: "dex files that were not compiled with a profile",
        main_only: true,
        fits: |name| {
            name.starts_with("location=")
                && name.contains("status=")
                && !name.contains("filter=speed-profile")
        },
    },
    SliceKind {
        name: "art_lock",
        words: "contended locks of ART",
        main_only: true,
        fits: |name| name.starts_with("Lock contention on"),
    },
    SliceKind {
        name: "monitor",
        words: "contended monitors",
        main_only: true,
        fits: |name| {
            name.starts_with("monitor contention with")
                || name.starts_with("Lock contention on a monitor lock")
        },
    },
    SliceKind {
        name: "binder",
        words: "binder calls",
        main_only: true,
        fits: |name| name == "binder transaction",
    },
    SliceKind {
        name: "broadcast_dispatched",
        words: "broadcasts dispatched",
        main_only: false,
        fits: |name| name.starts_with("Broadcast dispatched"),
    },
    SliceKind {
        name: "broadcast_received",
        words: "broadcast receivers run",
        main_only: false,
        fits: |name| name.starts_with("broadcastReceiveReg"),
    },
    SliceKind {
        name: "unlock",
        words: "the device was unlocked meanwhile",
        main_only: false,
        fits: |name| name.starts_with("KeyguardUpdateMonitor#onAuthenticationSucceeded"),
    },
];

/// Processes of the system that take CPU and disk from a launch.
const PROCESSES: &[(&str, &str, &str)] =
    &[("dex2oat", "dex2oat", "dex2oat ran"), ("installd", "installd", "installd ran")];

impl Model {
    /// What else went on during a span of the app whose main thread this is.
    pub(super) fn circumstances(&self, main_tid: i32, span: &SpanAsked) -> Vec<Circumstance> {
        let mut found = Vec::new();
        let within = |slice: &&Slice| slice.start < span.end && slice.end > span.begin;
        let clipped = |slice: &Slice| slice.end.min(span.end).saturating_sub(slice.start.max(span.begin));
        for kind in SLICES {
            let (mut ns, mut count) = (0, 0);
            for (tid, thread) in &self.threads {
                let is_app =
                    if kind.main_only { *tid == main_tid } else { self.process(*tid) == Some(main_tid) };
                let is_system = matches!(kind.name, "broadcast_dispatched" | "unlock");
                if is_app || is_system {
                    let fitting = thread.slices.list.iter().filter(within);
                    for slice in fitting.filter(|slice| (kind.fits)(self.names.text(slice.name))) {
                        ns += clipped(slice);
                        count += 1;
                    }
                }
            }
            if count > 0 {
                found.push(Circumstance { name: kind.name, words: kind.words, ns, count });
            }
        }
        for (name, process, words) in PROCESSES {
            let (mut ns, mut count) = (0, 0);
            for (tid, thread) in &self.threads {
                let pid = self.process(*tid).unwrap_or(*tid);
                if !self.tasks.process_name(pid).contains(process)
                    && !self.tasks.thread_name(*tid).contains(process)
                {
                    continue;
                }
                for (at, change) in thread.changes.iter().enumerate() {
                    let end = thread.changes.get(at + 1).map_or(span.end, |next| next.since).min(span.end);
                    let begin = change.since.max(span.begin);
                    if change.state == State::Running && begin < end {
                        ns += end - begin;
                        count += 1;
                    }
                }
            }
            if count > 0 {
                found.push(Circumstance { name, words, ns, count });
            }
        }
        if self.tasks.packages.get(&main_tid).is_some_and(|package| package.is_debuggable) {
            found.push(Circumstance {
                name: "debuggable",
                words: "the app is debuggable, for which ART runs slower code",
                ns: span.end.saturating_sub(span.begin),
                count: 1,
            });
        }
        let others = self.measured.launches.iter().filter(|other| {
            other.main_tid != Some(main_tid) && other.begin < span.end && other.end > span.begin
        });
        let others: Vec<u64> =
            others.map(|other| other.end.min(span.end) - other.begin.max(span.begin)).collect();
        if !others.is_empty() {
            let ns = others.iter().sum();
            found.push(Circumstance {
                name: "other_launch",
                words: "another app was launched meanwhile",
                ns,
                count: others.len() as u64,
            });
        }
        found
    }
}
