//! Writes the first inputs of the fuzz targets, each made by the writers of this project and of its tests:
//! `cargo run --example generate_fuzz_seeds -- target/fuzz/corpus`, where the runs of `scripts/fuzz` begin

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use tracebridge::export;
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions};

use support::art_always_on::Stream;
use support::art_blocks::{Blocks, Writer};
use support::art_writer::{Action, ArtTrace, Method, Record};
use support::foreign_dat::{FORMAT, Maker, all, make};
use support::kernel_pages::KernelPages;
use support::scenario::{Era, Scenario};
use support::screen_video::{self, Tables};

/// A text with each kind of line that the reader of ftrace's text tells apart.
const TEXT: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 5/12   #P:2\n#\n\
    \x20          app-40    (     40) [000] d..2.  1000.000001: sched_switch: prev_comm=app prev_pid=40 \
    prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n\
    \x20          app-40    (     40) [001] .....  1000.000002: tracing_mark_write: B|40|a section\n\
    ##### CPU 1 buffer started ####\nCPU:0 [LOST 7 EVENTS]\n\
    \x20          app-41    (-------) [001] .....  1000.000003: sys_openat(dfd: 3, filename: 7ff)\n\
    \x20          app-41    (-------) [001] .....  1000.000004: sys_openat -> 0x5\n\
    \x20       <idle>-0     (-------) [000] ..s1.  1000.000005: softirq_entry: vec=1 [action=TIMER]\n\
    \x20          app-40    (     40) [001] .....  1000.000006: made_up: number=5 text=a b\n\
    \x20          app-40    (     40) [001] .....  1000.000007: free text without any pair\n\
    \x20          app-40    (     40) [001] .....  1000.000008: tracing_mark_write: E|40\n";

/// A slice that computes, waits for a new thread of its own process that waits for a device, is interrupted,
/// and is throttled.
const WAITS: &str = "# tracer: nop\n#\n\
    a-100 (  100) [000] .... 1.000000: tracing_mark_write: B|100|load\n\
    a-100 (  100) [000] .... 1.000050: cpu_frequency: state=1000000 cpu_id=0\n\
    a-100 (  100) [000] .... 1.000060: task_newtask: pid=101 comm=a clone_flags=3d0f00 oom_score_adj=0\n\
    a-100 (  100) [000] d..2 1.000070: sched_wakeup_new: comm=b pid=101 prio=120 target_cpu=001\n\
    <idle>-0 (-----) [001] d..2 1.000080: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
    next_comm=b next_pid=101 next_prio=120\n\
    a-100 (  100) [000] .... 1.000090: sys_futex(uaddr: 1, op: 0)\n\
    a-100 (  100) [000] d..2 1.000100: sched_switch: prev_comm=a prev_pid=100 prev_prio=120 prev_state=S ==> \
    next_comm=c next_pid=200 next_prio=98\n\
    b-101 (  100) [001] d..2 1.000200: sched_switch: prev_comm=b prev_pid=101 prev_prio=120 prev_state=D ==> \
    next_comm=swapper next_pid=0 next_prio=120\n\
    <idle>-0 (-----) [001] d.h2 1.000300: sched_waking: comm=b pid=101 prio=120 target_cpu=001\n\
    <idle>-0 (-----) [001] d..2 1.000310: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
    next_comm=b next_pid=101 next_prio=120\n\
    b-101 (  100) [001] d..2 1.000311: sched_blocked_reason: pid=101 iowait=1 caller=folio_wait_bit_common+0x1/0x2\n\
    b-101 (  100) [001] d..2 1.000400: sched_waking: comm=a pid=100 prio=120 target_cpu=000\n\
    c-200 (  200) [000] d..2 1.000500: sched_switch: prev_comm=c prev_pid=200 prev_prio=98 prev_state=R ==> \
    next_comm=a next_pid=100 next_prio=120\n\
    a-100 (  100) [000] d.h1 1.000510: irq_handler_entry: irq=3 name=virtio0-input\n\
    a-100 (  100) [000] d.h1 1.000520: irq_handler_exit: irq=3 ret=handled\n\
    a-100 (  100) [000] d..2 1.000600: sched_switch: prev_comm=a prev_pid=100 prev_prio=120 prev_state=R+ ==> \
    next_comm=swapper next_pid=0 next_prio=120\n\
    CPU:1 [LOST 7 EVENTS]\n\
    <idle>-0 (-----) [000] d..2 1.004600: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
    next_comm=a next_pid=100 next_prio=120\n\
    a-100 (  100) [000] .... 1.005000: tracing_mark_write: E|100\n";

