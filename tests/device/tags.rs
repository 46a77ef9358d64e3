//! `--tag` of `mark` and `wrap`: markers are written only while an ATRACE tag is on, which is watched as
//! libcutils does.

use std::io::Write;

use tracebridge::markers::TAGS;

use crate::adb::{DIR, Device, scratch};

/// The directory in which Android keeps its properties' memory. The emulated device has none: a stand-in is
/// put there.
const AREAS: &str = "/dev/__properties__";
const AREA: &str = "/dev/__properties__/u:object_r:debug_prop:s0";

/// A property area (bionic `prop_area.h`) with `debug.atrace.tags.enableflags` alone: a chain of nodes, each
/// a length, four offsets (property, left, right, children) and a name, and the property at its end.
fn area(value: &str) -> Vec<u8> {
    const HEAD: usize = 128;
    let names = ["", "debug", "atrace", "tags", "enableflags"];
    let sizes = names.map(|name| (20 + name.len() + 1usize).next_multiple_of(4));
    let mut out = vec![0; HEAD];
    out[8..16].copy_from_slice(&[0x504f_5250_u32.to_le_bytes(), 0xfc6e_d0ab_u32.to_le_bytes()].concat());
    for (n, name) in names.iter().enumerate() {
        let next = (out.len() - HEAD + sizes[n]) as u32;
        let last = n + 1 == names.len();
        let (property, child) = if last { (next, 0) } else { (0, next) };
        let mut node: Vec<u8> =
            [name.len() as u32, property, 0, 0, child].iter().flat_map(|word| word.to_le_bytes()).collect();
        node.extend(name.as_bytes());
        node.resize(sizes[n], 0);
        out.extend(node);
    }
    out.extend(2u32.to_le_bytes());
    out.extend(value.as_bytes());
    out.resize(out.len() - value.len() + 92, 0);
    out.extend(b"debug.atrace.tags.enableflags\0\0\0");
    out
}

/// A stand-in for the properties' memory, with one mask of tags; removed on drop.
struct Properties<'a>(&'a Device);

impl Properties<'_> {
    fn with(device: &Device, mask: u64) -> Properties<'_> {
        let dir = scratch();
        let file = dir.path().join("area");
        let bytes = area(&format!("{mask:#010x}"));
        std::fs::File::create(&file).unwrap().write_all(&bytes).unwrap();
        device.run(&format!("mkdir -p {AREAS}"));
        device.push(&file, AREA);
        Properties(device)
    }
}

impl Drop for Properties<'_> {
    fn drop(&mut self) {
        self.0.shell(&format!("rm -r {AREAS}"));
    }
}

/// The offset of the property's value in the file, in bytes.
fn value_at() -> usize {
    let bytes = area("0x00000008");
    bytes.windows(10).position(|w| w == b"0x00000008").unwrap()
}

/// A shell command that changes the property as Android's init does: first the value, then the serial number.
fn change(mask: u64, serial: u8) -> String {
    let at = value_at();
    let dd = format!("dd of={AREA} bs=1 conv=notrunc 2>/dev/null");
    format!("printf '{mask:#010x}' | {dd} seek={at}; printf '\\{serial:03o}' | {dd} seek={}", at - 4)
}

#[test]
fn all_28_tags_are_known_by_name_and_bit() {
    let Some(device) = Device::attached() else { return };
    if device.shell(&format!("test -e {AREAS}")).status.success() {
        return support::skip("stand-ins", "the device has properties of its own");
    }
    let binary = device.program(device.abi(), "tracebridge");
    device.run("cd /sys/kernel/tracing && echo 1 >tracing_on && echo >trace");
    // Every other tag is on: a tag that is off must write nothing.
    let mask = 0x0555_5555 & !1;
    let properties = Properties::with(&device, mask);
    let script: Vec<String> = TAGS
        .iter()
        .map(|tag| format!("{binary} mark --tag {} instant tag{:02}", tag.name, tag.bit))
        .collect();
    device.run(&format!("{}; {binary} mark instant tag99", script.join("; ")));
    drop(properties);
    let trace = device.run("cat /sys/kernel/tracing/trace");
    let expected: Vec<String> = TAGS
        .iter()
        // The tag `app` is off: no property `app_N` names an app to trace.
        .filter(|tag| tag.bit == 0 || mask & tag.mask() != 0 && tag.name != "app")
        .map(|tag| format!("tag{:02}", tag.bit))
        .chain(["tag99".to_owned()])
        .collect();
    let written: Vec<&str> = trace.lines().filter_map(|l| Some(l.split_once("|tag")?.1)).collect();
    assert_eq!(written.iter().map(|n| format!("tag{n}")).collect::<Vec<_>>(), expected);
}

#[test]
fn a_stream_of_markers_follows_the_tag_as_it_changes() {
    let Some(device) = Device::attached() else { return };
    if device.shell(&format!("test -e {AREAS}")).status.success() {
        return support::skip("stand-ins", "the device has properties of its own");
    }
    let binary = device.program(device.abi(), "tracebridge");
    device.run("cd /sys/kernel/tracing && echo 1 >tracing_on && echo >trace");
    let _properties = Properties::with(&device, 0x8);
    let off = change(0x2, 4);
    let on = change(0x8, 6);
    // `mark` has read each line, and waits for the next one, before the property changes: it has gone to
    // sleep once more.
    device.run(&format!(
        "rm -f {DIR}/lines && mkfifo {DIR}/lines && {{ {binary} mark --tag view - <{DIR}/lines & }} && p=$! && \
         exec 3>{DIR}/lines && rm {DIR}/lines && \
         sleeps() {{ until grep -q 'State:.S' /proc/$p/status; do sleep 0.02; done; }} && \
         naps() {{ grep ^voluntary /proc/$p/status; }} && \
         echo instant first >&3 && until grep -q '|first' /sys/kernel/tracing/trace; do sleep 0.02; done; \
         sleeps; {off}; before=$(naps); echo instant second >&3; \
         while [ \"$(naps)\" = \"$before\" ]; do sleep 0.02; done; sleeps; \
         {on}; echo instant third >&3; exec 3>&-; wait $p"
    ));
    let trace = device.run("cat /sys/kernel/tracing/trace");
    assert!(trace.contains("|first") && !trace.contains("|second") && trace.contains("|third"), "{trace}");
    device.run("echo >/sys/kernel/tracing/trace");
    assert_eq!(
        device.shell(&format!("{binary} wrap --no-record --tag gfx -- sh -c 'exit 4'")).status.code(),
        Some(4)
    );
    assert_eq!(
        device.shell(&format!("{binary} wrap --no-record --tag view -- sh -c 'exit 5'")).status.code(),
        Some(5)
    );
    let trace = device.run("cat /sys/kernel/tracing/trace");
    let sections = trace.lines().filter(|l| l.contains(": B|")).count();
    assert_eq!(sections, 1, "the tag gfx is off: {trace}");
}
