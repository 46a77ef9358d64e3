//! The part of Android's system_server: it starts the app, and says when the launch began and ended.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::markers::Markers;
use super::stand_in::{become_package, set_comm};
use super::zygote::Zygote;
use super::{Args, Release, now_ns, work};

/// The number of the launch, as Android counts them since it was booted.
const LAUNCH: u32 = 7;
/// Size of the file from which the app loads its code, bytes.
const APK_BYTES: usize = 3 << 20;

/// Plays a launch from the request to the first frame, and prints what it took.
pub fn play(args: &Args) -> io::Result<()> {
    become_package("system_server");
    set_comm("system_server");
    let apk = args.output.with_extension("apk");
    write_apk(&apk)?;
    let mut zygote = args.art.as_deref().map(|art| Zygote::start(art, args)).transpose()?;
    let markers = Markers::open(args.tracefs.as_deref());
    let launching = format!("launching: {}", args.package);
    let numbered = format!("launchingActivity#{LAUNCH}");
    let mut begin_ns = now_ns();
    match args.release {
        Release::Android9 => {}
        Release::Android10 | Release::Android12 => {
            let _slice = markers.slice("MetricsLogger:launchObserverNotifyIntentStarted");
            work(300);
        }
    }
    if args.release != Release::Android10 {
        begin_ns = now_ns();
    }
    match args.release {
        Release::Android12 => markers.async_begin(&numbered, LAUNCH),
        Release::Android9 | Release::Android10 => markers.async_begin(&launching, 0),
    }
    let mut app = {
        let _slice = markers.slice("startActivityInner");
        work(1500);
        let _slice = markers.slice(&format!("startProcess: {}", args.package));
        match zygote.take() {
            Some(zygote) => zygote.fork_app(args)?,
            None => start_app(args)?,
        }
    };
    let mut said = Value::Null;
    let mut to_app = app.stdin.take();
    let from_app = app.stdout.take();
    let mut end_ns = None;
    for line in from_app.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let line = line?;
        match line.as_str() {
            "attach" => {
                let _slice = markers.slice("attachApplicationLocked");
                work(1200);
                if let Some(to_app) = &mut to_app {
                    writeln!(to_app, "bind")?;
                }
            }
            "drawn" => {
                match args.release {
                    Release::Android12 => markers.async_end(&numbered, LAUNCH),
                    Release::Android9 | Release::Android10 => markers.async_end(&launching, 0),
                }
                end_ns = Some(now_ns());
                work(400);
                finish(&markers, args, &numbered);
            }
            other => said = serde_json::from_str(other)?,
        }
    }
    let status = app.wait()?;
    fs::remove_file(&apk)?;
    if args.art.is_some() {
        Zygote::clean_up(args)?;
    }
    if !status.success() {
        return Err(io::Error::other(format!("the app ended with {status}")));
    }
    println!(
        "{}",
        json!({
            "package": args.package, "type": "cold", "clock": "boot", "begin_ns": begin_ns,
            "end_ns": end_ns, "app": said,
        })
    );
    Ok(())
}

/// Writes the markers that follow the end of the launch.
fn finish(markers: &Markers, args: &Args, numbered: &str) {
    if args.release == Release::Android12 {
        markers.instant(&format!("{numbered}:completed-cold:{}", args.package));
    }
    if args.release != Release::Android9 {
        let _slice = markers.slice("MetricsLogger:launchObserverNotifyActivityLaunchFinished");
        work(200);
    }
}

/// Writes the file that the app loads its code from: its first reader waits for the disk, as after an
/// installation or a reboot.
fn write_apk(path: &Path) -> io::Result<()> {
    let bytes: Vec<u8> = (0..APK_BYTES as u64).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 7) as u8).collect();
    write_uncached(path, &bytes)
}

/// Writes a file, and has the kernel forget it.
pub fn write_uncached(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    }
    Ok(())
}

fn start_app(args: &Args) -> io::Result<Child> {
    let mut app = Command::new("/proc/self/exe");
    app.arg("--plays-app").args(["--package", &args.package, "--frames", &args.frames.to_string()]);
    app.args(["--more-calls", &args.more_calls.to_string()]);
    if let Some(release) = clap::ValueEnum::to_possible_value(&args.release) {
        app.args(["--release", release.get_name()]);
    }
    for (is_given, flag) in [(args.fixed_work, "--fixed-work"), (args.no_methods, "--no-methods")] {
        app.args(is_given.then_some(flag));
    }
    if let Some(tracefs) = &args.tracefs {
        app.arg("--tracefs").arg(tracefs);
    }
    app.arg("--output").arg(&args.output).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}
