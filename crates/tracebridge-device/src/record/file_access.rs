//! Whether this user may read and write a file and, if not, what refuses: the file's mode, SELinux, or the
//! kernel.
//!
//! On a locked phone SELinux refuses even `stat(2)` on most files of tracefs, and each refused call adds a
//! line to the device's log. So the calls that are never refused come first: `access(2)` for existence, then
//! for the access that is wanted, because the mode refuses most of it before SELinux is asked.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::android::UserIdentity;
use crate::system::selinux_label;

/// The access that this user has to one file.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FileAccess {
    pub(crate) exists: bool,
    /// Whether SELinux hides the file's owner, mode and label from this user.
    pub(crate) hidden: bool,
    /// `user:group`, with Android's names for Android's ids; empty if unknown.
    pub(crate) owner: String,
    /// The permission bits, octal; empty if unknown.
    pub(crate) mode: String,
    /// The SELinux label, if the file has one and this user may see it.
    pub(crate) label: Option<String>,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// The obstacle to the access that was asked about; `None` if there is none.
    pub(crate) obstacle: Option<Obstacle>,
}

/// The obstacle to an access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Obstacle {
    /// The kernel has no such file.
    Kernel,
    /// The owner and mode of the file, or of a directory above it.
    Mode,
    /// SELinux: owner and mode would allow the access.
    Selinux,
    /// Owner and mode allow the access and there is no SELinux, but a container or a lockdown refuses.
    Other,
}

/// The access to a file that is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequiredAccess {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Whether the file is opened too, because some kernels refuse to open a file that `access(2)` permits.
    /// FIFOs are never opened: the process at the other end would notice.
    pub(crate) try_open: bool,
}

impl RequiredAccess {
    /// Access to write a file; it is not opened.
    pub(crate) const WRITE: RequiredAccess = RequiredAccess { read: false, write: true, try_open: false };
}

/// Examines a file. The report names the obstacle to the `wanted` access.
pub(crate) fn inspect(path: &Path, user: &UserIdentity, wanted: RequiredAccess) -> FileAccess {
    let RequiredAccess { read, write, try_open } = wanted;
    match access(path, AccessFlags::F_OK) {
        Ok(()) => {}
        Err(Errno::EACCES | Errno::EPERM) => {
            let obstacle = Some(closed_directory(path, user));
            return FileAccess { obstacle, ..FileAccess::default() };
        }
        Err(_) => return FileAccess { obstacle: Some(Obstacle::Kernel), ..FileAccess::default() },
    }
    let may = |flag| access(path, flag).is_ok();
    if write && !read && user.selinux_enforcing && may(AccessFlags::W_OK) {
        // A policy may permit to write a file and to see nothing of it: apps write trace_marker so.
        return FileAccess { exists: true, write: true, ..FileAccess::default() };
    }
    let Ok(meta) = fs::symlink_metadata(path) else {
        // Neither owner nor mode of a file restrict `stat(2)`. A policy that refuses it permits nothing else.
        let obstacle = Some(if user.selinux_enforcing { Obstacle::Selinux } else { Obstacle::Other });
        return FileAccess { exists: true, hidden: true, obstacle, ..FileAccess::default() };
    };
    let can_open = try_open && !meta.is_dir() && !meta.file_type().is_fifo();
    let opens = |open: &mut OpenOptions| {
        let nonblock = open.custom_flags(libc::O_NONBLOCK);
        !can_open || nonblock.open(path).is_ok()
    };
    let may_read = may(AccessFlags::R_OK) && opens(OpenOptions::new().read(true));
    let may_write = may(AccessFlags::W_OK) && (!write || opens(OpenOptions::new().write(true)));
    let refused = |bit: u32, needed: bool, may: bool| {
        (needed && !may).then(|| obstacle_beside_mode(mode_allows(&meta, user, bit), user))
    };
    FileAccess {
        exists: true,
        hidden: false,
        owner: format!("{}:{}", name_of(meta.uid()), name_of(meta.gid())),
        mode: format!("{:04o}", meta.mode() & 0o7777),
        label: selinux_label(path),
        read: may_read,
        write: may_write,
        obstacle: refused(4, read, may_read).or(refused(2, write, may_write)),
    }
}

