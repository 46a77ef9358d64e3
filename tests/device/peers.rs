//! The real Perfetto and the real simpleperf on a device that has neither: `scripts/peers` fetches them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;
use support::simpleperf::{peer, printed_samples, simpleperf};
use support::{Child, Command};

use crate::adb::{self, DIR, Device};
use crate::desk::{command, expect};
use crate::journey::json;
use crate::settings::reset;
use crate::shown_samples::{comparable, read};

/// Directory on the device for the programs.
const PEERS: &str = "/data/local/tmp/peers";

/// Perfetto's daemons on the device, and `perfetto` on its PATH; ended and removed on drop.
struct Perfetto<'a> {
    device: &'a Device,
    daemons: Vec<Child>,
}

impl<'a> Perfetto<'a> {
    fn install(device: &'a Device) -> Option<Perfetto<'a>> {
        if device.abi() != "arm64-v8a" || device.shell("test -e /system/bin/perfetto").status.success() {
            support::skip("perfetto", "the device has a Perfetto, or is none of arm64");
            return None;
        }
        let root = peer(&["perfetto", "arm64"])?.join("root/usr");
        let library = root.join("lib/perfetto/libperfetto.so");
        let programs = ["bin/perfetto", "sbin/traced", "sbin/traced_probes"].map(|name| root.join(name));
        device.run(&format!("mkdir -p {PEERS} /data/misc/perfetto-traces"));
        device.push_all(&[&programs[..], &[library]].concat(), PEERS);
        device.run(&format!(
            "cd {PEERS} && chmod 755 * && printf '#!/bin/sh\\nLD_LIBRARY_PATH={PEERS} exec {PEERS}/perfetto \"$@\"\\n' \
             >/system/bin/perfetto && chmod 755 /system/bin/perfetto"
        ));
        let start = |name: &str| device.start(&format!("cd {PEERS} && LD_LIBRARY_PATH=. exec ./{name}"));
        let mut daemons = vec![start("traced")];
        device.wait_until("traced", "test -e /tmp/perfetto-producer");
        daemons.push(start("traced_probes"));
        Some(Perfetto { device, daemons })
    }
}

impl Drop for Perfetto<'_> {
    fn drop(&mut self) {
        self.device.shell(&format!(
            "kill $(pidof traced_probes) $(pidof traced); rm -rf /system/bin/perfetto /tmp/perfetto-* {PEERS}; \
             rmdir /data/misc/perfetto-traces"
        ));
        for daemon in self.daemons.drain(..) {
            daemon.finish();
        }
    }
}

#[test]
fn the_real_perfetto_records_on_request_and_its_events_are_those_of_our_recording() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let dir = dir.path();
    let Some(_perfetto) = Perfetto::install(&device) else { return };
    // It goes on until Perfetto's recording is here: a device takes its time to begin one.
    let ours = ["record", "sched/sched_switch", "sched/sched_waking", "--instance", "ours", "-b", "8192"];
    let mut ours = command(device.serial(), dir, &[&ours[..], &["-o", "ours.dat"]].concat());
    let ours = ours.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    device.wait_until("our recording", "test \"$(cat /sys/kernel/tracing/instances/ours/tracing_on)\" = 1");
    let out =
        expect(0, &device, dir, &["record", "--via", "perfetto", "sched", "-t", "4", "-o", "x.pftrace"]);
    assert!(out.said().contains("recorded by the device's own perfetto\n"), "{}", out.said());
    assert_eq!(device.run("ls /data/misc/perfetto-traces"), "");
    ours.send(Signal::SIGINT);
    assert_eq!(ours.finish().code(), Some(0));
    let [info, ours] = ["x.pftrace", "ours.dat"].map(|name| json(&["info", "--json"], &[&dir.join(name)]));
    let kind = |info: &serde_json::Value, name: &str| info["kinds"][name].as_u64().unwrap_or(0);
    let both = ["sched:sched_switch", "sched:sched_waking"];
    let [theirs, all] = [&info, &ours].map(|info| both.iter().map(|name| kind(info, name)).sum::<u64>());
    assert!(theirs > 20 && all >= theirs, "{theirs} of {all}: {info}");
    let merged = json(
        &["merge", "--json", "-o", dir.join("m.pftrace").to_str().unwrap()],
        &[&dir.join("ours.dat"), &dir.join("x.pftrace")],
    );
    let inputs = merged["outcome"]["inputs"].as_array().unwrap();
    let duplicates: u64 = inputs.iter().map(|input| input["duplicates"].as_u64().unwrap()).sum();
    // An interrupt between the two buffers may move an event too far.
    assert!(duplicates <= theirs && duplicates * 100 >= theirs * 97, "{duplicates} of {theirs}: {merged}");
    reset(&device);
}

