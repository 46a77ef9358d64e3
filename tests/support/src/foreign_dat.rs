//! Makes small trace.dat files of machines that nobody here has: both byte orders, both word sizes, both
//! versions, every compression. Written from trace-cmd.dat.v6(5), trace-cmd.dat.v7(5) and the kernel's
//! ring_buffer.h, without the product's own tables.

use std::io::Write;

/// The first bytes of every trace.dat.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// Stands before version 6's table of CPUs.
pub const FLYRECORD: &[u8; 10] = b"flyrecord\0";
/// Options of trace-cmd; 32 is gpuvis' number for `saved_tgids`.
const OPTION_TRACECLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;
const OPTION_SAVED_TGIDS: u16 = 32;

/// The byte order of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    Little,
    Big,
}

/// The file's version and compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    V6,
    V7None,
    V7Zlib,
    V7Zstd,
}

/// Writes numbers as some machine would.
#[derive(Clone)]
pub struct Maker {
    endian: Endian,
    long: u8,
    out: Vec<u8>,
}

impl Maker {
    pub fn new(endian: Endian, long: u8) -> Maker {
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
        let long = self.long;
        let data = 8 + u32::from(self.long);
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{};\tsigned:0;\n",
            4096 - data
        )
    }

    /// A page of events, 1 µs apart: number `first` to `first + count`.
    pub fn page(&self, ts: u64, first: u64, count: u64, lost: Option<u64>) -> Vec<u8> {
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

/// The `format` file of the event.
pub const FORMAT: &str = "name: made_up\nID: 300\nformat:\n\
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
pub fn make(endian: Endian, long: u8, packing: Packing) -> Vec<u8> {
    let m = Maker::new(endian, long);
    let cpus = [
        [m.page(1_000_000, 0, 30, None), m.page(1_030_000, 30, 30, None)].concat(),
        [m.page(1_000_500, 100, 30, None), m.page(1_040_500, 130, 30, Some(7))].concat(),
    ];
    if packing == Packing::V6 { v6(&m, &cpus) } else { v7(&m, &cpus, packing) }
}

fn start(m: &Maker, version: &[u8]) -> Maker {
    let mut f = m.fresh();
    f.raw(MAGIC).raw(version).raw(&[u8::from(m.endian == Endian::Big), m.long]);
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
    f.raw(b"header_page\0").sized(m.header_page().as_bytes(), 8).raw(b"header_event\0").sized(b"", 8);
    f.out
}

const COMMS: &[u8] = b"40 forty\n41 forty one\n";
const TGIDS: &[u8] = b"40 39\n42 39\n";

fn v6(m: &Maker, cpus: &[Vec<u8>; 2]) -> Vec<u8> {
    let mut f = start(m, b"6\0");
    f.raw(&header_info(m)).uint(0, 4).raw(&formats(m)).sized(b"", 4).sized(b"", 4).sized(COMMS, 8);
    f.uint(2, 4).raw(b"options  \0");
    f.uint(OPTION_SAVED_TGIDS.into(), 2).sized(TGIDS, 4);
    f.uint(OPTION_UNAME.into(), 2).sized(b"Made Up 1.0\0", 4);
    f.uint(OPTION_TRACECLOCK.into(), 2).sized(b"", 4).uint(0, 2).raw(FLYRECORD);
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
    options.uint(OPTION_SAVED_TGIDS.into(), 2).sized(TGIDS, 4);
    options.uint(OPTION_UNAME.into(), 2).sized(b"Made Up 1.0\0", 4);
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

/// Every machine with every version and compression.
pub fn all() -> impl Iterator<Item = (Endian, u8, Packing)> {
    let machines = [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)];
    let packings = [Packing::V6, Packing::V7None, Packing::V7Zlib, Packing::V7Zstd];
    machines.into_iter().flat_map(move |(endian, long)| packings.map(|packing| (endian, long, packing)))
}
