//! A recording's head and any pages, as a trace.dat v6 and as a compressed v7: both have the same events,
//! names and counts.
#![no_main]

use std::io::{self, Cursor};

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, ReadReport, Sink, ThreadInfo, event_catalog};
use tracebridge::ids::Cpu;
use tracebridge::internals::{CpuData, Metadata, option, write_v7};

#[path = "../../tests/support/src/foreign_dat.rs"]
mod foreign_dat;

const PAGE_BYTES: usize = 4096;

/// Everything that a reader pushes, as text.
#[derive(Default)]
struct Transcript(Vec<u8>);

impl Sink for Transcript {
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.0.extend(format!("{:?}\n", (thread.tid, thread.tgid, thread.name)).bytes());
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let Event { ts, cpu, tid, flags, preempt_count, .. } = event;
        self.0.extend(format!("{:?} ", (ts, cpu, tid, flags, preempt_count)).bytes());
        event_catalog::render(event, kind, &mut self.0);
        self.0.push(b'\n');
        Ok(())
    }
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.0.extend(format!("lost {:?}\n", (cpu, count)).bytes());
        Ok(())
    }
}

fn read(file: &[u8], order: Order) -> Option<(Vec<u8>, ReadReport)> {
    let mut transcript = Transcript::default();
    let dat = TraceDat::open(file).ok()?;
    let report = dat.read(order, &mut transcript).expect("the sink never fails");
    Some((transcript.0, report))
}

/// The head: texts with a fixed form, and names that the input gives.
fn metadata(names: &[u8]) -> Metadata {
    Metadata {
        long_size: 8,
        page_size: PAGE_BYTES as u32,
        header_page: b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
            .to_vec(),
        event_formats: vec![("made".into(), vec![foreign_dat::FORMAT.as_bytes().to_vec()])],
        kallsyms: b"ffffffff81000000 T f\n".to_vec(),
        comms: names.to_vec(),
        options: vec![(option::SAVED_TGIDS, b"40 7\n41 7\n".to_vec())],
        clock: b"local [boot]".to_vec(),
        ..Metadata::default()
    }
}

// The first byte says how many CPUs there are, the second how long the names are, which come next. The rest
// is pages: of each only as many bytes as the input has, behind two bytes with their number.
fuzz_target!(|data: &[u8]| {
    let Some(([cpus, names], rest)) = data.split_first_chunk() else { return };
    let cpus = usize::from(cpus % 3) + 1;
    let (names, mut rest) = rest.split_at(rest.len().min(usize::from(*names)));
    let mut pages = vec![Vec::new(); cpus];
    let mut cpu = 0;
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len)).min(PAGE_BYTES).min(after.len());
        let end = pages[cpu].len() + PAGE_BYTES;
        pages[cpu].extend_from_slice(&after[..len]);
        pages[cpu].resize(end, 0);
        rest = &after[len..];
        cpu = (cpu + 1) % cpus;
    }
    let head = metadata(names);
    let empty = head.v6(&vec![CpuData::default(); cpus]).bytes.len().next_multiple_of(PAGE_BYTES) as u64;
    let mut at = empty;
    let table: Vec<CpuData> = pages
        .iter()
        .map(|pages| {
            let cpu = CpuData { offset: at, size: pages.len() as u64 };
            at += cpu.size;
            cpu
        })
        .collect();
    let v6 = head.v6(&table);
    let mut file = v6.bytes.clone();
    file.resize(empty as usize, 0);
    pages.iter().for_each(|pages| file.extend_from_slice(pages));

    let mut packed = Cursor::new(Vec::new());
    let sizes: Vec<u64> = pages.iter().map(|pages| pages.len() as u64).collect();
    let mut fetch = |cpu: usize, at: u64, out: &mut [u8]| {
        out.copy_from_slice(&pages[cpu][at as usize..at as usize + out.len()]);
        Ok(())
    };
    write_v7(&mut packed, &v6.bytes, &v6.parts, &sizes, &mut fetch).expect("writing to memory");

    for order in [Order::Any, Order::Time] {
        let (Some(old), Some(new)) = (read(&file, order), read(packed.get_ref(), order)) else {
            panic!("a version is not read");
        };
        assert!(
            old.0 == new.0,
            "{}\n---\n{}",
            String::from_utf8_lossy(&old.0),
            String::from_utf8_lossy(&new.0)
        );
        assert_eq!(
            (&old.1.cpus, old.1.first_ts, old.1.last_ts),
            (&new.1.cpus, new.1.first_ts, new.1.last_ts)
        );
        assert_eq!(old.1.damage.len(), new.1.damage.len(), "{:?}\n{:?}", old.1.damage, new.1.damage);
    }
});
