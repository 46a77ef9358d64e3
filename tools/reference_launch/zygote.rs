//! An app on a real Android runtime: a zygote that runs before the launch, as on a phone, and forks the app.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::system_server::write_uncached;
use super::{Args, Release};

/// Entries of the settings that the activity parses.
const SETTINGS: usize = 60;
/// Size of the file of the settings: the app reads all of it from the disk, bytes.
const SETTINGS_BYTES: usize = 1 << 20;

/// The parent of apps, which waits to be asked for one.
pub struct Zygote {
    process: Child,
    art: PathBuf,
}

impl Zygote {
    /// Starts it, and waits until it has loaded what apps need.
    pub fn start(art: &Path, args: &Args) -> io::Result<Zygote> {
        write_uncached(&settings(args), &settings_json())?;
        let mut command = Command::new(art.join("art"));
        command.args(["-Xzygote", "-Xmx64m", "/", "com.android.internal.os.ZygoteInit"]);
        if let Some(tracefs) = &args.tracefs {
            command.env("ART_TRACE_MARKER", tracefs.join("trace_marker"));
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let from_zygote = process.stdout.as_mut().expect("it is piped");
        // What follows this line comes when an app is asked for.
        let mut line = String::new();
        BufReader::with_capacity(1, from_zygote).read_line(&mut line)?;
        if line.trim_end() == "zygote" {
            return Ok(Zygote { process, art: art.to_owned() });
        }
        Err(io::Error::other(format!("the zygote says {line:?}")))
    }

    /// Has it fork the app, which then reads and writes the zygote's pipes.
    pub fn fork_app(mut self, args: &Args) -> io::Result<Child> {
        let to_zygote = self.process.stdin.as_mut().expect("it is piped");
        let trace = if args.no_methods { "" } else { &args.output.display().to_string() };
        writeln!(
            to_zygote,
            "package={} classes=com.example.feed apk={} settings={} frames={} numbered={} more_calls={} trace={trace}",
            args.package,
            self.art.join("app.apk").display(),
            settings(args).display(),
            args.frames,
            args.release == Release::Android12,
            args.more_calls,
        )?;
        Ok(self.process)
    }

    /// Has the app end its method trace when the file OUTPUT.stop appears, as `am profile stop` does.
    pub fn stop_profiling_on_request(args: &Args, mut to_app: ChildStdin) {
        let request = args.output.with_extension("stop");
        thread::spawn(move || {
            while !request.exists() {
                thread::sleep(Duration::from_millis(50));
            }
            // The app may have ended meanwhile.
            let _ = fs::remove_file(&request);
            let _ = writeln!(to_app, "profile stop");
        });
    }

    /// Writes how long the launch took, ms, into the file OUTPUT.drawn, if it is there: `am start -W` makes
    /// the file, waits for the time, and removes the file.
    pub fn report_launch(args: &Args, total_ms: u64) -> io::Result<()> {
        match OpenOptions::new().write(true).open(args.output.with_extension("drawn")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            drawn => drawn?.write_all(total_ms.to_string().as_bytes()),
        }
    }

    /// Removes what was written beside the method trace. Where that was moved meanwhile, all of it is gone.
    pub fn clean_up(args: &Args) {
        let _ = fs::remove_file(settings(args));
    }
}

fn settings(args: &Args) -> PathBuf {
    args.output.with_extension("settings")
}

fn settings_json() -> Vec<u8> {
    let entries: Vec<_> = (0..SETTINGS)
        .map(|n| json!({ "name": format!("setting{n}"), "group": format!("group{}", n % 7), "weight": n * 37 % 1000, "on": n % 3 == 0 }))
        .collect();
    let mut bytes = json!({ "settings": entries }).to_string().into_bytes();
    bytes.resize(SETTINGS_BYTES, b'\n');
    bytes
}
