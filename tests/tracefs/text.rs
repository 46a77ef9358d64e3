//! The product's systrace text against the kernel's own: an instance's `trace` file, and the pages of the
//! same buffer, which the test puts into a trace.dat.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::Command;

use nix::time::{ClockId, clock_gettime};

use tracebridge::internals::{CpuData, Metadata, option};

use crate::tracefs_fixture::{Instance, Machine, machine};

const SYSTEMS: [&str; 9] =
    ["sched", "irq", "raw_syscalls", "timer", "workqueue", "kmem", "task", "signal", "ftrace"];

fn formats(events: &Path, system: &str) -> Vec<Vec<u8>> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(events.join(system)).unwrap().map(|e| e.unwrap().path().join("format")).collect();
    names.sort();
    names.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Reads a file with large reads: the kernel gives `header_page` to the first read only.
fn read_at_once(path: &Path) -> Vec<u8> {
    let Ok(mut file) = fs::File::open(path) else { return Vec::new() };
    let mut out = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while let Ok(len @ 1..) = file.read(&mut piece) {
        out.extend_from_slice(&piece[..len]);
    }
    out
}

/// Reads the pages that are in one CPU's buffer.
fn pages(instance: &Path, cpu: usize, page_size: usize) -> Vec<u8> {
    let raw = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let mut file = fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(raw).unwrap();
    let mut out = Vec::new();
    let mut page = vec![0; page_size];
    while let Ok(len) = file.read(&mut page) {
        if len == 0 {
            break;
        }
        page[len..].fill(0);
        out.extend_from_slice(&page);
    }
    out
}

/// A trace.dat with the content of the instance's buffer.
fn trace_dat(root: &Path, instance: &Path, page_size: usize) -> Vec<u8> {
    let read = |name: &str| read_at_once(&root.join(name));
    let systems = SYSTEMS.iter().filter(|s| **s != "ftrace");
    let metadata = Metadata {
        long_size: 8,
        page_size: page_size as u32,
        header_page: read("events/header_page"),
        header_event: read("events/header_event"),
        ftrace_formats: formats(&root.join("events"), "ftrace"),
        event_formats: systems.map(|s| (s.to_string(), formats(&root.join("events"), s))).collect(),
        kallsyms: fs::read("/proc/kallsyms").unwrap(),
        printk_formats: read("printk_formats"),
        comms: read("saved_cmdlines"),
        options: vec![(option::SAVED_TGIDS, read("saved_tgids"))],
        clock: b"[boot]".to_vec(),
        ..Metadata::default()
    };
    let cpus = fs::read_dir(instance.join("per_cpu")).unwrap().count();
    let data: Vec<Vec<u8>> = (0..cpus).map(|cpu| pages(instance, cpu, page_size)).collect();
    let empty = vec![CpuData { offset: 0, size: 0 }; cpus];
    let mut offset = metadata.v6(&empty).bytes.len().next_multiple_of(page_size) as u64;
    let mut table = Vec::new();
    for pages in &data {
        table.push(CpuData { offset, size: pages.len() as u64 });
        offset += pages.len() as u64;
    }
    let mut file = metadata.v6(&table).bytes;
    file.resize(file.len().next_multiple_of(page_size), 0);
    file.extend(data.concat());
    file
}

/// Kinds of events that the thread of the test causes, whatever else the machine does: also those that the
/// processor's timer and the child bring.
const OWN_KINDS: [&str; 9] = [
    "sched_switch",
    "softirq_entry",
    "sys_enter",
    "sys_exit",
    "hrtimer_start",
    "kmem_cache_alloc",
    "task_newtask",
    "signal_generate",
    "tracing_mark_write",
];

/// Writes a marker. The kernel refuses it when the buffer is full, which the rest of the machine may bring
/// about.
fn mark(instance: &Instance, marker: &str) {
    let _ = fs::write(instance.dir().join("trace_marker"), marker);
}

/// Has this thread cause events of all [`OWN_KINDS`]. Returns the process ids of its children.
fn cause_events(instance: &Instance) -> Vec<String> {
    let mut children = Vec::new();
    for i in 0..100 {
        mark(instance, &format!("B|{}|step {i}\n", std::process::id()));
        if i % 20 == 0 {
            let mut child = Command::new("true").spawn().unwrap();
            children.push(child.id().to_string());
            child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
        mark(instance, "E\n");
    }
    // So much time of the processor, however long that takes, is several ticks of its timer.
    let of_thread = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let end = of_thread() + Duration::from_millis(50);
    while of_thread() < end {
        std::hint::spin_loop();
    }
    children
}

/// The lines of events.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(str::to_owned).collect()
}

