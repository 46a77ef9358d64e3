//! System calls by what they may wait for: the numbers of `raw_syscalls:sys_enter`.

use super::model::Syscall;

impl Syscall {
    /// The kind of a system call, by its name in `include/linux/syscalls.h`.
    pub fn of_name(name: &str) -> Syscall {
        match name {
            "futex" | "futex_wait" | "futex_waitv" => Syscall::Futex,
            "nanosleep" | "clock_nanosleep" => Syscall::Sleep,
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
                Syscall::Poll
            }
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "write" | "pwrite64" | "writev"
            | "pwritev" | "recvfrom" | "recvmsg" | "recvmmsg" | "sendto" | "sendmsg" | "accept"
            | "accept4" | "connect" | "sendfile" | "splice" => Syscall::Transfer,
            "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range" => Syscall::Sync,
            "wait4" | "waitid" => Syscall::Child,
            "ioctl" => Syscall::Ioctl,
            _ => Syscall::Other,
        }
    }
}

/// The numbers of the calls that may wait, on one kind of machine (`unistd.h` and the kernel's
/// `arch/*/syscalls/*.tbl`).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SyscallTable(&'static [(i64, Syscall)]);

impl SyscallTable {
    /// The table for the machine that `uname -a` describes; empty where that is not known.
    pub fn of_machine(machine: Option<&str>) -> SyscallTable {
        let machine = machine.unwrap_or_default();
        let tables = [("aarch64", ARM64), ("arm64", ARM64), ("x86_64", X86_64), ("armv", ARM)];
        let found = tables.iter().find(|(name, _)| machine.contains(name));
        SyscallTable(found.map_or(&[], |(_, table)| table))
    }

    pub fn get(self, number: i64) -> Syscall {
        let found = self.0.iter().find(|(known, _)| *known == number);
        found.map_or(Syscall::Other, |(_, call)| *call)
    }
}

const ARM64: &[(i64, Syscall)] = &[
    (98, Syscall::Futex),
    (449, Syscall::Futex),
    (101, Syscall::Sleep),
    (115, Syscall::Sleep),
    (22, Syscall::Poll),
    (72, Syscall::Poll),
    (73, Syscall::Poll),
    (441, Syscall::Poll),
    (63, Syscall::Transfer),
    (64, Syscall::Transfer),
    (65, Syscall::Transfer),
    (66, Syscall::Transfer),
    (67, Syscall::Transfer),
    (68, Syscall::Transfer),
    (69, Syscall::Transfer),
    (70, Syscall::Transfer),
    (71, Syscall::Transfer),
    (202, Syscall::Transfer),
    (203, Syscall::Transfer),
    (206, Syscall::Transfer),
    (207, Syscall::Transfer),
    (211, Syscall::Transfer),
    (212, Syscall::Transfer),
    (242, Syscall::Transfer),
    (81, Syscall::Sync),
    (82, Syscall::Sync),
    (83, Syscall::Sync),
    (84, Syscall::Sync),
    (227, Syscall::Sync),
    (267, Syscall::Sync),
    (95, Syscall::Child),
    (260, Syscall::Child),
    (29, Syscall::Ioctl),
];

const X86_64: &[(i64, Syscall)] = &[
    (202, Syscall::Futex),
    (449, Syscall::Futex),
    (35, Syscall::Sleep),
    (230, Syscall::Sleep),
    (7, Syscall::Poll),
    (23, Syscall::Poll),
    (232, Syscall::Poll),
    (270, Syscall::Poll),
    (271, Syscall::Poll),
    (281, Syscall::Poll),
    (441, Syscall::Poll),
    (0, Syscall::Transfer),
    (1, Syscall::Transfer),
    (17, Syscall::Transfer),
    (18, Syscall::Transfer),
    (19, Syscall::Transfer),
    (20, Syscall::Transfer),
    (40, Syscall::Transfer),
    (42, Syscall::Transfer),
    (43, Syscall::Transfer),
    (44, Syscall::Transfer),
    (45, Syscall::Transfer),
    (46, Syscall::Transfer),
    (47, Syscall::Transfer),
    (288, Syscall::Transfer),
    (26, Syscall::Sync),
    (74, Syscall::Sync),
    (75, Syscall::Sync),
    (162, Syscall::Sync),
    (306, Syscall::Sync),
    (61, Syscall::Child),
    (247, Syscall::Child),
    (16, Syscall::Ioctl),
];

const ARM: &[(i64, Syscall)] = &[
    (240, Syscall::Futex),
    (422, Syscall::Futex),
    (162, Syscall::Sleep),
    (265, Syscall::Sleep),
    (168, Syscall::Poll),
    (142, Syscall::Poll),
    (252, Syscall::Poll),
    (335, Syscall::Poll),
    (336, Syscall::Poll),
    (346, Syscall::Poll),
    (3, Syscall::Transfer),
    (4, Syscall::Transfer),
    (145, Syscall::Transfer),
    (146, Syscall::Transfer),
    (180, Syscall::Transfer),
    (181, Syscall::Transfer),
    (292, Syscall::Transfer),
    (297, Syscall::Transfer),
    (118, Syscall::Sync),
    (148, Syscall::Sync),
    (114, Syscall::Child),
    (280, Syscall::Child),
    (54, Syscall::Ioctl),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_another_call_on_another_machine() {
        let kind = |machine, number| SyscallTable::of_machine(machine).get(number);
        assert_eq!(kind(Some("Linux phone 6.1.0 aarch64"), 98), Syscall::Futex);
        assert_eq!(kind(Some("Linux desk 6.1.0 x86_64"), 202), Syscall::Futex);
        assert_eq!(kind(Some("Linux desk 6.1.0 x86_64"), 98), Syscall::Other);
        assert_eq!(kind(Some("Linux old 4.9 armv7l"), 240), Syscall::Futex);
        assert_eq!(kind(None, 98), Syscall::Other);
    }
}
