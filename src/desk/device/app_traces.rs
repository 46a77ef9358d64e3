//! Traces that an app has written by itself: the library androidx.tracing (2 and newer) keeps an app's slices
//! in the app's own memory, and writes them to `perfetto-DATE.perfetto-trace` in a directory of the app
//! (`TraceSink.android.kt`). Root reads that directory; without root `run-as` does where the app is
//! debuggable.

use super::privilege::Privilege;
use super::shell_words::quoted;

/// The name in a session's directory of the first such trace, without its ending; with `-2`, `-3` … the next.
pub(super) const APP_TRACE: &str = "capture-app";
/// The directories of an app in which it may leave traces.
pub const APP_TRACE_DIRS: [&str; 3] = ["files", "cache", "no_backup"];
/// The most files that are collected of one launch.
const MAX_TRACES: u32 = 20;

/// The commands that list the traces that are there before the app is started.
pub(super) fn before(package: &str, privilege: Privilege) -> String {
    format!("{} >app.before 2>/dev/null; ", list(package, privilege))
}

/// The commands that copy the traces that are new since then into the directory of the session. The library
/// writes its slices when Android asks the app for memory.
pub(super) fn after(package: &str, privilege: Privilege) -> String {
    let list = list(package, privilege);
    let read = match privilege {
        Privilege::Shell => format!("run-as {} cat", quoted(package)),
        _ => "cat".to_owned(),
    };
    let dir = match privilege {
        Privilege::Shell => String::new(),
        _ => format!("{}/", quoted(&data_dir(package))),
    };
    let package = quoted(package);
    format!(
        "{list} >app.after 2>/dev/null; \
         if [ -s app.after ] && ! cmp -s app.before app.after; then \
         am send-trim-memory {package} RUNNING_CRITICAL </dev/null >/dev/null 2>&1 && sleep 0.5; \
         n=0; while IFS= read -r f; do grep -q -x -F -e \"$f\" app.before && continue; \
         n=$((n+1)); [ $n -le {MAX_TRACES} ] || break; {read} {dir}\"$f\" </dev/null >{APP_TRACE}-$n.pftrace 2>/dev/null; \
         [ -s {APP_TRACE}-$n.pftrace ] || rm -f {APP_TRACE}-$n.pftrace; done <app.after; fi; "
    )
}

/// The directory of an app.
pub fn data_dir(package: &str) -> String {
    format!("/data/data/{package}")
}

/// The command that prints the paths of the traces below the app's directory, a line for each.
fn list(package: &str, privilege: Privilege) -> String {
    let dirs = APP_TRACE_DIRS.join(" ");
    let find = format!("find {dirs} -type f -name 'perfetto-*.perfetto-trace' 2>/dev/null");
    match privilege {
        Privilege::Shell => format!("run-as {} sh -c {} </dev/null", quoted(package), quoted(&find)),
        _ => format!("( cd {} && {find} )", quoted(&data_dir(package))),
    }
}
