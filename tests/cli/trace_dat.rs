//! trace.dat files of machines that nobody here has, made by the test: both byte orders, both word sizes, both
//! versions, every compression; and what becomes of damaged ones.

use std::io::{self, Write};

use tracebridge::clock::Clock;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Head, Order, ReadReport, Sink, ThreadInfo, Value};
use tracebridge::ftrace::Endian;
use tracebridge::trace_dat::layout;

use crate::support;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    V6,
    V7None,
    V7Zlib,
    V7Zstd,
}

/// Writes numbers as some machine would.
#[derive(Clone)]
struct Maker {
    endian: Endian,
    long: u8,
    out: Vec<u8>,
}

impl Maker {
    fn new(endian: Endian, long: u8) -> Maker {
        Maker { endian, long, out: Vec::new() }
    }
    fn fresh(&self) -> Maker {
        Maker::new(self.endian, self.long)
    }
    fn uint(&mut self, value: u64, bytes: usize) -> &mut Maker {
        match self.endian {
            Endian::Little => self.out.extend(&value.to_le_bytes()[..bytes]),
            Endian::Big => self.out.extend(&value.to_be_bytes()[8 - bytes..]),
        }
        self
    }
    fn raw(&mut self, bytes: &[u8]) -> &mut Maker {
        self.out.extend_from_slice(bytes);
        self
    }
    fn sized(&mut self, bytes: &[u8], size_bytes: usize) -> &mut Maker {
        self.uint(bytes.len() as u64, size_bytes).raw(bytes)
    }

    fn header_page(&self) -> String {
        let (long, data) = (self.long, 8 + u32::from(self.long));
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{};\tsigned:0;\n",
            4096 - data
        )
    }

    /// A page of events, 1 µs apart: number `first` to `first + count`.
    fn page(&self, ts: u64, first: u64, count: u64, lost: Option<u64>) -> Vec<u8> {
        let mut events = self.fresh();
        for n in first..first + count {
            let mut record = self.fresh();
            record.uint(300, 2).raw(&[1, 2]).uint(40 + n % 3, 4);
            record.uint(n, 8).uint((-(n as i64)) as u64, 4);
            // A located text right behind the fields: offset 28, 6 bytes.
            record.uint(6 << 16 | 28, 4).raw(b"ab\0\0").raw(b"hello\0\0\0");
            let head = match self.endian {
                Endian::Little => (record.out.len() as u64 / 4) | 1000 << 5,
                Endian::Big => (record.out.len() as u64 / 4) << 27 | 1000,
            };
            events.uint(head, 4).raw(&record.out);
        }
        let mut page = self.fresh();
        let flags = if lost.is_some() { 1 << 31 | 1 << 30 } else { 0 };
        page.uint(ts, 8).uint(events.out.len() as u64 | flags, self.long.into()).raw(&events.out);
        if let Some(lost) = lost {
            page.uint(lost, self.long.into());
        }
        page.out.resize(4096, 0);
        page.out
    }
}

const FORMAT: &str = "name: made_up\nID: 300\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:u64 number;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int minus;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] text;\toffset:20;\tsize:4;\tsigned:0;\n\
    \tfield:char fixed[4];\toffset:24;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"n=%llu m=%d t=%s f=%s\", REC->number, REC->minus, __get_str(text), REC->fixed\n";

/// Two CPUs with 60 events each, and 7 lost before the second page of the second.
fn make(endian: Endian, long: u8, packing: Packing) -> Vec<u8> {
    let m = Maker::new(endian, long);
    let cpus = [
        [m.page(1_000_000, 0, 30, None), m.page(1_030_000, 30, 30, None)].concat(),
        [m.page(1_000_500, 100, 30, None), m.page(1_040_500, 130, 30, Some(7))].concat(),
    ];
    if packing == Packing::V6 { v6(&m, &cpus) } else { v7(&m, &cpus, packing) }
}

fn start(m: &Maker, version: &[u8]) -> Maker {
    let mut f = m.fresh();
    f.raw(layout::MAGIC).raw(version).raw(&[u8::from(m.endian == Endian::Big), m.long]);
    f.uint(4096, 4);
    f
}