/// A mapping file, behind the marker and the names that are looked up in it.
const MAPPING: &str = "a.b.C.d a.b a.b.C (La/b;)V in a marker\n\n# compiler: R8\ncom.example.Main -> a.b:\n\
    # {\"id\":\"sourceFile\",\"fileName\":\"Main.java\"}\n    int count -> a\n    \
    1:7:void run(com.example.Other,int):10:16 -> c\n    1:1:void inner():5:5 -> c\n    \
    1:1:void run():11 -> c\n    void draw(int[]) -> d\ncom.example.Other -> a.b.C:\n    void <init>() -> <init>\n";

const SAVED_SETTINGS: &str = "{\"pid\":7,\"boot_id\":\"b\",\"tracefs\":\"/t/instances/x\",\"instance\":\"x\",\
    \"remove_instance\":true,\"flight\":null,\"capture\":\"/d/x.dat\"}\n\
    {\"knob\":\"events/sched/enable\",\"value\":\"1\"}\n{\"values\":[[\"debug.atrace.tags.enableflags\",\"0\"]]}\n";

const MANIFEST: &str = "{\"perfetto_manifest\":{\"version\":1,\"files\":[{\"path\":\"recording.pftrace\"},\
    {\"path\":\"0-a.trace\",\"clocks\":{\"clock\":\"MONOTONIC\",\"offset_ns\":-5}}]}}";

/// A Perfetto trace with each kind of frame, one of them without its end, and an end without its begin.
const FRAMES: &[u8] = b"\
    \x0a\x0d\x40\0\xe2\x04\x08\x0a\x06\x08\x01\x10\x09\x18\x32\x0a\x09\x40\x28\xe2\x04\x04\x2a\x02\x08\x01\
    \x0a\x17\x40\x01\xe2\x04\x12\x12\x10\x08\x02\x10\x09\x18\x32\x20\x02\x28\0\x30\x01\x38\x10\x40\x01\x0a\
    \x09\x40\x29\xe2\x04\x04\x2a\x02\x08\x02\x0a\x1b\x40\x02\xe2\x04\x16\x1a\x14\x08\x03\x10\x05\x18\x09\x20\
    \x07\x2a\x0a\x54\x58\x20\x2d\x20\x61\x70\x70\x23\x31\x0a\x09\x40\x2a\xe2\x04\x04\x2a\x02\x08\x03\x0a\x25\
    \x40\x03\xe2\x04\x20\x22\x1e\x08\x04\x10\x05\x18\x09\x20\x07\x2a\x0a\x54\x58\x20\x2d\x20\x61\x70\x70\x23\
    \x31\x30\x02\x38\0\x40\x01\x48\x40\x50\x01\x0a\x09\x40\x2b\xe2\x04\x04\x2a\x02\x08\x63";

/// A Perfetto trace with a packet of each kind that polls counters: a battery, a power rail, the system, a
/// process and the memory of a GPU.
const COUNTERS: &[u8] = b"\
    \x0a\x0f\x40\x05\xb2\x02\x0a\x08\x07\x15\0\0\xc7\x42\x2a\x01\x62\x0a\x16\x40\x06\xc2\x02\x11\x0a\x07\x08\
    \x01\x12\x03\x43\x50\x55\x12\x06\x08\x01\x10\x03\x18\x09\x0a\x20\x3a\x1c\x0a\x04\x08\x02\x10\x09\x12\x04\
    \x08\x01\x10\x08\x1a\x04\x08\x01\x28\x07\x20\x03\x32\x04\x08\x01\x10\x02\x58\x04\x40\x07\x0a\x0c\x40\x08\
    \x4a\x08\x0a\x06\x08\x07\x18\x03\x50\x01\x0a\x09\x40\x09\xba\x04\x04\x10\x07\x18\x20";

/// The directory that the inputs are written to.
struct Corpus(PathBuf);

