//! Collects the description of the recorded system for a capture's head: page layout, event formats, and the
//! names of threads and processes. Parts that are known only at the end have room in the head.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use super::tracefs::read_whole;
use super::tracefs_config::AppliedConfig;
use super::{EventName, RecordError, Tracefs};
use crate::ftrace::{Endian, PageLayout, builtin_formats};
use crate::ids::{Cpu, Pid, Tid};
use crate::trace_dat::{Metadata, RecorderInfo, RingsInfo, option, trace_clock_option};

/// The smallest page that a kernel's ring buffer can have, bytes.
const MIN_PAGE_BYTES: u32 = 512;
/// Bytes reserved in the head for names of threads that start during the recording. They suffice for the 8192
/// threads that the kernel remembers.
const SPARE_NAMES_BYTES: usize = 192 * 1024;
/// Bytes reserved in the head for clock snapshots, for processes that start during the recording, and for the
/// files that they map.
const SPARE_EXTRA_BYTES: usize = 128 * 1024;
/// Bytes reserved in the head for the `stats` of one CPU.
const STATS_SLOT_BYTES: usize = 384;

/// The contents of the head, with room for what is known only at the end. Its first option holds the tgids,
/// its last options hold the `stats` of each CPU. `shown` is the length of the table of CPUs.
pub(crate) fn head(
    tracefs: &Tracefs,
    applied: &AppliedConfig,
    kallsyms: bool,
    cpus: &[Cpu],
    shown: usize,
    device: Option<String>,
    names: &TaskNames,
) -> Result<Metadata, RecordError> {
    let spare = |mut known: Vec<u8>, padding: u8, spare: usize| {
        let len = known.len() + spare;
        known.reserve_exact(spare);
        known.resize(len, padding);
        known
    };
    let extra = RecorderInfo {
        restricted: names.restricted,
        device,
        processes: names.processes.clone(),
        rings: Some(RingsInfo {
            cpu: cpus.last().map_or(Cpu(0), |last| Cpu(last.count_if_last())),
            ..RingsInfo::default()
        }),
        ..RecorderInfo::default()
    }
    .to_json(usize::MAX);
    let text = |text: String| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (option::SAVED_TGIDS, spare(names.tgids(), b'\n', SPARE_NAMES_BYTES)),
        (option::UNAME, text(uname())),
        (option::VERSION, text(concat!("tracebridge ", env!("CARGO_PKG_VERSION")).to_owned())),
        (option::CPUCOUNT, (shown as u32).to_ne_bytes().to_vec()),
    ];
    options.extend(trace_clock_option(&tracefs.read("trace_clock")?));
    options.extend(cpus.iter().map(|_| {
        let mut stat = vec![b' '; STATS_SLOT_BYTES - 1];
        stat.push(0);
        (option::CPUSTAT, stat)
    }));
    Ok(Metadata {
        comms: spare(names.comms(), b'\n', SPARE_NAMES_BYTES),
        options,
        extra: spare(extra, b' ', SPARE_EXTRA_BYTES),
        ..gather(tracefs, &applied.events, kallsyms)?
    })
}

fn uname() -> String {
    let Ok(u) = nix::sys::utsname::uname() else { return String::new() };
    let part = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    [u.sysname(), u.nodename(), u.release(), u.machine()].map(part).join(" ")
}

/// Reads the layout of this kernel's ring-buffer pages.
pub(crate) fn page_layout(tracefs: &Tracefs) -> Result<PageLayout, RecordError> {
    // Instances have no such file. The file of the top-level buffer is valid for them too, except for the
    // size of a page.
    let path = tracefs.top().join("events/header_page");
    let text = read_whole(&path).map_err(|e| RecordError::knob(&path, "read", e))?;
    let layout = PageLayout::parse(&String::from_utf8_lossy(&text), Endian::NATIVE);
    let layout = layout.ok().filter(|layout| layout.size.is_power_of_two() && layout.size >= MIN_PAGE_BYTES);
    layout.ok_or_else(|| RecordError::Format { path, what: "not the page header of a ring buffer".into() })
}