fn formats(m: &Maker) -> Vec<u8> {
    let mut f = m.fresh();
    f.uint(1, 4).raw(b"made\0").uint(1, 4).sized(FORMAT.as_bytes(), 8);
    f.out
}

fn header_info(m: &Maker) -> Vec<u8> {
    let mut f = m.fresh();
    f.raw(layout::HEADER_PAGE).sized(m.header_page().as_bytes(), 8).raw(layout::HEADER_EVENT).sized(b"", 8);
    f.out
}

const COMMS: &[u8] = b"40 forty\n41 forty one\n";
const TGIDS: &[u8] = b"40 39\n42 39\n";

fn v6(m: &Maker, cpus: &[Vec<u8>; 2]) -> Vec<u8> {
    let mut f = start(m, b"6\0");
    f.raw(&header_info(m)).uint(0, 4).raw(&formats(m)).sized(b"", 4).sized(b"", 4).sized(COMMS, 8);
    f.uint(2, 4).raw(layout::V6_OPTIONS);
    f.uint(layout::option::SAVED_TGIDS.into(), 2).sized(TGIDS, 4);
    f.uint(layout::option::UNAME.into(), 2).sized(b"Made Up 1.0\0", 4);
    f.uint(layout::option::TRACECLOCK.into(), 2).sized(b"", 4).uint(0, 2).raw(layout::V6_FLYRECORD);
    let first = (f.out.len() + 32 + 8 + 12).next_multiple_of(4096);
    f.uint(first as u64, 8).uint(8192, 8).uint(first as u64 + 8192, 8).uint(8192, 8);
    f.sized(b"local [boot]", 8);
    f.out.resize(first, 0);
    f.raw(&cpus.concat());
    f.out
}

fn pack(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::V7Zlib => {
            let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            z.write_all(bytes).unwrap();
            z.finish().unwrap()
        }
        Packing::V7Zstd => zstd::bulk::compress(bytes, 3).unwrap(),
        _ => bytes.to_vec(),
    }
}

fn v7(m: &Maker, cpus: &[Vec<u8>; 2], packing: Packing) -> Vec<u8> {
    let (name, flags): (&[u8], u64) = match packing {
        Packing::V7Zlib => (b"zlib\0\x31\0", 1),
        Packing::V7Zstd => (b"zstd\0\x31\0", 1),
        _ => (b"none\0\0", 0),
    };
    let mut f = start(m, b"7\0");
    f.raw(name);
    let options_at = f.out.len();
    f.uint(0, 8);
    let section = |f: &mut Maker, id: u16, bytes: &[u8]| {
        let at = f.out.len() as u64;
        let packed = pack(packing, bytes);
        f.uint(id.into(), 2).uint(flags, 2).uint(0, 4);
        if flags == 1 {
            f.uint(packed.len() as u64 + 8, 8)
                .uint(packed.len() as u64, 4)
                .uint(bytes.len() as u64, 4)
                .raw(&packed);
        } else {
            f.sized(bytes, 8);
        }
        at
    };
    let info = section(&mut f, 16, &header_info(m));
    let events = section(&mut f, 18, &formats(m));
    let mut comms = m.fresh();
    comms.sized(COMMS, 8);
    let comms = section(&mut f, 21, &comms.out);
    let buffer = f.out.len() as u64;
    f.uint(3, 2).uint(flags, 2).uint(0, 4).uint(0, 8);
    let mut table = Vec::new();
    for pages in cpus {
        let at = f.out.len();
        if flags == 1 {
            f.uint(2, 4);
            for page in pages.chunks(4096) {
                let packed = pack(packing, page);
                f.uint(packed.len() as u64, 4).uint(4096, 4).raw(&packed);
            }
        } else {
            f.raw(pages);
        }
        table.push((at as u64, (f.out.len() - at) as u64));
    }
    let mut options = m.fresh();
    for (id, at) in [(16, info), (18, events), (21, comms)] {
        options.uint(id, 2).uint(8, 4).uint(at, 8);
    }
    options.uint(layout::option::SAVED_TGIDS.into(), 2).sized(TGIDS, 4);
    options.uint(layout::option::UNAME.into(), 2).sized(b"Made Up 1.0\0", 4);
    let mut option = m.fresh();
    option.uint(buffer, 8).raw(b"\0boot\0").uint(4096, 4).uint(2, 4);
    for (cpu, (at, size)) in table.iter().enumerate() {
        option.uint(cpu as u64, 4).uint(*at, 8).uint(*size, 8);
    }
    options.uint(3, 2).sized(&option.out, 4).uint(0, 2).uint(8, 4).uint(0, 8);
    let at = f.out.len() as u64;
    f.uint(0, 2).uint(0, 2).uint(0, 4).sized(&options.out, 8);
    let mut offset = m.fresh();
    offset.uint(at, 8);
    f.out[options_at..options_at + 8].copy_from_slice(&offset.out);
    f.out
}