impl Corpus {
    fn save(&self, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(self.0.join(target))?;
        fs::write(self.0.join(target).join(name), bytes)
    }
}

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).filter(|dir| !dir.starts_with('-'));
    let corpus = Corpus(PathBuf::from(dir.expect("usage: generate_fuzz_seeds DIRECTORY")));
    rings(&corpus)?;
    pages_and_formats(&corpus)?;
    texts(&corpus)?;
    methods(&corpus)?;
    recordings(&corpus)
}

/// Records of every kind in one ring, and each kind alone.
#[cfg(target_os = "linux")]
fn rings(corpus: &Corpus) -> io::Result<()> {
    use tracebridge::internals::Record;
    let mut all = Vec::new();
    for kind in *b"TBEISFCGHN" {
        let has_name = kind != b'E';
        let record = Record {
            kind,
            time: 1 << 40,
            number: 1234,
            track: if matches!(kind, b'G' | b'N') { b"network" } else { b"" },
            name: if has_name { b"a name of 18 bytes" } else { b"" },
        };
        corpus.save("ring", &format!("kind_{}", char::from(kind)), &record.encode())?;
        all.extend(record.encode());
    }
    corpus.save("ring", "all_kinds", &all)
}

#[cfg(not(target_os = "linux"))]
fn rings(_: &Corpus) -> io::Result<()> {
    Ok(())
}

fn pages_and_formats(corpus: &Corpus) -> io::Result<()> {
    for (endian, long, packing) in all() {
        let name = format!("{endian:?}-{long}-{packing:?}").to_lowercase();
        corpus.save("trace_dat", &name, &make(endian, long, packing))?;
        corpus.save("ftrace_page", &name, &Maker::new(endian, long).page(5, 0, 3, Some(7))[..200])?;
    }
    let page = &Maker::new(support::foreign_dat::Endian::Little, 8).page(5, 0, 8, Some(7))[..600];
    let with_len = [&600u16.to_le_bytes()[..], page].concat();
    let pages = [b"\x01\x0640 app\n", &with_len[..], &with_len, &with_len].concat();
    corpus.save("v6_v7", "three_pages", &pages)?;
    corpus.save("v6_v7", "one_cpu", &[b"\x00\x00", &with_len[..]].concat())?;
    corpus.save("event_format", "made_up", FORMAT.as_bytes())?;
    corpus.save(
        "print_fmt",
        "flags",
        br#""%s %5d", __print_flags(REC->b, "|", { 1, "A" }, { 2, "B" }), REC->a ? 1 : -2"#,
    )?;
    corpus.save(
        "print_fmt",
        "pointers",
        br#""%pS %pI4 %*ph %s", (void *)REC->u, REC->addr, 3, REC->addr, __get_str(d)"#,
    )?;
    corpus.save(
        "print_fmt",
        "arrays",
        br#""%s %s %s %c", __print_hex(REC->addr, 16), __print_array(__get_dynamic_array(r), 3, 1), __print_symbolic(REC->a, { 0, "x" }, { -1, "y" }), (char)(REC->b >> 3 & ~0x7UL)"#,
    )?;
    // The formats of the kernel whose pages the golden tests hold.
    for (_, event, text) in KernelPages::read("events").formats() {
        corpus.save("event_format", event, text.as_bytes())?;
        if let Some((_, print_fmt)) = text.split_once("print fmt: ") {
            corpus.save("print_fmt", event, print_fmt.trim_end().as_bytes())?;
        }
    }
    let symbols = "0000000000000000 A zero\nffffffff81000000 T _text\nffffffff81000010 t helper\t[module]\n\
        0xffffffff82000000 : \"a format %d\\n\"\n";
    corpus.save("kernel_text", "symbols", symbols.as_bytes())
}

