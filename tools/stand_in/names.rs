//! The names of an app's process and threads, as Android sets them.

use std::fs;
use std::os::unix::process::CommandExt;

/// The name that Android gives a thread of this name in the kernel, which keeps 15 characters: of a name with
/// dots the last ones.
fn comm_of(name: &str) -> &str {
    match name.len().checked_sub(15) {
        Some(cut) if name.contains('.') && !name.contains('@') => &name[cut..],
        Some(_) => &name[..15],
        None => name,
    }
}

/// Gives the calling thread a name.
pub fn set_comm(name: &str) {
    // A name is no reason to end a test: what it came to is in the summary.
    let _ = fs::write("/proc/thread-self/comm", comm_of(name));
}

/// The process's command line is its package, as zygote sets it: here by running itself again under that
/// name.
pub fn become_package(process: &str) {
    if std::env::args().next().as_deref() != Some(process) {
        let error = std::process::Command::new("/proc/self/exe")
            .arg0(process)
            .args(std::env::args_os().skip(1))
            .exec();
        eprintln!("cannot run as {process}: {error}");
        std::process::exit(1);
    }
}