/// Collects the part of the head that is known before the recording starts.
fn gather(tracefs: &Tracefs, events: &[EventName], kallsyms: bool) -> Result<Metadata, RecordError> {
    let top = tracefs.top();
    let read =
        |name: &str| read_whole(&top.join(name)).map_err(|e| RecordError::knob(&top.join(name), "read", e));
    let layout = page_layout(tracefs)?;
    let mut systems: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for event in events {
        match read(&format!("{}/format", event.dir())) {
            Ok(format) => systems.entry(&event.group).or_default().push(format),
            // Somebody else has switched the event on. Without its format its entries are counted, not read.
            Err(error) if error.is_denied() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Metadata {
        long_size: layout.commit_size as u8,
        page_size: layout.size,
        header_page: read("events/header_page")?,
        header_event: read("events/header_event").unwrap_or_default(),
        ftrace_formats: ftrace_formats(&top.join("events/ftrace"), layout.commit_size),
        event_formats: systems.into_iter().map(|(s, f)| (s.to_owned(), f)).collect(),
        kallsyms: if kallsyms {
            read_whole("/proc/kallsyms".as_ref()).unwrap_or_default()
        } else {
            Vec::new()
        },
        printk_formats: read("printk_formats").unwrap_or_default(),
        clock: tracefs.read_bytes("trace_clock")?,
        ..Metadata::default()
    })
}

/// The formats of the kernel's own entries. On a locked phone only `print` can be read; each further attempt
/// would be logged, so the first refusal ends them. In their place come the formats that no kernel has
/// changed, for entries that somebody else's tracer or `trace_printk` writes.
fn ftrace_formats(dir: &Path, long_size: u32) -> Vec<Vec<u8>> {
    let mut formats = Vec::new();
    // `print` comes first, because it may be the only one.
    let names = entry_names(dir);
    let (print, others): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| *name == "print");
    for name in print.into_iter().chain(others) {
        match read_whole(&dir.join(name).join("format")) {
            Ok(format) => formats.push(format),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let is_print_read = !formats.is_empty();
                let missing =
                    builtin_formats(long_size).into_iter().filter(|(n, _)| *n != "print" || !is_print_read);
                formats.extend(missing.map(|(_, text)| text.into_bytes()));
                break;
            }
            Err(_) => {}
        }
    }
    formats
}