impl FileAccess {
    /// The obstacle to the access, in a few words that follow "refused by"; `None` if there is none.
    pub(crate) fn refused_by(&self, user: &UserIdentity) -> Option<String> {
        let domain = user.domain.as_deref().unwrap_or("this domain");
        Some(match (self.obstacle?, &self.label) {
            (Obstacle::Kernel, _) => "the kernel, which has no such file".to_owned(),
            (Obstacle::Mode, _) if self.mode.is_empty() => "the mode of a directory above it".to_owned(),
            (Obstacle::Mode, _) => format!("owner and mode ({} {})", self.owner, self.mode),
            (Obstacle::Selinux, Some(label)) => format!("SELinux ({domain} may not use {label})"),
            (Obstacle::Selinux, None) => format!("SELinux (it hides the file from {domain})"),
            (Obstacle::Other, _) => "a container or a locked-down kernel, not by owner and mode".to_owned(),
        })
    }
}

/// The obstacle to an access that is refused, by whether the mode allows it.
fn obstacle_beside_mode(mode_allows: bool, user: &UserIdentity) -> Obstacle {
    match (mode_allows, user.selinux_enforcing) {
        (false, _) => Obstacle::Mode,
        (true, true) => Obstacle::Selinux,
        (true, false) => Obstacle::Other,
    }
}

/// The obstacle that keeps this user from searching a directory above `path`.
fn closed_directory(path: &Path, user: &UserIdentity) -> Obstacle {
    let closed = path.ancestors().skip(1).find(|dir| access(*dir, AccessFlags::F_OK).is_ok());
    let mode = closed.and_then(|dir| fs::metadata(dir).ok()).map(|meta| mode_allows(&meta, user, 1));
    // A directory whose mode cannot be read is hidden by SELinux, as above.
    obstacle_beside_mode(mode.unwrap_or(true), user)
}

/// Whether the mode gives this user the permission `bit` (4 to read, 2 to write, 1 to search a directory).
fn mode_allows(meta: &fs::Metadata, user: &UserIdentity, bit: u32) -> bool {
    if user.is_root() {
        return true;
    }
    let shift = if meta.uid() == user.uid {
        6
    } else if user.groups.contains(&meta.gid()) {
        3
    } else {
        0
    };
    meta.mode() >> shift & bit != 0
}

/// Android's names for the fixed ids (`android_filesystem_config.h`) that own files here; a number for any
/// other id.
fn name_of(id: u32) -> String {
    match id {
        0 => "root".to_owned(),
        1000 => "system".to_owned(),
        2000 => "shell".to_owned(),
        3012 => "readtracefs".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::android::UserKind;

    #[test]
    fn the_mode_bits_of_owner_group_and_others_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let meta = fs::metadata(&path).unwrap();
        let user = |uid, groups: &[u32]| UserIdentity {
            uid,
            groups: groups.to_vec(),
            kind: UserKind::User,
            domain: None,
            selinux_enforcing: false,
        };
        let allows = |user: &UserIdentity| [4, 2].map(|bit| mode_allows(&meta, user, bit));
        assert_eq!(allows(&user(meta.uid(), &[])), [true, true]);
        assert_eq!(allows(&user(meta.uid() + 1, &[meta.gid()])), [true, false]);
        assert_eq!(allows(&user(meta.uid() + 1, &[meta.gid() + 1])), [false, false]);
    }

    #[test]
    fn the_obstacle_to_a_file_that_does_not_exist_is_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = RequiredAccess { read: true, write: false, try_open: true };
        let access = inspect(&dir.path().join("none"), &UserIdentity::current(), wanted);
        assert_eq!((access.exists, access.obstacle), (false, Some(Obstacle::Kernel)));
    }
}