/// A line without the name of its thread, which takes 16 columns: thread id, process id, CPU, and so on.
fn behind_name(line: &str) -> &str {
    line.get(16..).and_then(|rest| rest.strip_prefix('-')).unwrap_or_else(|| panic!("no thread: {line}"))
}

/// How the kernel's text says that it does not know the process of a thread.
const UNKNOWN_PROCESS: &str = "(-------)";

/// A line as it is where the process of its thread is not known.
fn without_process(line: &str) -> String {
    let Some((before, rest)) = line.split_once('(') else { return line.to_owned() };
    let Some((_, behind)) = rest.split_once(')') else { return line.to_owned() };
    format!("{before}{UNKNOWN_PROCESS}{behind}")
}

/// A line without addresses that only the running kernel can compute (`page=`).
fn without_pages(line: &str) -> String {
    line.split(' ').filter(|word| !word.starts_with("page=")).collect::<Vec<_>>().join(" ")
}

/// Records events, of this thread and its children alone or of the whole machine, and compares the text with
/// the kernel's.
fn check_text(machine: &Machine, of_all: bool) {
    let instance = Instance::new("text").unwrap();
    instance.write("buffer_size_kb", if of_all { "2048" } else { "8192" });
    // Where the rest of the machine does so much that the buffer is full, it keeps the first events.
    instance.write("options/overwrite", "0");
    instance.write("trace_clock", "boot");
    instance.write("options/record-tgid", "1");
    // With hash-ptr the kernel prints hashed pointers, which the pages do not hold.
    instance.write("options/hash-ptr", "0");
    let own = nix::unistd::gettid().to_string();
    if !of_all {
        instance.write("options/event-fork", "1");
        instance.write("set_event_pid", &own);
    }
    for system in SYSTEMS.iter().filter(|system| **system != "ftrace") {
        // A kernel may lack some of them.
        let _ = fs::write(instance.dir().join(format!("events/{system}/enable")), "1");
    }
    instance.write("tracing_on", "1");
    let mut threads = cause_events(&instance);
    threads.push(own.clone());
    instance.write("tracing_on", "0");
    // With the events off, the kernel remembers no further name of a process.
    instance.write("events/enable", "0");
    let kernels = lines(&fs::read(instance.dir().join("trace")).unwrap());
    // After a fault of the kernel (see `record-tgid` in the recorder) it remembers no thread until it boots
    // again.
    let saved = fs::read_to_string(machine.root.join("saved_cmdlines")).unwrap();
    let remembers = saved.lines().any(|line| line.split(' ').next() == Some(&own));
    if !remembers {
        support::skip("names", "this machine's kernel remembers no threads: it has to boot again");
    }
    let dir = support::tempdir();
    let dat = dir.path().join("it.dat");
    fs::write(&dat, trace_dat(&machine.root, instance.dir(), 4096)).unwrap();
    let text = dir.path().join("it.txt");
    let done = support::tracebridge().arg("convert").arg(&dat).arg("-o").arg(&text).run();
    assert!(text.exists(), "{}", done.stderr);
    let ours = lines(&fs::read(&text).unwrap());
    assert!(kernels.len() > 1000, "only {} events", kernels.len());
    assert_eq!(kernels.len(), ours.len());
    let mut unknown = 0;
    let mut of_threads = Vec::new();
    for (mine, want) in ours.iter().zip(&kernels) {
        let thread = behind_name(want).split(' ').next().unwrap();
        // Others may get another name at any time. The kernel names them as they were called last; the file
        // has the name that they had in its events.
        let is_own = threads.iter().any(|one| one == thread);
        if is_own {
            of_threads.push(want.as_str());
        }
        let compared = |line| if is_own && remembers { line } else { behind_name(line) };
        let want = compared(want.trim_end()).to_owned();
        let mut mine = compared(mine).to_owned();
        if !remembers {
            mine = without_process(&mine);
        }
        if mine.contains("=?") {
            unknown += 1;
            assert_eq!(without_pages(&mine), without_pages(&want));
        } else {
            assert_eq!(mine, want);
        }
    }
    // The number of events with such an address depends on what else the machine does.
    let whole = ours.len() - unknown;
    assert!(whole > 500, "only {whole} lines of {} without something unknown", ours.len());
    if !of_all {
        assert!(of_threads.len() > 1000, "only {} events of this thread", of_threads.len());
        for kind in OWN_KINDS {
            assert!(of_threads.iter().any(|line| line.contains(&format!(": {kind}: "))), "no {kind}");
        }
    }
}

#[test]
fn the_text_of_a_recording_equals_the_kernels_own() {
    // Other recordings would have the kernel remember more names meanwhile.
    let Some(machine) = machine() else { return };
    check_text(&machine, false);
    check_text(&machine, true);
}
