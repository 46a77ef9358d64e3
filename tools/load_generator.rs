//! Makes kernel events for measuring a recorder: pairs of processes that bounce a byte over two pipes (as
//! fast as the machine can), or markers at a steady rate.
//!
//! ```text
//! load_generator bounce --pairs 2 --seconds 10
//! load_generator markers --rate 200000 --seconds 10 [--tracefs DIR]
//! ```
//!
//! Prints one JSON line: what was done.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::process::parent_id;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: load_generator bounce [--pairs N] [--seconds S]
       load_generator markers [--rate PER_SECOND] [--seconds S] [--tracefs DIR]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str, default: f64| value(name).map_or(Some(default), |v| v.parse().ok());
    let (Some(seconds), Some(pairs), Some(rate)) =
        (number("--seconds", 10.0), number("--pairs", 2.0), number("--rate", 10_000.0))
    else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let time = Duration::from_secs_f64(seconds);
    let done = match args.first().map(String::as_str) {
        Some("bounce") => bounce(pairs as usize, time),
        Some("half") => half(time),
        Some("markers") => markers(rate, time, value("--tracefs")),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load_generator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bounce(pairs: usize, time: Duration) -> io::Result<()> {
    let mut halves = Vec::new();
    for _ in 0..pairs {
        let (there_out, mut there_in) = io::pipe()?;
        let (back_out, back_in) = io::pipe()?;
        there_in.write_all(b"x")?;
        halves.push(spawn_half(time, there_out.into(), back_in.into())?);
        halves.push(spawn_half(time, back_out.into(), there_in.into())?);
    }
    let mut trips = 0;
    for half in halves {
        // Each half counts on stderr, since its stdout is the pipe.
        let out = half.wait_with_output()?;
        trips += String::from_utf8_lossy(&out.stderr).trim().parse::<u64>().unwrap_or(0);
    }
    println!("{{\"bounces\":{trips}}}");
    Ok(())
}

fn spawn_half(time: Duration, input: Stdio, output: Stdio) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["half", "--seconds", &time.as_secs_f64().to_string()])
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
}

/// Hands each byte on until the time is over, or until the other half or the program that started both is
/// gone. Two halves would else go on without that program, if it is killed.
fn half(time: Duration) -> io::Result<()> {
    let until = Instant::now() + time;
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut byte = [0];
    let mut count = 0u64;
    let parent = parent_id();
    while input.read(&mut byte)? == 1 && output.write_all(&byte).and_then(|()| output.flush()).is_ok() {
        count += 1;
        // Asked for seldom: it is no part of the load.
        if count.is_multiple_of(256) && (Instant::now() >= until || parent_id() != parent) {
            break;
        }
    }
    eprintln!("{count}");
    Ok(())
}

/// Writes counters at a steady rate, in bursts of a millisecond.
fn markers(rate: f64, time: Duration, tracefs: Option<String>) -> io::Result<()> {
    let dir = tracefs.unwrap_or_else(|| "/sys/kernel/tracing".to_owned());
    let mut marker = OpenOptions::new().write(true).open(format!("{dir}/trace_marker"))?;
    let pid = std::process::id();
    let start = Instant::now();
    let mut written = 0u64;
    let mut refused = 0u64;
    loop {
        let elapsed = start.elapsed().min(time);
        let due = (elapsed.as_secs_f64() * rate) as u64;
        while written + refused < due {
            match marker.write_all(format!("C|{pid}|load|{}", written + refused).as_bytes()) {
                Ok(()) => written += 1,
                Err(_) => refused += 1,
            }
        }
        if elapsed >= time {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{{\"written\":{written},\"refused\":{refused}}}");
    Ok(())
}