fn entry_names(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir).map(|e| e.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let mut names: Vec<String> = entries.iter().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The names of threads and processes. The kernel may remember 32,768 threads and more, so threads that have
/// ended are kept as the kernel's own text.
#[derive(Debug, Default)]
pub(crate) struct TaskNames {
    /// Threads that are alive, or that told their names themselves: tid → (tgid, comm).
    living: BTreeMap<Tid, (Pid, Vec<u8>)>,
    /// The content of `saved_cmdlines`: lines `tid comm`.
    saved_comms: Vec<u8>,
    /// Threads that were alive when the recording began: tid → (tgid, comm).
    living_before: BTreeMap<Tid, (Pid, Vec<u8>)>,
    /// Each process as (pid, parent's pid, full name). The full name is the first word of the command line
    /// or, for a kernel thread, the comm.
    pub(crate) processes: Vec<(Pid, Pid, String)>,
    /// The ids of living threads that are not the kernel's own.
    pub(crate) program_threads: Vec<Tid>,
    /// Whether this user may not read the kernel's lists.
    pub(crate) restricted: bool,
}

impl TaskNames {
    /// Collects the living threads from `/proc` and the ended ones that the kernel remembers.
    /// A `restricted` user may not read the kernel's memory.
    pub(crate) fn gather(tracefs: &Tracefs, restricted: bool) -> TaskNames {
        let saved_comms = (!restricted).then(|| read_whole(&tracefs.top().join("saved_cmdlines")).ok());
        let mut names = TaskNames {
            saved_comms: saved_comms.flatten().unwrap_or_default(),
            restricted,
            ..TaskNames::default()
        };
        names.add_living();
        names
    }

    /// Adds threads that wrote markers into rings, as id, process and name. A thread that is alive keeps the
    /// name that it has now.
    pub(crate) fn add_ended(&mut self, threads: Vec<(Tid, Pid, Vec<u8>)>) {
        for (tid, pid, mut comm) in threads {
            comm.retain(|byte| *byte != b'\n');
            self.living.entry(tid).or_insert((pid, comm));
        }
    }

    /// Adds the threads and processes that have ended since the beginning of the recording, when `before` was
    /// gathered.
    pub(crate) fn add_living_before(&mut self, before: TaskNames) {
        let living: BTreeSet<Pid> = self.processes.iter().map(|(pid, ..)| *pid).collect();
        self.processes.extend(before.processes.into_iter().filter(|(pid, ..)| !living.contains(pid)));
        self.living_before = before.living;
    }

    fn add_living(&mut self) {
        for pid in entry_names("/proc".as_ref()).iter().filter_map(|n| n.parse::<Pid>().ok()) {
            let Ok(stat) = read_whole(format!("/proc/{pid}/stat").as_ref()) else { continue };
            let Some(stat) = ProcessStat::parse(&stat) else { continue };
            self.living.insert(pid.main_thread(), (pid, stat.comm.to_vec()));
            if !stat.is_kernel_thread {
                self.program_threads.push(pid.main_thread());
            }
            if stat.threads > 1 {
                self.add_threads(pid);
            }
            let cmdline = if stat.is_kernel_thread {
                Vec::new()
            } else {
                read_whole(format!("/proc/{pid}/cmdline").as_ref()).unwrap_or_default()
            };
            let first = cmdline.split(|b| *b == 0).next().filter(|w| !w.is_empty()).unwrap_or(stat.comm);
            let name = String::from_utf8_lossy(&first[..first.len().min(128)]).into_owned();
            self.processes.push((pid, stat.ppid, name));
        }
    }

    fn add_threads(&mut self, pid: Pid) {
        let task = format!("/proc/{pid}/task");
        for tid in entry_names(task.as_ref()).iter().filter_map(|n| n.parse::<Tid>().ok()) {
            let Ok(mut comm) = read_whole(format!("{task}/{tid}/comm").as_ref()) else { continue };
            comm.truncate(comm.iter().position(|b| *b == b'\n').unwrap_or(comm.len()));
            self.living.insert(tid, (pid, comm));
            if !tid.is_main_of(pid) {
                self.program_threads.push(tid);
            }
        }
    }

    /// Lines `tid comm`, as in the kernel's `saved_cmdlines`.
    pub(crate) fn comms(&self) -> Vec<u8> {
        // The kernel's name of a thread that has ended is a later one than that at the beginning.
        let saved = lines_by_tid(&self.saved_comms);
        let mut out = self.lines_of_living(|(_, comm)| comm.clone());
        out.extend(
            saved.iter().filter(|(tid, _)| !self.living.contains_key(tid)).flat_map(|(_, line)| *line),
        );
        for (tid, (_, comm)) in &self.living_before {
            if !self.living.contains_key(tid) && !saved.contains_key(tid) {
                out.extend([format!("{tid} ").as_bytes(), comm, b"\n"].concat());
            }
        }
        out
    }

    /// Lines `tid tgid`, as in the kernel's `saved_tgids`, which is not read: it keeps the processes of
    /// earlier threads with the same ids.
    pub(crate) fn tgids(&self) -> Vec<u8> {
        let mut out = self.lines_of_living(|(tgid, _)| tgid.to_string().into_bytes());
        for (tid, (tgid, _)) in &self.living_before {
            if !self.living.contains_key(tid) {
                out.extend(format!("{tid} {tgid}\n").into_bytes());
            }
        }
        out
    }

    /// One line per living thread.
    fn lines_of_living(&self, value: impl Fn(&(Pid, Vec<u8>)) -> Vec<u8>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.saved_comms.len() + self.living.len() * 16);
        for (tid, thread) in &self.living {
            out.extend([format!("{tid} ").as_bytes(), &value(thread), b"\n"].concat());
        }
        out
    }
}

/// The kernel's lines about threads, by thread id. The kernel writes `<...>` for a name that it does not
/// know.
fn lines_by_tid(text: &[u8]) -> BTreeMap<Tid, &[u8]> {
    let lines = text.split_inclusive(|b| *b == b'\n');
    let known = lines.filter_map(|line| tid_and_rest(line).map(|(tid, rest)| (tid, rest, line)));
    let known = known.filter(|(tid, rest, _)| tid.is_thread() && !rest.starts_with(b"<...>"));
    known.map(|(tid, _, line)| (tid, line)).collect()
}

/// The facts about a process that `/proc/PID/stat` has (proc_pid_stat(5)). This one file takes the place of
/// three for a kernel thread, and of two for a process with one thread.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat<'a> {
    comm: &'a [u8],
    ppid: Pid,
    is_kernel_thread: bool,
    threads: u32,
}

impl ProcessStat<'_> {
    /// PF_KTHREAD of the kernel's `include/linux/sched.h`.
    const KERNEL_THREAD: u32 = 0x0020_0000;

    /// The line is `pid (comm) state ppid …`, and the comm may itself contain `)`.
    fn parse(line: &[u8]) -> Option<ProcessStat<'_>> {
        let comm_start = line.iter().position(|b| *b == b'(')? + 1;
        let comm_end = line.iter().rposition(|b| *b == b')')?;
        let comm = line.get(comm_start..comm_end)?;
        // By their numbers in proc_pid_stat(5), where the state is field 3.
        let fields: Vec<&str> = std::str::from_utf8(&line[comm_end + 1..]).ok()?.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(ProcessStat {
            comm,
            ppid: field(4)?.parse().ok()?,
            is_kernel_thread: field(9)?.parse::<u32>().ok()? & ProcessStat::KERNEL_THREAD != 0,
            threads: field(20)?.parse().ok()?,
        })
    }
}