#[derive(Default)]
struct Keep {
    clock: Option<Clock>,
    machine: Option<String>,
    threads: Vec<(i32, Option<i32>, Option<String>)>,
    events: Vec<(u64, u32, i32, u64, i64, String, String)>,
    lost: Vec<(u32, Option<u64>, usize)>,
}

impl Sink for Keep {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.clock = Some(head.clock);
        self.machine = head.machine.clone();
        Ok(())
    }
    fn thread(&mut self, t: &ThreadInfo<'_>) -> io::Result<()> {
        self.threads.push((t.tid, t.tgid, t.name.map(|n| String::from_utf8_lossy(n).into_owned())));
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let text = |i| match event.value(kind, i) {
            Some(Value::Str(s)) => String::from_utf8_lossy(s).into_owned(),
            other => format!("{other:?}"),
        };
        let int = |i| event.int(kind, i).unwrap_or(i64::MIN);
        self.events.push((event.ts, event.cpu, event.tid, int(0) as u64, int(1), text(2), text(3)));
        Ok(())
    }
    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.lost.push((cpu, count, self.events.len()));
        Ok(())
    }
}

fn read(bytes: &[u8], order: Order) -> (Keep, ReadReport) {
    let mut keep = Keep::default();
    let report = TraceDat::open(bytes).unwrap().read(order, &mut keep).unwrap();
    (keep, report)
}

fn all() -> impl Iterator<Item = (Endian, u8, Packing)> {
    let machines = [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)];
    let packings = [Packing::V6, Packing::V7None, Packing::V7Zlib, Packing::V7Zstd];
    machines.into_iter().flat_map(move |(endian, long)| packings.map(|packing| (endian, long, packing)))
}

#[test]
fn every_machine_and_compression_gives_the_same_events() {
    for (endian, long, packing) in all() {
        let what = format!("{endian:?} {long} {packing:?}");
        let (keep, report) = read(&make(endian, long, packing), Order::Time);
        assert_eq!(
            (keep.clock, keep.machine.as_deref()),
            (Some(Clock::Boottime), Some("Made Up 1.0")),
            "{what}"
        );
        assert_eq!(report.damage, [], "{what}");
        assert_eq!((report.events(), report.lost()), (120, 7), "{what}");
        assert!(keep.events.is_sorted_by_key(|e| (e.0, e.1)), "{what}");
        assert_eq!(keep.events[0], (1_001_000, 0, 40, 0, 0, "hello".into(), "ab".into()), "{what}");
        let last = keep.events.last().unwrap();
        assert_eq!(last, &(1_070_500, 1, 40, 159, -159, "hello".into(), "ab".into()), "{what}");
        // Told before the event that follows the gap, not elsewhere.
        assert_eq!(keep.lost.iter().map(|l| (l.0, l.1)).collect::<Vec<_>>(), [(1, Some(7))], "{what}");
        assert_eq!(keep.events[keep.lost[0].2].3, 130, "{what}");
        let forty_one = Some("forty one".to_owned());
        let want = [(40, Some(39), Some("forty".to_owned())), (41, None, forty_one), (42, Some(39), None)];
        assert_eq!(keep.threads, want, "{what}");
        let (any, _) = read(&make(endian, long, packing), Order::Any);
        assert_eq!(any.events.len(), 120, "{what}");
    }
}

