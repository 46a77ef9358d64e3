//! Circumstances of the launch of an app: Perfetto's reasons for a slow start
//! (`metrics/android/startup/slow_start_reasons.sql`), with a size in place of a threshold.

use super::model::{Model, SchedState};
use super::slices::Slice;
use super::spans::SpanAsked;

use crate::ids::{Pid, Tid};

/// Something that went on during a launch. It may overlap the causes, and other circumstances.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
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

/// The threads whose slices count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SliceThreads {
    /// The app's main thread.
    Main,
    /// All threads of the app.
    App,
    /// All threads of the machine.
    All,
}

/// A circumstance that slices show.
struct SliceKind {
    name: &'static str,
    words: &'static str,
    threads: SliceThreads,
    /// Whether a slice of this name is one of the kind.
    fits: fn(&str) -> bool,
}

/// A process of the system that takes CPU and disk from a launch.
struct SystemProcess {
    /// The name in JSON, and a part of the names of its threads.
    name: &'static str,
    words: &'static str,
}

const SLICES: &[SliceKind] = &[
    SliceKind {
        name: "gc",
        words: "garbage collections of the app",
        threads: SliceThreads::App,
        fits: |name| name.ends_with(" GC"),
    },
    SliceKind {
        name: "jit",
        words: "methods compiled by the app",
        threads: SliceThreads::App,
        fits: |name| name.starts_with("JIT compiling"),
    },
    SliceKind {
        name: "bind_application",
        words: "bindApplication",
        threads: SliceThreads::Main,
        fits: |name| name == "bindApplication",
    },
    SliceKind {
        name: "inflate",
        words: "views inflated",
        threads: SliceThreads::Main,
        fits: |name| name == "inflate",
    },
    SliceKind {
        name: "resources",
        words: "ResourcesManager#getResources",
        threads: SliceThreads::Main,
        fits: |name| name.starts_with("ResourcesManager#getResources"),
    },
    SliceKind {
        name: "verify_class",
        words: "classes verified",
        threads: SliceThreads::Main,
        fits: |name| name.starts_with("VerifyClass"),
    },
    SliceKind {
        name: "open_dex_files",
        words: "OpenDexFilesFromOat",
        threads: SliceThreads::Main,
        fits: |name| name.starts_with("OpenDexFilesFromOat"),
    },
    SliceKind {
        name: "no_profile",
        words: "dex files that were not compiled with a profile",
        threads: SliceThreads::Main,
        fits: |name| {
            name.starts_with("location=")
                && name.contains("status=")
                && !name.contains("filter=speed-profile")
        },
    },
    SliceKind {
        name: "art_lock",
        words: "contended locks of ART",
        threads: SliceThreads::Main,
        fits: |name| name.starts_with("Lock contention on"),
    },
    SliceKind {
        name: "monitor",
        words: "contended monitors",
        threads: SliceThreads::Main,
        fits: |name| {
            name.starts_with("monitor contention with")
                || name.starts_with("Lock contention on a monitor lock")
        },
    },
    SliceKind {
        name: "binder",
        words: "binder calls",
        threads: SliceThreads::Main,
        fits: |name| name == "binder transaction",
    },
    SliceKind {
        name: "broadcast_dispatched",
        words: "broadcasts dispatched",
        threads: SliceThreads::All,
        fits: |name| name.starts_with("Broadcast dispatched"),
    },
    SliceKind {
        name: "broadcast_received",
        words: "broadcast receivers run",
        threads: SliceThreads::App,
        fits: |name| name.starts_with("broadcastReceiveReg"),
    },
    SliceKind {
        name: "unlock",
        words: "the device was unlocked meanwhile",
        threads: SliceThreads::All,
        fits: |name| name.starts_with("KeyguardUpdateMonitor#onAuthenticationSucceeded"),
    },
];

const PROCESSES: &[SystemProcess] = &[
    SystemProcess { name: "dex2oat", words: "dex2oat ran" },
    SystemProcess { name: "installd", words: "installd ran" },
];

impl Model {
    /// The circumstances of a span of the app whose main thread this is.
    pub(super) fn circumstances(&self, main_tid: Tid, span: &SpanAsked) -> Vec<Circumstance> {
        let app = Pid::of_main_thread(main_tid);
        let mut found = Vec::new();
        let within = |slice: &&Slice| slice.start < span.end && slice.end > span.begin;
        let clipped = |slice: &Slice| slice.end.min(span.end).since(slice.start.max(span.begin));
        for kind in SLICES {
            let mut ns = 0;
            let mut count = 0;
            for (tid, thread) in &self.threads {
                let counts = match kind.threads {
                    SliceThreads::Main => *tid == main_tid,
                    SliceThreads::App => self.process(*tid) == Some(app),
                    SliceThreads::All => true,
                };
                if counts {
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
        for SystemProcess { name, words } in PROCESSES {
            let mut ns = 0;
            let mut count = 0;
            for (tid, thread) in &self.threads {
                if !self.tasks.process_name(self.tasks.task(*tid).process()).contains(name)
                    && !self.tasks.thread_name(*tid).contains(name)
                {
                    continue;
                }
                for (at, change) in thread.changes.iter().enumerate() {
                    let end = thread.changes.get(at + 1).map_or(span.end, |next| next.since).min(span.end);
                    let begin = change.since.max(span.begin);
                    if change.state == SchedState::Running && begin < end {
                        ns += end - begin;
                        count += 1;
                    }
                }
            }
            if count > 0 {
                found.push(Circumstance { name, words, ns, count });
            }
        }
        found.extend(self.method_records(main_tid, span));
        if self.tasks.packages.get(&app).is_some_and(|package| package.is_debuggable) {
            found.push(Circumstance {
                name: "debuggable",
                words: "the app is debuggable, for which ART runs slower code",
                ns: span.end.since(span.begin),
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

    /// The begins and ends of calls that the main thread recorded, and the least that this took: for each the
    /// thread read its clock. `None` where the method trace does not tell how long a reading takes.
    fn method_records(&self, main_tid: Tid, span: &SpanAsked) -> Option<Circumstance> {
        let thread = self.threads.get(&main_tid).filter(|thread| thread.call_edge_ns > 0)?;
        let edges = thread.calls.list.iter().flat_map(|call| [call.start, call.end]);
        let count = edges.filter(|ts| (span.begin..=span.end).contains(ts)).count() as u64;
        (count > 0).then(|| Circumstance {
            name: "method_records",
            words: "records of methods, for which the clock was read",
            ns: count.saturating_mul(thread.call_edge_ns),
            count,
        })
    }
}