fn tid_and_rest(line: &[u8]) -> Option<(Tid, &[u8])> {
    let space = line.iter().position(|b| *b == b' ').unwrap_or(line.len());
    let tid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
    Some((tid, line.get(space + 1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_of_the_kernels_own_files() {
        let names = TaskNames {
            living: BTreeMap::from([(Tid(7), (Pid(5), b"a b".to_vec()))]),
            living_before: BTreeMap::from([
                (Tid(7), (Pid(6), b"before".to_vec())),
                (Tid(9), (Pid(8), b"before".to_vec())),
                (Tid(10), (Pid(8), b"ended".to_vec())),
            ]),
            saved_comms: b"7 old\n9 gone\n10 <...>\n".to_vec(),
            ..TaskNames::default()
        };
        assert_eq!(String::from_utf8(names.comms()).unwrap(), "7 a b\n9 gone\n10 ended\n");
        assert_eq!(String::from_utf8(names.tgids()).unwrap(), "7 5\n9 8\n10 8\n");
    }

    #[test]
    fn a_process_that_has_ended_keeps_its_name_where_a_thread_has_its_number_now() {
        let process = |pid, name: &str| (Pid(pid), Pid(1), name.to_owned());
        let before = TaskNames {
            processes: vec![process(5, "app"), process(9, "ended")],
            living: BTreeMap::from([(Tid(5), (Pid(5), b"app".to_vec())), (Tid(9), (Pid(9), b"e".to_vec()))]),
            ..TaskNames::default()
        };
        let mut names = TaskNames {
            processes: vec![process(5, "app")],
            living: BTreeMap::from([(Tid(5), (Pid(5), b"app".to_vec())), (Tid(9), (Pid(5), b"w".to_vec()))]),
            ..TaskNames::default()
        };
        names.add_living_before(before);
        assert_eq!(names.processes, [process(5, "app"), process(9, "ended")]);
        assert_eq!(String::from_utf8(names.tgids()).unwrap(), "5 5\n9 5\n");
    }

    #[test]
    fn a_stat_line_is_read_around_a_comm_with_parentheses() {
        let line = b"42 (a (b) c)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 100 200\n";
        let stat = ProcessStat { comm: b"a (b) c)", ppid: Pid(7), is_kernel_thread: false, threads: 3 };
        assert_eq!(ProcessStat::parse(line), Some(stat));
        let line = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n";
        let stat = ProcessStat { comm: b"kthreadd", ppid: Pid(0), is_kernel_thread: true, threads: 1 };
        assert_eq!(ProcessStat::parse(line), Some(stat));
        for cut in 0..line.len() - 12 {
            assert_eq!(ProcessStat::parse(&line[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn this_process_has_the_names_that_proc_gives_it() {
        let pid = Pid(std::process::id() as i32);
        let other = std::thread::Builder::new().name("a thread (x)".into());
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = std::sync::mpsc::channel();
        let other = other
            .spawn(move || {
                begun.send(()).unwrap();
                wait.recv().ok()
            })
            .unwrap();
        // The thread gives itself its name before it calls the closure.
        begins.recv().unwrap();
        let mut names = TaskNames::default();
        names.add_living();
        let comm = |tid: Tid| fs::read_to_string(format!("/proc/{tid}/comm")).unwrap().trim_end().to_owned();
        let named =
            |tid: Tid| names.living.get(&tid).map(|(pid, c)| (*pid, String::from_utf8_lossy(c).into_owned()));
        assert_eq!(named(pid.main_thread()), Some((pid, comm(pid.main_thread()))));
        assert!(names.living.values().any(|(tgid, c)| *tgid == pid && c == b"a thread (x)"));
        let parent = Pid(std::os::unix::process::parent_id() as i32);
        let argument = std::env::args().next().unwrap();
        let of_this = names.processes.iter().find(|(p, _, _)| *p == pid).unwrap();
        assert_eq!(*of_this, (pid, parent, argument.chars().take(128).collect()));
        drop(done);
        other.join().unwrap();
    }
}