#[test]
fn the_text_of_a_foreign_machines_recording_is_right() {
    let dir = tempfile::tempdir().unwrap();
    for (endian, long, packing) in all() {
        let path = dir.path().join("it.dat");
        std::fs::write(&path, make(endian, long, packing)).unwrap();
        let done = support::tracebridge()
            .args(["convert", "--format", "systrace", "-o", "-"])
            .arg(&path)
            .output()
            .unwrap();
        // Seven events were lost, which is not complete.
        assert_eq!(done.status.code(), Some(3), "{}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8_lossy(&done.stdout);
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(lines.len(), 121);
        let first =
            "           forty-40      (     39) [000] d..2.     0.001001: made_up: n=0 m=0 t=hello f=ab";
        assert_eq!(lines[0], first);
        assert!(lines.contains(&"CPU:1 [LOST 7 EVENTS]"));
    }
}

#[test]
fn a_file_cut_anywhere_opens_in_part_or_says_where_it_ends() {
    for (endian, long, packing) in all() {
        let whole = make(endian, long, packing);
        for n in 0..200 {
            let cut = &whole[..whole.len() * n / 200];
            match TraceDat::open(cut) {
                Err(error) => assert!(!error.to_string().is_empty()),
                Ok(dat) => {
                    let mut keep = Keep::default();
                    let report = dat.read(Order::Time, &mut keep).unwrap();
                    // The bytes behind the last page's events are padding.
                    let padding = packing == Packing::V6 && report.events() == 120;
                    assert!(report.is_lossy() || padding, "{packing:?} cut at {}", cut.len());
                    assert!(!report.damage.is_empty() || padding, "{packing:?} cut at {}", cut.len());
                }
            }
        }
    }
}

#[test]
fn a_table_that_names_the_same_bytes_twice_is_not_believed() {
    let mut file = make(Endian::Little, 8, Packing::V6);
    // The table behind `flyrecord`: u64 offset and u64 size of each CPU.
    let table = file.windows(10).position(|w| w == layout::V6_FLYRECORD).unwrap() + 10;
    file.copy_within(table..table + 16, table + 16);
    let len = file.len() - 8192;
    file.truncate(len);
    let (keep, report) = read(&file, Order::Time);
    assert_eq!(keep.events.len(), 60);
    assert!(report.damage[0].what.contains("more than once"), "{:?}", report.damage);
}

#[test]
fn changed_bytes_never_panic() {
    // A small generator of pseudo-random numbers (xorshift), so that every run tries the same.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (endian, long, packing) in all() {
        let whole = make(endian, long, packing);
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..=random() % 8 {
                let at = random() as usize % bytes.len();
                bytes[at] = if random() % 3 == 0 { 0xff } else { random() as u8 };
            }
            if let Ok(dat) = TraceDat::open(&bytes) {
                let _ = dat.read(Order::Time, &mut Keep::default());
            }
        }
    }
    for len in [1, 10, 100, 10_000] {
        let noise: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        assert!(TraceDat::open(&noise).is_err());
        let after_magic = [layout::MAGIC.as_slice(), b"6\0\0\x08\0\x10\0\0", &noise].concat();
        assert!(TraceDat::open(&after_magic).is_err());
    }
}

/// The fuzzer's first inputs, when asked for: `TRACEBRIDGE_WRITE_FUZZ_CORPUS=fuzz/corpus`.
#[test]
fn fuzz_corpus() {
    let Some(dir) = std::env::var_os("TRACEBRIDGE_WRITE_FUZZ_CORPUS") else { return };
    let dir = std::path::Path::new(&dir);
    let save = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(dir.join(target)).unwrap();
        std::fs::write(dir.join(target).join(name), bytes).unwrap();
    };
    for (endian, long, packing) in all() {
        let name = format!("{endian:?}-{long}-{packing:?}").to_lowercase();
        save("trace_dat", &name, &make(endian, long, packing));
        save("ftrace_page", &name, &Maker::new(endian, long).page(5, 0, 3, Some(7))[..200]);
    }
    save("event_format", "made_up", FORMAT.as_bytes());
    save(
        "print_fmt",
        "flags",
        br#""%s %5d", __print_flags(REC->b, "|", { 1, "A" }, { 2, "B" }), REC->a ? 1 : -2"#,
    );
    save(
        "print_fmt",
        "pointers",
        br#""%pS %pI4 %*ph %s", (void *)REC->u, REC->addr, 3, REC->addr, __get_str(d)"#,
    );
}
