//! Reads the facts about this machine that no event tells: the speed of its CPUs, groups with a quota of CPU
//! time, threads that may not use every CPU, and files that new processes have mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};

use super::tracefs::read_whole;
use crate::ids::{Cpu, Pid, Tid};
use crate::trace_dat::{Affinity, CpuQuota, CpuSpeed, MachineFacts, MappedInode};

/// The most control groups that are read: Android has one for each process.
const MAX_GROUPS: usize = 4096;
/// The most processes whose mapped files are read, and the most files that are kept.
const MAX_NEW_PROCESSES: usize = 64;
const MAX_FILES: usize = 1500;

/// Reads the facts that are known before the recording starts.
pub(super) fn begin() -> MachineFacts {
    let recorder = Pid::try_from(i64::from(std::process::id())).ok();
    MachineFacts { cpus: cpu_speeds(), quotas: quotas(), recorder, ..MachineFacts::default() }
}

/// Completes the facts of [`begin`] at the end of the recording. `threads` are the threads of programs,
/// `new_processes` the processes that were started meanwhile.
pub(super) fn end(begun: MachineFacts, threads: &[Tid], new_processes: &[Pid]) -> MachineFacts {
    let before: BTreeMap<(u32, String), CpuQuota> =
        begun.quotas.into_iter().map(|quota| ((quota.hierarchy, quota.path.clone()), quota)).collect();
    let mut quotas = quotas();
    for quota in &mut quotas {
        if let Some(before) = before.get(&(quota.hierarchy, quota.path.clone())) {
            quota.throttled = quota.throttled.saturating_sub(before.throttled);
            quota.throttled_ns = quota.throttled_ns.saturating_sub(before.throttled_ns);
        }
    }
    MachineFacts {
        quotas,
        affinities: affinities(threads),
        files: mapped_files(new_processes),
        ..MachineFacts { quotas: Vec::new(), ..begun }
    }
}

fn text(path: &Path) -> Option<String> {
    read_whole(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    text(path)?.trim().parse().ok()
}

fn cpu_speeds() -> Vec<CpuSpeed> {
    let entries =
        fs::read_dir("/sys/devices/system/cpu").map(|entries| entries.flatten().collect::<Vec<_>>());
    let speed = |entry: fs::DirEntry| {
        let cpu = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
        let capacity = number(&entry.path().join("cpu_capacity"));
        let max_khz = number(&entry.path().join("cpufreq/cpuinfo_max_freq"));
        (capacity.is_some() || max_khz.is_some()).then_some(CpuSpeed { cpu, capacity, max_khz })
    };
    let mut speeds: Vec<CpuSpeed> = entries.unwrap_or_default().into_iter().filter_map(speed).collect();
    speeds.sort_unstable_by_key(|speed| speed.cpu);
    speeds
}

/// Where the kernel shows a hierarchy of control groups with the controller of CPU time.
struct Hierarchy {
    number: u32,
    root: PathBuf,
}

/// The hierarchies that may have quotas, from the texts of /proc/self/cgroup (lines `1:cpu,cpuacct:/path`)
/// and /proc/self/mounts (`device path type options 0 0`).
fn hierarchies(groups: &str, mounts: &str) -> Vec<Hierarchy> {
    let number = groups.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, _) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then(|| number.parse().ok())?
    });
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, root, kind, options, ..] = fields.as_slice() else { continue };
        let number = match *kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => number,
            "cgroup2" => Some(0),
            _ => None,
        };
        found.extend(number.map(|number| Hierarchy { number, root: PathBuf::from(root) }));
    }
    found
}

/// All control groups with a quota.
fn quotas() -> Vec<CpuQuota> {
    let read = |path: &str| text(path.as_ref()).unwrap_or_default();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for Hierarchy { number, root } in hierarchies(&read("/proc/self/cgroup"), &read("/proc/self/mounts")) {
        if !seen.insert(number) {
            continue;
        }
        let mut todo = vec![root.clone()];
        let mut count = 0;
        while let Some(dir) = todo.pop() {
            count += 1;
            if count > MAX_GROUPS {
                break;
            }
            found.extend(quota(number, &root, &dir));
            let entries = fs::read_dir(&dir).map(|entries| entries.flatten().collect::<Vec<_>>());
            let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            todo.extend(entries.unwrap_or_default().into_iter().filter(is_dir).map(|entry| entry.path()));
        }
    }
    found
}

/// The quota of the control group in `dir`, if it has one.
fn quota(hierarchy: u32, root: &Path, dir: &Path) -> Option<CpuQuota> {
    let (quota_us, period_us) = match hierarchy {
        // `50000 100000`, or `max 100000`.
        0 => {
            let limit = text(&dir.join("cpu.max"))?;
            let (quota, period) = limit.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        // -1 is none.
        _ => (number(&dir.join("cpu.cfs_quota_us"))?, number(&dir.join("cpu.cfs_period_us"))?),
    };
    let stat = text(&dir.join("cpu.stat"))?;
    let count = |key: &str| -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let throttled_ns =
        count("throttled_time").or_else(|| Some(count("throttled_usec")?.saturating_mul(1000)));
    let processes = text(&dir.join("cgroup.procs")).unwrap_or_default();
    Some(CpuQuota {
        hierarchy,
        path: format!("/{}", dir.strip_prefix(root).ok()?.display()),
        quota_us,
        period_us,
        throttled: count("nr_throttled").unwrap_or(0),
        throttled_ns: throttled_ns.unwrap_or(0),
        processes: processes.lines().filter_map(|line| line.parse().ok()).collect(),
    })
}

/// The threads that may not use every CPU, by the CPUs that they may use.
fn affinities(threads: &[Tid]) -> Vec<Affinity> {
    let online = text("/sys/devices/system/cpu/online".as_ref()).unwrap_or_default();
    let online = cpu_list(&online);
    let mut found: BTreeMap<Vec<Cpu>, Vec<Tid>> = BTreeMap::new();
    for tid in threads {
        let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(tid.0)) else { continue };
        let may_use = |cpu: &Cpu| cpu.index() < CpuSet::count() && set.is_set(cpu.index()) == Ok(true);
        let cpus: Vec<Cpu> = online.iter().copied().filter(may_use).collect();
        if cpus.len() < online.len() {
            found.entry(cpus).or_default().push(*tid);
        }
    }
    found.into_iter().map(|(cpus, threads)| Affinity { cpus, threads }).collect()
}

