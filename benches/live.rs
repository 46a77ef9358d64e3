//! The cost of following a recording: from the bytes of its stream to batches, for each event; and the memory
//! of a recording that goes on.
//!
//! `cargo bench --bench live`. It runs in turns with the reading of the whole recording by the same reader,
//! whose events nobody takes. Where there is a corpus, its recordings of real kernels are followed too.
//!
//! `cargo bench --bench live -- --minutes 20` follows a made-up recording of 100,000 events a second for so
//! long, with the server and a browser that takes every batch, and prints the memory and the CPU time of
//! each minute. `-- --hostile` does so for a million threads, names and slices that never end.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use support::launch_scenario::Launch;
use support::recorder_streams::{DatParts, frame, marker_stream};
use support::scenario::{Era, KernelEvent, Moment, PID, Random, START, Scenario};
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, Sink};
use tracebridge::internals::live::{
    KeptError, Live, LiveCommand, LiveHost, LiveMessage, LiveOptions, LiveServer,
};

mod cpu_time;

use cpu_time::{median, median_ratio, ns_per_call};

const ROUNDS: usize = 15;
/// The rate at which the share of a CPU is told, events a second.
const RATE: f64 = 100_000.0;
/// The time that a made-up recording takes until it begins anew.
const TEMPLATE_NS: u64 = 1_000_000_000;
/// Time between two rounds of the recorder; every other one is a batch.
const ROUND: Duration = Duration::from_millis(50);
const MINUTE: Duration = Duration::from_secs(60);
const MIB: f64 = 1_048_576.0;

struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    if args.iter().any(|arg| arg == "--hostile") {
        return hostile();
    }
    if let Some(minutes) = value("--minutes") {
        return follow_for(minutes.parse().expect("a number of minutes"));
    }
    let launch = Launch { seed: 3, day: 0, slow_percent: 0, pace_percent: 100 }.make().dat;
    follow("a simulated launch", &launch);
    follow("100,000 events a second of 4 threads", &template(1));
    follow("100,000 events a second of 2,000 threads", &template(500));
    let Some(corpus) = support::corpus() else { return };
    let files = std::fs::read_dir(corpus.join("trace-cmd")).unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| !path.to_string_lossy().contains("v7")) {
        follow(&path.file_name().unwrap().to_string_lossy(), &std::fs::read(&path).unwrap());
    }
}

fn options() -> LiveOptions {
    LiveOptions {
        keep: Duration::from_secs(60),
        app: Some("com.example.app".into()),
        triggers: vec!["slice none > 1s".parse().unwrap()],
        title: String::new(),
    }
}

fn count(dat: &[u8]) -> u64 {
    let mut count = Count(0);
    TraceDat::open(dat).unwrap().read(Order::Time, &mut count).unwrap();
    count.0
}

/// Measures a recording, in rounds of 50 ms and batches of 100 ms of its own time.
fn follow(name: &str, dat: &[u8]) {
    let pieces = DatParts::of(dat).stream(&mut Random(1));
    let events = count(dat) as f64;
    let followed = || {
        let mut live = Live::new(options());
        let mut bytes = 0;
        for pieces in pieces.chunks(2) {
            pieces.iter().for_each(|piece| live.feed(piece).unwrap());
            bytes += live.batch(false).len();
        }
        bytes + live.batch(true).len()
    };
    let mut read = Vec::new();
    let mut live = Vec::new();
    for _ in 0..ROUNDS {
        read.push(
            ns_per_call(1, || {
                black_box(count(dat));
            }) / events,
        );
        live.push(
            ns_per_call(1, || {
                black_box(followed());
            }) / events,
        );
    }
    let ratio = median_ratio(&live, &read);
    let ns = median(live);
    let percent = ns * RATE / 1e9 * 100.0;
    println!(
        "{name:<48} {events:>8} events {ns:>7.0} CPU-ns each, {ratio:>5.1} x reading; {percent:.1} % of a CPU at \
         {RATE} events/s"
    );
}

/// A second of an app on four CPUs, on each of which so many threads take turns: 100,000 events, of which
/// half are markers.
fn template(threads: i32) -> Vec<u8> {
    let scenario = Scenario { threads: 4, records_mono: false, ..Scenario::new(5, Era::ArtMono) };
    let mut moments = Vec::new();
    for cpu in 0..4 {
        for step in 0..6_250 {
            let tid = PID + 3 * cpu as i32 + 20 * (step as i32 % threads);
            let at = START + step * 160_000 + u64::from(cpu) * 37;
            let mut add =
                |after: u64, tid: i32, event| moments.push(Moment { ts: at + after, cpu, tid, event });
            let idle = (0, format!("swapper/{cpu}"));
            let thread = (tid, format!("worker {tid}"));
            add(0, 0, KernelEvent::Switch { prev: idle.clone(), next: thread.clone() });
            add(20_000, tid, KernelEvent::Marker(format!("B|{PID}|work {}", step % 40)));
            add(60_000, tid, KernelEvent::Marker(format!("E|{PID}")));
            add(90_000, tid, KernelEvent::Switch { prev: thread, next: idle });
        }
    }
    moments.sort_by_key(|moment| moment.ts);
    scenario.dat(&moments)
}

/// A recording that plays its template again and again, each time a second later.
struct Endless {
    parts: DatParts,
    /// CPU, page, in the order of time.
    pages: Vec<(usize, usize)>,
    next: usize,
    turns: u64,
}