/// An event of each phase of Chrome's JSON.
const JSON: &str = r#"{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"UI"}},
{"ph":"B","pid":1,"tid":2,"ts":1.5,"name":"a","cat":"c","args":{"x":[1,{"y":"\u00e9"}],"z":null}},
{"ph":"X","pid":1,"tid":2,"ts":2,"dur":3.25,"name":"b","tts":1,"tdur":2,"bind_id":"0x1","flow_out":true},
{"ph":"s","pid":1,"tid":2,"ts":2,"name":"f","id":"0x5"},{"ph":"f","pid":1,"tid":3,"ts":4,"name":"f","id":5,"bp":"e"},
{"ph":"b","pid":"p","tid":"t","ts":"3","name":"load","id2":{"local":7}},{"ph":"n","pid":"p","ts":4,"name":"load","id":1},
{"ph":"e","pid":"p","ts":5,"name":"load","id2":{"local":7}},{"ph":"i","pid":1,"tid":2,"ts":6,"name":"i","s":"g"},
{"ph":"C","pid":1,"ts":7,"name":"m","id":1,"args":{"value":1e3,"b":"2.5"}},{"ph":"P","ts":8,"sf":1},
{"ph":"E","pid":1,"tid":2,"ts":9},],"stackFrames":{"1":{"name":"g"}},"metadata":{"clock-domain":"LINUX_CLOCK_MONOTONIC"}}"#;