/// The numbers in a list such as `0-3,6`.
fn cpu_list(text: &str) -> Vec<Cpu> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().ok()?;
        let last: u32 = last.parse().ok()?;
        Some(first..=last.min(first.saturating_add(4096)))
    };
    text.trim().split(',').filter_map(range).flatten().map(Cpu).collect()
}

/// The files that these processes have mapped, each once.
fn mapped_files(processes: &[Pid]) -> Vec<MappedInode> {
    let mut files = BTreeMap::new();
    for pid in processes.iter().take(MAX_NEW_PROCESSES) {
        let Some(maps) = text(format!("/proc/{pid}/maps").as_ref()) else { continue };
        for line in maps.lines() {
            if files.len() < MAX_FILES
                && let Some(file) = mapped_file(line)
            {
                files.entry((file.device, file.inode)).or_insert(file);
            }
        }
    }
    files.into_values().collect()
}

/// The file of a line of /proc/PID/maps: `begin-end rwxp offset major:minor inode path`.
fn mapped_file(line: &str) -> Option<MappedInode> {
    let (before, path) = line.split_once('/')?;
    let fields: Vec<&str> = before.split_whitespace().collect();
    let [_, _, _, device, inode] = fields.as_slice() else { return None };
    let (major, minor) = device.split_once(':')?;
    let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
    let inode = inode.parse().ok().filter(|inode| *inode > 0)?;
    Some(MappedInode { device: (hexadecimal(major)?, hexadecimal(minor)?), inode, path: format!("/{path}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_looked_for_in_the_hierarchy_of_cpu_time() {
        let groups = "9:name=systemd:/\n4:cpu,cpuacct:/top-app\n0::/uid_0/pid_7\n";
        let mounts = "none /dev/cpuctl cgroup rw,nosuid,cpu 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0\n\
                      none /dev/cpuset cgroup rw,cpuset 0 0\n";
        let found: Vec<(u32, PathBuf)> =
            hierarchies(groups, mounts).into_iter().map(|one| (one.number, one.root)).collect();
        assert_eq!(found, [(4, "/dev/cpuctl".into()), (0, "/sys/fs/cgroup".into())]);
    }

    #[test]
    fn a_quota_is_read_in_both_versions() {
        let dir = std::env::temp_dir().join(format!("tracebridge-quota-{}", std::process::id()));
        let group = dir.join("a/b");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.max"), "5000 20000\n").unwrap();
        fs::write(group.join("cpu.stat"), "usage_usec 9\nnr_throttled 3\nthrottled_usec 45\n").unwrap();
        fs::write(group.join("cgroup.procs"), "7\n9\n").unwrap();
        let expected = CpuQuota {
            hierarchy: 0,
            path: "/a/b".into(),
            quota_us: 5000,
            period_us: 20_000,
            throttled: 3,
            throttled_ns: 45_000,
            processes: vec![Pid(7), Pid(9)],
        };
        assert_eq!(quota(0, &dir, &group), Some(expected.clone()));
        fs::write(group.join("cpu.cfs_quota_us"), "5000\n").unwrap();
        fs::write(group.join("cpu.cfs_period_us"), "20000\n").unwrap();
        fs::write(group.join("cpu.stat"), "nr_periods 9\nnr_throttled 3\nthrottled_time 45000\n").unwrap();
        assert_eq!(quota(4, &dir, &group), Some(CpuQuota { hierarchy: 4, ..expected }));
        fs::write(group.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!((quota(4, &dir, &group), quota(0, &dir, &group)), (None, None));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_thread_on_one_cpu_is_among_the_affinities() {
        let online = cpu_list(&text("/sys/devices/system/cpu/online".as_ref()).unwrap());
        let thread = std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(online[0].index()).unwrap();
            nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).unwrap();
            let tid = Tid(nix::unistd::gettid().as_raw());
            (affinities(&[tid]), tid, online)
        });
        let (found, tid, online) = thread.join().unwrap();
        if online.len() > 1 {
            assert_eq!(found, [Affinity { cpus: vec![online[0]], threads: vec![tid] }]);
        }
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5].map(Cpu));
    }

    #[test]
    fn a_mapped_file_has_its_inode_and_its_path() {
        let line = "7f00-7f01 r-xp 00001000 fe:0a 4711                       /data/app/base apk.apk";
        let file = MappedInode { device: (0xfe, 10), inode: 4711, path: "/data/app/base apk.apk".into() };
        assert_eq!(mapped_file(line), Some(file));
        assert_eq!(mapped_file("7f00-7f01 rw-p 00000000 00:00 0          [heap]"), None);
        assert_eq!(mapped_file("7f00-7f01 rw-p 00000000 00:05 0          /dev/zero"), None);
    }
}
