//! Whether this user may read and write a file and, if not, what refuses: the file's mode, SELinux, or the
//! kernel.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;
use nix::unistd::AccessFlags;
use serde::Serialize;

use super::system::UserIdentity;
use crate::android::system::selinux;

/// What this user may do with one file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FileAccess {
    pub(crate) exists: bool,
    /// `user:group`, with Android's names for Android's ids.
    pub(crate) owner: String,
    /// The permission bits, octal.
    pub(crate) mode: String,
    /// The SELinux label, if the file has one. For a file that does not exist: the label of its directory.
    pub(crate) label: Option<String>,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// What refuses the access that was asked about; `None` if nothing does.
    pub(crate) obstacle: Option<Obstacle>,
}

/// What refuses access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Obstacle {
    /// The kernel has no such file.
    Kernel,
    /// The file's owner and mode.
    Mode,
    /// SELinux: owner and mode would allow the access.
    Selinux,
    /// Owner and mode allow the access and there is no SELinux, but a container or a lockdown refuses.
    Other,
}

/// Examines a file. `read` and `write` select the access that is needed, and the report names the obstacle to
/// that access. With `try_open` the file is opened too, because some kernels refuse to open a file that
/// `access(2)` permits. FIFOs are never opened: the process at the other end would notice.
pub(crate) fn inspect(
    path: &Path,
    user: &UserIdentity,
    read: bool,
    write: bool,
    try_open: bool,
) -> FileAccess {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => return missing(path, &error),
    };
    let may = |flag| nix::unistd::access(path, flag).is_ok();
    let can_open = try_open && !meta.is_dir() && !meta.file_type().is_fifo();
    let opens = |open: &mut OpenOptions| {
        let nonblock = open.custom_flags(libc::O_NONBLOCK);
        !can_open || nonblock.open(path).is_ok()
    };
    let may_read = may(AccessFlags::R_OK) && opens(OpenOptions::new().read(true));
    let may_write = may(AccessFlags::W_OK) && (!write || opens(OpenOptions::new().write(true)));
    let refused = |bit: u32, needed: bool, may: bool| {
        let mode_allows = user.is_root() || mode_allows(&meta, user, bit);
        (needed && !may).then_some(match (mode_allows, user.selinux_enforcing) {
            (false, _) => Obstacle::Mode,
            (true, true) => Obstacle::Selinux,
            (true, false) => Obstacle::Other,
        })
    };
    FileAccess {
        exists: true,
        owner: format!("{}:{}", name_of(meta.uid()), name_of(meta.gid())),
        mode: format!("{:04o}", meta.mode() & 0o7777),
        label: selinux::label_of(path),
        read: may_read,
        write: may_write,
        obstacle: refused(4, read, may_read).or(refused(2, write, may_write)),
    }
}

/// The access to a file whose metadata cannot be read.
fn missing(path: &Path, error: &io::Error) -> FileAccess {
    // If this user may not search a directory above, it is unknown whether the file exists.
    let is_hidden = error.kind() == io::ErrorKind::PermissionDenied;
    let obstacle = if is_hidden { Obstacle::Mode } else { Obstacle::Kernel };
    let label = path.parent().and_then(selinux::label_of);
    let (owner, mode) = (String::new(), String::new());
    FileAccess { exists: false, owner, mode, label, read: false, write: false, obstacle: Some(obstacle) }
}

/// Whether the mode gives this user the permission `bit` (4 to read, 2 to write).
fn mode_allows(meta: &fs::Metadata, user: &UserIdentity, bit: u32) -> bool {
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

    use super::super::system::UserKind;
    use super::*;

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
        let access = inspect(&dir.path().join("none"), &UserIdentity::here(), true, false, true);
        assert_eq!((access.exists, access.obstacle), (false, Some(Obstacle::Kernel)));
    }
}