const STRACE: &str = r#"strace: Process 75 attached
hello
[pid    75] 23:59:59.999999 execve("/bin/sh", ["sh"], 0x7 /* 4 vars */) = 0 <0.001261>
[pid    75] 00:00:00.1 clone(flags=CLONE_THREAD|SIGCHLDstrace: Process 76 attached
, child_tidptr=0x7) = 76 <0.000125>
76 00:00:00.2 (+     0.1) [  59] [00007f] wait4(-1,  <unfinished ...>
76<sh> 00:00:00.3 <... wait4 resumed>[{WIFEXITED(s)}], 0 <unfinished ...>
76 00:00:00.4 --- SIGCHLD {si_signo=SIGCHLD} ---
1700000052.321000 prctl(PR_SET_NAME, "x") = 0
     0.000321 set_tid_address(0x7f) = 75
[pid    76] 00:00:00.5 futex(0x7, <detached ...>
 > /lib/libc.so(read) [0x1]
[pid    75] 00:00:00.6 +++ killed by SIGKILL (core dumped) +++
"#;

fn texts(corpus: &Corpus) -> io::Result<()> {
    corpus.save("strace", "every_line", STRACE.as_bytes())?;
    corpus.save("chrome_json", "every_phase", JSON.as_bytes())?;
    let frames = screen_video::frames(1_000_000_000, 3);
    for tables in [Tables::Both, Tables::Microseconds, Tables::Version1, Tables::None] {
        let video = screen_video::video(&frames, tables);
        corpus.save("screen_video", &format!("{tables:?}").to_lowercase(), &video)?;
    }
    corpus.save("ftrace_text", "every_line", TEXT.as_bytes())?;
    corpus.save("text_dat_text", "every_line", TEXT.as_bytes())?;
    corpus.save("why", "waits", WAITS.as_bytes())?;
    corpus.save("why", "every_line", TEXT.as_bytes())?;
    for kind in ["T", "S"] {
        corpus.save("systrace_html", kind, format!("{kind}{TEXT}").as_bytes())?;
    }
    let page = format!(
        "-<!DOCTYPE html>\n<html><body><script class=\"trace-data\" type=\"application/text\">\n{TEXT}</script>\n\
         <script class=\"trace-data\" type=\"application/text\">PROCESS DUMP\n\
         USER PID PPID VSZ RSS WCHAN PC S NAME COMM\nroot 40 1 1 1 0 0 S com.example.app app\n</script></body></html>"
    );
    corpus.save("systrace_html", "page", page.as_bytes())?;
    corpus.save("systrace_html", "escaped", format!("B\\\n{}", TEXT.replace('\n', "\\n\\\n")).as_bytes())?;
    let mut zlib = flate2::write::ZlibEncoder::new(b"Z".to_vec(), flate2::Compression::default());
    zlib.write_all(TEXT.as_bytes())?;
    corpus.save("systrace_html", "zlib", &zlib.finish()?)?;
    corpus.save("systrace_html", "base64", b"BeJxTVigpSkxOLbJSyMsv4AIAIWQEdg==")?;
    corpus.save("mapping", "r8", MAPPING.as_bytes())?;
    corpus.save("saved_settings", "three_lines", SAVED_SETTINGS.as_bytes())?;
    for (name, text) in [
        ("record", "-z\n-t\n10\n-b\n4096\n-a\ncom.example,b*\nsched\ngfx"),
        ("async", "--async_start\n-cb2048\n-k\na,b\n--only\n--\n-x"),
        ("stop", "--async_stop\n-o\nout\n-n\n-s3\n--stream\n--prefer_sdk"),
        ("file", "-fnames\n-\n--async_dump"),
    ] {
        corpus.save("atrace_arguments", name, text.as_bytes())?;
    }
    for (name, text) in
        [("stars", "c*.ex*le?\ncom.example1"), ("sets", "[!a-c]*[]x]\nd]"), ("open", "[a*\n[a*b")]
    {
        corpus.save("glob", name, text.as_bytes())?;
    }
    corpus.save("archive", "manifest", format!("M{MANIFEST}\n\ntrace").as_bytes())?;
    for (name, layers) in [("plain", 0), ("gzip", 1), ("zstd", 2), ("cut", 3), ("nested", 0b01_10_01_10)] {
        corpus.save("unpack", name, &[&[layers], &TEXT.as_bytes()[..400]].concat())?;
    }
    Ok(())
}

/// A method trace of two threads with calls, an exception, recursion and a call without an end.
fn small_trace() -> ArtTrace {
    let method = |name: &str| Method::new("com.example.Main", name);
    let calls = [
        (1, 0, Action::Enter),
        (1, 1, Action::Enter),
        (2, 2, Action::Enter),
        (1, 1, Action::Enter),
        (1, 1, Action::Exit),
        (2, 2, Action::Unroll),
        (1, 1, Action::Exit),
        (1, 0, Action::Exit),
        (2, 0, Action::Enter),
    ];
    let record = |(n, (thread, method, action)): (u32, (u16, u32, Action))| Record {
        thread,
        method,
        action,
        cpu_us: n * 3,
        wall_us: n * 10,
    };
    ArtTrace {
        dalvik: false,
        start_us: 1_000_000,
        elapsed_us: 100,
        pid: 40,
        threads: vec![(1, "main".into()), (2, "pool-1-thread-1".into())],
        methods: ["run", "recurse", "fail"].map(method).into(),
        records: (0..).zip(calls).map(record).collect(),
    }
}

fn methods(corpus: &Corpus) -> io::Result<()> {
    let trace = small_trace();
    let mut forms = vec![
        ("v3", trace.to_bytes()),
        ("dalvik", ArtTrace { dalvik: true, ..trace.clone() }.to_bytes()),
        ("streaming", trace.to_streaming_bytes(true)),
        ("killed", trace.to_streaming_bytes(false)),
    ];
    let second = Writer::Second { nanos: true, split: 2 };
    let third = Writer::Third { frequency: 19_200_000, real: 19_199_000 };
    for (name, streaming, (wall, cpu), writer) in [
        ("v5_aosp", false, (true, true), second),
        ("v5_aosp_streaming", true, (true, true), second),
        ("v5_aosp_us", false, (true, true), Writer::Second { nanos: false, split: 100 }),
        ("v4_wall", false, (true, false), second),
        ("v5_first", true, (true, true), Writer::First { block: 2 }),
        ("v4_first_file", false, (true, false), Writer::First { block: 100 }),
        ("v5_tsc", true, (true, true), third),
        ("v4_tsc_wall", false, (true, false), third),
        ("v4_tsc_cpu", false, (false, true), third),
    ] {
        forms.push((name, support::art_blocks::to_bytes(&trace, Blocks { streaming, wall, cpu, writer })));
    }
    for (name, stream) in [
        ("long_ticks", Stream::Ticks { frequency: 19_200_000 }),
        ("long_ns", Stream::Nanos),
        ("long_calibrated", Stream::Calibrated),
        ("long_anr", Stream::Anr),
        ("long_perfetto", Stream::Perfetto),
        ("all_methods", Stream::AllMethods),
        ("all_methods_first", Stream::FirstVersion),
    ] {
        forms.push((name, support::art_always_on::to_bytes(&trace, stream)));
    }
    let anr = support::art_always_on::to_bytes(&trace, Stream::Anr);
    let dump = support::art_always_on::anr_dump(77, &anr);
    corpus.save("contained", "dump", format!("T{dump}").as_bytes())?;
    corpus.save("contained", "zip", format!("Z== dumpstate\n{dump}").as_bytes())?;
    let stream = support::art_always_on::to_bytes(&trace, Stream::Perfetto);
    let packet = support::art_always_on::perfetto_packet(129, 77, &stream);
    corpus.save("contained", "packet", &[b"P", &packet[..]].concat())?;
    for (name, bytes) in &forms {
        corpus.save("method_trace", name, bytes)?;
    }
    // Each kind of output once, with different traces.
    let choices: [[u8; 2]; 16] = [
        [0, 0],
        [0, 0x48],
        [0, 0x90],
        [0, 0x38],
        [0x10, 0],
        [0x20, 0x40],
        [0x40, 0],
        [0x40, 0x40],
        [1, 0],
        [2, 0],
        [3, 0],
        [4, 0],
        [5, 0],
        [0x49, 6],
        [0x80, 0],
        [0x83, 2],
    ];
    for (at, choice) in choices.iter().enumerate() {
        let (name, bytes) = &forms[at % forms.len()];
        corpus.save("profile_outputs", &format!("{at}_{name}"), &[&choice[..], bytes].concat())?;
    }
    let calls: Vec<u8> = (0..60u8).flat_map(|n| [n % 3, n.wrapping_mul(37), n, n / 2]).collect();
    corpus.save("method_forms", "two_threads", &[&[1, 5][..], &calls].concat())?;
    corpus.save("method_forms", "one_thread", &[&[0x40, 0x83][..], &calls[..40]].concat())
}

fn recordings(corpus: &Corpus) -> io::Result<()> {
    let scenario = Scenario { threads: 2, length: 10_000_000, ..Scenario::new(1, Era::Art14) };
    let made = scenario.make();
    let dat = fs::read(golden().join("dat/v6.dat"))?;
    let with_len = (made.dat.len() as u32).to_le_bytes();
    corpus.save("merge", "dat_and_methods", &[&with_len[..], &made.dat, &made.trace].concat())?;
    let two = [&(TEXT.len() as u32).to_le_bytes()[..], TEXT.as_bytes(), &small_trace().to_bytes()].concat();
    corpus.save("merge", "text_and_methods", &two)?;
    let compressed = fs::read(golden().join("dat/v7-zstd.dat"))?;
    corpus.save("export_all", "text", TEXT.as_bytes())?;
    corpus.save("export_all", "methods", &small_trace().to_bytes())?;
    corpus.save(
        "export_all",
        "v7",
        &make(support::foreign_dat::Endian::Little, 8, support::foreign_dat::Packing::V7Zlib),
    )?;
    corpus.save("export_all", "v7_zstd", &compressed)?;
    for (name, input) in [("text", TEXT.as_bytes()), ("dat", &dat), ("methods", &small_trace().to_bytes())] {
        let trace = perfetto_trace(input.to_vec())?;
        // The first packets of a trace are a trace.
        let end = trace.len().min(12_000);
        corpus.save("perfetto", &format!("of_{name}"), &trace[..end])?;
        corpus.save("perfetto_scan", &format!("of_{name}"), &trace[..end])?;
        corpus.save("export_all", &format!("perfetto_of_{name}"), &trace[..end])?;
    }
    for (name, bytes) in [("frames", FRAMES), ("counters", COUNTERS)] {
        for target in ["perfetto", "perfetto_scan"] {
            corpus.save(target, name, bytes)?;
        }
        corpus.save("export_all", &format!("perfetto_{name}"), bytes)?;
        corpus.save("why", &format!("perfetto_{name}"), bytes)?;
    }
    Ok(())
}

/// The Perfetto trace that tracebridge makes of an input.
fn perfetto_trace(input: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut written = tempfile::tempfile()?;
    let mut sink = export::create("perfetto", Box::new(written.try_clone()?)).expect("a format of the table");
    let input = [Input::from_bytes("input", input)];
    timeline::merge(&input, sink.as_mut(), &MergeOptions::default()).map_err(io::Error::other)?;
    drop(sink);
    let mut bytes = Vec::new();
    written.rewind()?;
    written.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}
