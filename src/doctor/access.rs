//! Whether a file may be used, and if not, who stands in the way: its mode, SELinux, or the kernel.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;
use nix::unistd::AccessFlags;
use serde::Serialize;

use super::system::Identity;
use crate::android::selinux;

/// What was found out about one file.
#[derive(Debug, Clone, Serialize)]
pub struct Access {
    /// Whether it is there at all.
    pub exists: bool,
    /// `user:group`, Android's names for Android's ids.
    pub owner: String,
    /// The permission bits, octal.
    pub mode: String,
    /// Its SELinux label, where there is one.
    pub label: Option<String>,
    /// Whether this user may read it.
    pub read: bool,
    /// Whether this user may write to it.
    pub write: bool,
    /// What stands in the way of what was wanted; absent where nothing does.
    pub obstacle: Option<Obstacle>,
}

/// Who refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// The kernel has no such file.
    Kernel,
    /// The file's owner and mode.
    Mode,
    /// SELinux: owner and mode would allow it.
    Selinux,
    /// Something else refuses although owner and mode allow it and there is no SELinux: a container, a lockdown.
    Other,
}

/// Looks at a file. What is wanted of it (`read`, `write`) decides which obstacle is named. `try_open`: also opens
/// it, which some kernels refuse where `access(2)` agrees; not for pipes, whose opening is noticed by others.
pub fn look(path: &Path, who: &Identity, read: bool, write: bool, try_open: bool) -> Access {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => return absent(path, &error),
    };
    let may = |flag| nix::unistd::access(path, flag).is_ok();
    let is_file = !meta.is_dir() && !meta.file_type().is_fifo();
    let opens = |open: &mut OpenOptions| {
        let nonblock = open.custom_flags(libc::O_NONBLOCK);
        !try_open || !is_file || nonblock.open(path).is_ok()
    };
    let may_read = may(AccessFlags::R_OK) && opens(OpenOptions::new().read(true));
    let may_write = may(AccessFlags::W_OK) && (!write || opens(OpenOptions::new().write(true)));
    let refused = |bit: u32, wanted: bool, may: bool| {
        let mode_allows = who.is_root() || mode_allows(&meta, who, bit);
        (wanted && !may).then_some(match (mode_allows, who.selinux_enforcing) {
            (false, _) => Obstacle::Mode,
            (true, true) => Obstacle::Selinux,
            (true, false) => Obstacle::Other,
        })
    };
    Access {
        exists: true,
        owner: format!("{}:{}", name_of(meta.uid()), name_of(meta.gid())),
        mode: format!("{:04o}", meta.mode() & 0o7777),
        label: selinux::label_of(path),
        read: may_read,
        write: may_write,
        obstacle: refused(4, read, may_read).or(refused(2, write, may_write)),
    }
}

fn absent(path: &Path, error: &io::Error) -> Access {
    // A directory above that may not be searched hides whether it is there.
    let hidden = error.kind() == io::ErrorKind::PermissionDenied;
    let obstacle = if hidden { Obstacle::Mode } else { Obstacle::Kernel };
    let label = path.parent().and_then(selinux::label_of);
    let (owner, mode) = (String::new(), String::new());
    Access { exists: false, owner, mode, label, read: false, write: false, obstacle: Some(obstacle) }
}

fn mode_allows(meta: &fs::Metadata, who: &Identity, bit: u32) -> bool {
    let shift = if meta.uid() == who.uid {
        6
    } else if who.groups.contains(&meta.gid()) {
        3
    } else {
        0
    };
    meta.mode() >> shift & bit != 0
}

/// Android's fixed ids (`android_filesystem_config.h`) that own something here.
fn name_of(id: u32) -> String {
    match id {
        0 => "root".to_owned(),
        1000 => "system".to_owned(),
        2000 => "shell".to_owned(),
        3012 => "readtracefs".to_owned(),
        other => other.to_string(),
    }
}