impl Endless {
    fn new(dat: &[u8]) -> Endless {
        let parts = DatParts::of(dat);
        let places = parts.cpus.iter().enumerate();
        let mut pages: Vec<(usize, usize)> =
            places.flat_map(|(cpu, pages)| (0..pages.len()).map(move |at| (cpu, at))).collect();
        pages.sort_by_key(|(cpu, at)| DatParts::page_ts(&parts.cpus[*cpu][*at]));
        Endless { parts, pages, next: 0, turns: 0 }
    }

    /// The frames of the pages that begin before the time `until` since the start.
    fn frames(&mut self, until: Duration) -> Vec<u8> {
        let until = START + until.as_nanos() as u64;
        let mut out = Vec::new();
        loop {
            let (cpu, at) = self.pages[self.next];
            let mut page = self.parts.cpus[cpu][at].clone();
            let ts = DatParts::page_ts(&page) + self.turns * TEMPLATE_NS;
            if ts >= until {
                break;
            }
            page[..8].copy_from_slice(&ts.to_le_bytes());
            out.extend(frame(b'P', cpu as u32, &page));
            self.next = (self.next + 1) % self.pages.len();
            self.turns += u64::from(self.next == 0);
        }
        // What the pages hold behind it comes with the next batch.
        out.extend(frame(b'R', 0, &until.to_le_bytes()));
        out
    }
}

/// A recording that nobody asks for anything.
struct NoHost;

impl LiveHost for NoHost {
    fn kept_page(&self, _: Option<u64>, _: Option<u64>) -> Result<Vec<u8>, KeptError> {
        Err(KeptError::Nothing)
    }

    fn command(&self, _: LiveCommand) {}
}

/// Follows an endless recording at its own speed, with a server and a browser.
fn follow_for(minutes: u32) {
    let template = template(500);
    let mut endless = Endless::new(&template);
    let events = count(&template);
    let server = LiveServer::start(0, Duration::from_secs(60), Arc::new(NoHost)).unwrap();
    let address = server.address();
    let browser = std::thread::spawn(move || take_everything(&address));
    let mut live = Live::new(options());
    live.feed(&endless.parts.begin()).unwrap();
    println!(
        "{events} events a second; minute, resident memory in MiB, CPU of this program and the client in %"
    );
    let start = Instant::now();
    let mut told = 0;
    let mut cpu = cpu_seconds();
    for round in 1.. {
        std::thread::sleep((start + ROUND * round).saturating_duration_since(Instant::now()));
        live.feed(&endless.frames(ROUND * round)).unwrap();
        if round % 2 == 0 {
            for message in live.batch(false) {
                match message {
                    LiveMessage::Batch(batch) => server.send_batch(batch),
                    LiveMessage::Text(text) => server.send_text(&text),
                    LiveMessage::Triggered(_) => {}
                }
            }
        }
        let minute = (ROUND * round).as_secs() / MINUTE.as_secs();
        if minute > told {
            told = minute;
            let now = cpu_seconds();
            println!(
                "{minute:>3} {:>6.1} {:>5.1}",
                resident_mib(),
                (now - cpu) / MINUTE.as_secs_f64() * 100.0
            );
            cpu = now;
            if minute >= u64::from(minutes) {
                break;
            }
        }
    }
    server.finish(Duration::from_secs(1));
    println!("the browser got {:.1} MiB", browser.join().unwrap() / MIB);
}

/// Opens the WebSocket of a page, and returns how many bytes came.
fn take_everything(address: &str) -> f64 {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, token) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let token = token.trim_end_matches('/');
    write!(
        stream,
        "GET /{token}/live HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    .unwrap();
    let mut part = vec![0; 1 << 16];
    let mut got = 0.0;
    while let Ok(read) = stream.read(&mut part) {
        if read == 0 {
            break;
        }
        got += read as f64;
    }
    got
}

/// The thread and the text of the marker with this number.
type EventOf = dyn Fn(i32) -> (i32, String);

/// Follows streams of things that never end, and prints the memory after each tenth of them.
fn hostile() {
    const COUNT: i32 = 1_000_000;
    let threads = |n: i32| (PID + n, format!("B|{PID}|begun"));
    let names = |n: i32| (PID, format!("S|{PID}|name {n}|{n}"));
    let slices = |n: i32| (PID, format!("B|{PID}|slice {n}"));
    let cases: [(&str, &EventOf); 3] =
        [("threads", &threads), ("names", &names), ("slices of a thread", &slices)];
    for (what, event) in cases {
        let mut live = Live::new(LiveOptions { keep: Duration::from_secs(1), ..options() });
        let before = resident_mib();
        print!("{COUNT} {what}, MiB more than {before:.0}:");
        let mut largest = 0;
        for part in 0..10 {
            let range = part * COUNT / 10..(part + 1) * COUNT / 10;
            let first = range.start as u64;
            let mut pieces = marker_stream(first, range.map(event), 20_000_000);
            // It never ends, and its head comes once.
            pieces.pop();
            for piece in pieces.iter().skip(usize::from(part > 0)) {
                live.feed(piece).unwrap();
                for message in live.batch(false) {
                    if let LiveMessage::Batch(batch) = message {
                        largest = largest.max(batch.len());
                    }
                }
            }
            print!(" {:.0}", resident_mib() - before);
            io::stdout().flush().unwrap();
        }
        println!("; the largest batch has {} KiB", largest >> 10);
    }
}

/// The CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    now.tv_sec() as f64 + now.tv_nsec() as f64 / 1e9
}

/// The memory that this process has, MiB.
fn resident_mib() -> f64 {
    let pages: f64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / MIB
}