/// A recording without facts that have no text. Where a device has no Android properties, simpleperf writes
/// such ones, and then refuses its own file.
fn without_empty_facts(path: &Path) -> PathBuf {
    let mut bytes = fs::read(path).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let table = word(40) + word(48);
    let features: u32 = bytes[72..104].iter().map(|byte| byte.count_ones()).sum();
    let entries = (0..features as usize).map(|number| table + 16 * number);
    let sections: Vec<_> = entries.map(|entry| (entry, word(entry), word(entry + 8))).collect();
    let facts = sections
        .into_iter()
        .find(|(_, at, len)| bytes[*at..at + len].windows(18).any(|window| window == b"simpleperf_version"));
    let (entry, at, len) = facts.expect("the section with facts");
    let texts: Vec<&[u8]> = bytes[at..at + len - 1].split(|byte| *byte == 0).collect();
    let stated = texts.chunks(2).filter(|fact| !fact[1].is_empty());
    let kept: Vec<u8> = stated.flat_map(|fact| [fact[0], b"\0", fact[1], b"\0"].concat()).collect();
    bytes[entry + 8..entry + 16].copy_from_slice(&(kept.len() as u64).to_le_bytes());
    bytes[at..at + kept.len()].copy_from_slice(&kept);
    let changed = path.with_extension("stated.data");
    fs::write(&changed, bytes).unwrap();
    changed
}

/// Asserts that the samples of a recording are those that simpleperf of this machine prints of it.
pub fn assert_samples_as_reported(host: &Path, recording: &Path, what: &str) {
    let words = ["report-sample", "--show-callchain", "--remove-gaps", "0", "-i"];
    let text = Command::new(host).args(words).arg(without_empty_facts(recording)).run().exited(0);
    let mut want = printed_samples(&text);
    comparable(&mut want);
    let (found, _) = read(recording);
    let different = found.iter().zip(&want).find(|(found, want)| found != want);
    assert_eq!((found.len(), different), (want.len(), None), "{what}");
    assert!(!found.is_empty(), "{what}");
}

#[test]
fn recordings_of_the_real_simpleperf_equal_its_own_report() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let Some(host) = simpleperf() else { return };
    if device.abi() != "arm64-v8a" {
        return;
    }
    let dir = adb::scratch();
    let program = peer(&["simpleperf"]).unwrap().join("android/arm64/simpleperf");
    device.push(&program, &format!("{DIR}/simpleperf"));
    for (number, options) in [
        "-f 500 -e task-clock --call-graph fp --trace-offcpu",
        "-f 200 -e cpu-clock -g",
        "-e sched:sched_switch --call-graph fp",
    ]
    .into_iter()
    .enumerate()
    {
        device.run(&format!(
            "cd {DIR} && ./simpleperf record {options} -o p.data -- \
             sh -c 'for i in 1 2 3; do md5sum {DIR}/simpleperf; sleep 0.01; done' >p.log 2>&1"
        ));
        let path = dir.path().join(format!("{number}.data"));
        device.pull(&format!("{DIR}/p.data"), &path);
        assert_samples_as_reported(&host, &path, options);
    }
    device.run(&format!("cd {DIR} && rm -f simpleperf p.data p.log"));
}
