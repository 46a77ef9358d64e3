//! Facts about Android that device and host share: ATRACE tags, and the message of a refusal.

pub use tracebridge_markers::internals::tags;

/// The message why Android traces no methods of `package` on a build for users, and what would change that.
pub fn methods_refused(package: &str) -> String {
    format!(
        "no method trace: {package} is neither debuggable nor profileable by the shell, and this is no debuggable \
         build of Android: add <profileable android:shell=\"true\"/> to its manifest (Android 10 and newer), or use a \
         debuggable build of it"
    )
}
