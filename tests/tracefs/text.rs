//! The product's systrace text against the kernel's own: an instance's `trace` file, and the pages of the
//! same buffer, which the test puts into a trace.dat.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracebridge::internals::{CpuData, Metadata, file_format::option};

use crate::support;
use crate::tracefs_fixture::machine;

/// An instance of the trace buffer that only this test uses; removed on drop.
struct Instance(PathBuf);

impl Instance {
    fn write(&self, knob: &str, value: &str) -> bool {
        fs::write(self.0.join(knob), value).is_ok()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.write("tracing_on", "0");
        self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.0);
    }
}

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

#[test]
fn the_text_of_a_recording_equals_the_kernels_own() {
    let Some(machine) = machine() else { return };
    let instance = Instance(machine.root.join(format!("instances/tracebridge-text-{}", std::process::id())));
    if let Err(error) = fs::create_dir(&instance.0) {
        return support::skip("tracefs", &format!("no instance: {error}"));
    }
    assert!(instance.write("buffer_size_kb", "8192"));
    assert!(instance.write("trace_clock", "boot"));
    assert!(instance.write("options/record-tgid", "1"));
    // With hash-ptr the kernel prints hashed pointers, which the pages do not hold.
    assert!(instance.write("options/hash-ptr", "0"));
    for system in SYSTEMS {
        instance.write(&format!("events/{system}/enable"), "1");
    }
    assert!(instance.write("tracing_on", "1"));
    for i in 0..100 {
        assert!(instance.write("trace_marker", &format!("B|{}|step {i}\n", std::process::id())));
        if i % 20 == 0 {
            Command::new("true").status().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(instance.write("trace_marker", "E\n"));
    }
    assert!(instance.write("tracing_on", "0"));
    let kernels = String::from_utf8_lossy(&fs::read(instance.0.join("trace")).unwrap()).into_owned();
    let dir = tempfile::tempdir().unwrap();
    let dat = dir.path().join("it.dat");
    fs::write(&dat, trace_dat(&machine.root, &instance.0, 4096)).unwrap();
    let text = dir.path().join("it.txt");
    let done = support::tracebridge().arg("convert").arg(&dat).arg("-o").arg(&text).output().unwrap();
    assert!(text.exists(), "{}", String::from_utf8_lossy(&done.stderr));
    let ours = String::from_utf8_lossy(&fs::read(&text).unwrap()).into_owned();
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(str::to_owned).collect()
    };
    let (kernels, ours) = (lines(&kernels), lines(&ours));
    assert!(kernels.len() > 1000, "only {} events", kernels.len());
    assert_eq!(kernels.len(), ours.len());
    let mut unknown = 0;
    for (mine, want) in ours.iter().zip(&kernels) {
        // Only the running kernel can compute some addresses (`page=`). The rest of such a line must be the
        // same.
        if mine.contains("=?") {
            unknown += 1;
            let plain =
                |l: &str| l.split(' ').filter(|w| !w.starts_with("page=")).collect::<Vec<_>>().join(" ");
            assert_eq!(plain(mine), plain(want));
        } else {
            assert_eq!(mine, want.trim_end());
        }
    }
    // The number of events with such an address depends on what else the machine does.
    let whole = ours.len() - unknown;
    assert!(whole > 500, "only {whole} lines of {} without something unknown", ours.len());
}
