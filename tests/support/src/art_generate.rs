//! Writes a well-formed ART method trace, version 3 with both clocks, of any size: for races, benchmarks and
//! viewers. The same numbers give the same file.

use std::io::{self, Write};

/// How large a trace to write.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Enters and exits together.
    pub records: u64,
    /// Threads that take turns.
    pub threads: u64,
    /// Methods, some called far more often than others.
    pub methods: u64,
    /// The most calls open in one thread.
    pub depth: u64,
}

/// The size that docs/figures.md refers to: 72 MB.
pub const USUAL: Size = Size { records: 5_000_000, threads: 8, methods: 20_000, depth: 60 };

/// The shape of a generated trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Short names; threads take turns of some 16 records and are equally deep.
    ShortTurns,
    /// Names of some 150 bytes, as Kotlin's compiler makes them; threads run for some 4,000 records at a
    /// time; every other thread is never deeper than [`SHALLOW`].
    LongRuns,
}

impl Shape {
    /// All shapes, with the names that benchmarks print.
    pub const ALL: [(Shape, &str); 2] = [(Shape::ShortTurns, "short turns"), (Shape::LongRuns, "long runs")];

    /// The mean number of records that a thread writes before another one does.
    fn turn(self) -> u64 {
        if self == Shape::ShortTurns { 16 } else { 4_000 }
    }

    /// The most calls open in the thread with this index, of at most `depth`.
    fn depth(self, thread: usize, depth: u64) -> u64 {
        if self == Shape::LongRuns && thread % 2 == 1 { depth.min(SHALLOW) } else { depth }
    }
}

/// The most calls open in a shallow thread.
const SHALLOW: u64 = 4;

/// A small generator of random numbers (xorshift64*): the same file every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }
}

#[derive(Default, Clone)]
struct Thread {
    stack: Vec<u32>,
    cpu: u32,
}

/// Writes the trace in the shape [`Shape::ShortTurns`].
pub fn write(out: &mut impl Write, size: Size) -> io::Result<()> {
    write_shape(out, size, Shape::ShortTurns)
}

/// Writes the trace.
pub fn write_shape(out: &mut impl Write, size: Size, shape: Shape) -> io::Result<()> {
    let Size { records, threads, methods, depth } = size;
    header(out, size, shape)?;

    let mut random = Random(0x7ace_b21d_6e00_0001);
    let mut state = vec![Thread::default(); threads as usize];
    let mut wall = 0u32;
    let mut open = 0u64;
    let mut id = 0;
    for left in (1..=records).rev() {
        if random.below(shape.turn()) == 0 {
            id = random.below(threads) as usize;
        }
        // Towards the end everything that is open returns.
        if open >= left {
            id = (0..state.len()).find(|n| !state[*n].stack.is_empty()).unwrap_or(id);
        }
        let thread = &mut state[id];
        let step = random.below(3) as u32;
        wall += step;
        thread.cpu += step;
        let full = thread.stack.len() as u64 >= shape.depth(id, depth) || open >= left;
        let enter = thread.stack.is_empty() || (!full && random.below(2) == 0 && open + 2 <= left);
        let word = if enter {
            // Some methods are called far more often than others, as in programs.
            let scale = 1 + random.below(methods);
            let method = (random.below(scale) as u32) << 2;
            thread.stack.push(method);
            open += 1;
            method
        } else {
            open -= 1;
            thread.stack.pop().unwrap_or_default() | 1
        };
        out.write_all(&(id as u16 + 1).to_le_bytes())?;
        for field in [word, thread.cpu, wall] {
            out.write_all(&field.to_le_bytes())?;
        }
    }
    out.flush()
}

fn header(out: &mut impl Write, size: Size, shape: Shape) -> io::Result<()> {
    let Size { records, threads, methods, .. } = size;
    write!(out, "*version\n3\ndata-file-overflow=false\nclock=dual\nelapsed-time-usec={records}\n")?;
    write!(out, "num-method-calls={records}\nclock-call-overhead-nsec=100\nvm=art\npid=4242\n*threads\n")?;
    for n in 1..=threads {
        let name = if n == 1 { "main".to_owned() } else { format!("worker-{n}") };
        writeln!(out, "{n}\t{name}")?;
    }
    writeln!(out, "*methods")?;
    for n in 0..methods {
        let package = n / 400;
        let class = n / 20;
        match shape {
            Shape::ShortTurns => writeln!(
                out,
                "{:#x}\tcom.example.p{package}.Class{class}\tmethod{n}\t(I)V\tClass{class}.java",
                n << 2
            )?,
            Shape::LongRuns => writeln!(
                out,
                "{:#x}\tcom.example.application.feature{package}.presentation.internal.\
                 CustomerAccountOverviewController{class}$onViewCreated$1$invokeSuspend$$inlined$collect$1\t\
                 emitNextStateWhenLifecycleIsAtLeastStarted{n}\t(Landroid/content/Context;Ljava/util/List;\
                 Lkotlin/coroutines/Continuation;)Ljava/lang/Object;\tCustomerAccountOverviewController{class}.kt",
                n << 2
            )?,
        }
    }
    write!(out, "*end\nSLOW")?;
    out.write_all(&3u16.to_le_bytes())?;
    out.write_all(&32u16.to_le_bytes())?;
    out.write_all(&1_000_000u64.to_le_bytes())?;
    out.write_all(&14u16.to_le_bytes())?;
    out.write_all(&[0; 14])
}
