//! The emulated device that is dressed as a locked phone (`android/emulator/boot --build user`): the user
//! `shell` under an enforced SELinux policy. A second connection is root outside of the policy, for what a
//! test prepares and checks.

use std::sync::{Mutex, OnceLock};

use support::Ran;

use crate::adb::{Device, Measures, Turn, connect, turn};
use crate::settings::{Settings, reset, settings};

/// The phone, which one test at a time holds. Dropping this after a panic leaves no program running and no
/// setting changed.
pub struct LockedPhone {
    /// The connection that a developer has: the user `shell`, domain `u:r:shell:s0`.
    pub shell: Device,
    /// The tests' own connection: root, domain `u:r:su:s0`.
    pub root: Device,
    _turn: Turn,
}

/// One denial of SELinux in the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The whole path if `stat` was denied, else the file's name.
    pub file: String,
    /// The log's line.
    pub line: String,
}

impl LockedPhone {
    /// The phone that `TRACEBRIDGE_LOCKED_SERIAL` names, with the kernel's own settings. Without that
    /// variable the test is skipped, with a message: `None`.
    pub fn attached() -> Option<LockedPhone> {
        LockedPhone::attached_for(Measures::Nothing)
    }

    /// As [`LockedPhone::attached`], for a test that only a full run takes.
    pub fn attached_in_full_run() -> Option<LockedPhone> {
        if support::skip_unless_full_run() { None } else { LockedPhone::attached() }
    }

    /// As [`LockedPhone::attached`], for a test that may measure.
    pub fn attached_for(measures: Measures) -> Option<LockedPhone> {
        let Ok(serial) = std::env::var("TRACEBRIDGE_LOCKED_SERIAL") else {
            support::skip(
                "locked",
                "no locked phone: set TRACEBRIDGE_LOCKED_SERIAL (android/emulator/boot --build user prints one)",
            );
            return None;
        };
        static PHONE: Mutex<()> = Mutex::new(());
        let turn = turn(&PHONE, measures);
        let (host, port) = serial.rsplit_once(':').expect("HOST:PORT");
        let port: u16 = port.parse().expect("a port");
        let root = format!("{host}:{}", port + 1);
        static CONNECTED: OnceLock<()> = OnceLock::new();
        CONNECTED.get_or_init(|| [&serial, &root].into_iter().for_each(|serial| connect(serial)));
        let phone =
            LockedPhone { shell: Device::connection(serial), root: Device::connection(root), _turn: turn };
        reset(&phone.root);
        Some(phone)
    }

    /// The path of a program on the phone, as `shell` pushed it.
    pub fn program(&self, program: &str) -> String {
        self.shell.program(self.shell.abi(), program)
    }

    /// Runs a shell command as an app's user in this domain: `untrusted_app` or `runas_app`.
    pub fn as_app(&self, domain: &str, command: &str) -> Ran {
        self.root.shell(&format!("as u0_a123 {domain} '{command}'"))
    }

    /// Runs a shell command as root, which must succeed. Returns what it printed.
    pub fn as_root(&self, command: &str) -> String {
        self.root.run(command)
    }

    /// The settings that `shell` can change, and those of the groups that it can switch on, as root reads
    /// them. They are read in a fraction of the time that [`Self::settings`] takes.
    pub fn knobs(&self) -> Settings {
        let printed = self.as_root(
            "cd /sys/kernel/tracing && { [ -e /tmp/knobs ] || { find * -type f -perm -006 ! -name trace; \
             ls events/cgroup/*/enable events/dma_fence/*/enable events/ipi/*/enable per_cpu/*/buffer_size_kb; } \
             >/tmp/knobs; } && while read -r file; do read -r value <$file; echo \"$file $value\"; done </tmp/knobs",
        );
        let pairs = printed.lines().filter_map(|line| line.split_once(' '));
        let knobs: Settings = pairs.map(|(file, value)| (file.to_owned(), value.to_owned())).collect();
        assert!(knobs.len() > 80, "only {} settings found", knobs.len());
        knobs
    }

    /// Every setting, as root reads it.
    pub fn settings(&self) -> Settings {
        settings(&self.root)
    }

    /// Makes the action, and returns what SELinux denied meanwhile.
    pub fn denials<T>(&self, action: impl FnOnce() -> T) -> (T, Vec<Denial>) {
        self.take_log();
        let done = action();
        let log = self.take_log();
        let denials = log.lines().filter(|line| line.contains("avc:  denied")).map(|line| {
            let value = |key: &str| Some(line.split_once(key)?.1.split('"').next()?.to_owned());
            let file = value(" path=\"").or_else(|| value(" name=\"")).unwrap_or_default();
            Denial { file, line: line.to_owned() }
        });
        (done, denials.collect())
    }

    /// Takes the kernel's log up to now. The kernel prints its denials later than they happen, in order: one
    /// that this function causes is the last.
    fn take_log(&self) -> String {
        const LAST: &str = "comm=\"cat\" name=\"kallsyms\"";
        let log = self.as_root(&format!(
            "as shell shell 'cat /proc/kallsyms' 2>/dev/null; i=0; \
             until dmesg | grep -q '{LAST}'; do i=$((i+1)); [ $i -lt 300 ] || exit 1; sleep 0.05; done; dmesg -c"
        ));
        log.lines().take_while(|line| !line.contains(LAST)).map(|line| format!("{line}\n")).collect()
    }
}

/// The phone with a userdebug build's policy and its `su`, as the emulated device's `lock userdebug` gives
/// them. Dropping this makes it a user build again.
pub struct Userdebug<'a>(&'a LockedPhone);

/// Loads the policy of a build for the release that the device was booted with.
const LOAD: &str = "r=$(sed 's/.*device.release=//; s/ .*//' /proc/cmdline) && load() { \
                    dd if=/policy/$1-$r of=/sys/fs/selinux/load bs=1M 2>/dev/null; }";

impl Userdebug<'_> {
    pub fn new(phone: &LockedPhone) -> Userdebug<'_> {
        phone.as_root(&format!(
            "{LOAD} && load userdebug && mount -t tmpfs -o mode=0755,context=u:object_r:su_exec:s0 tmpfs /system/xbin && \
             mkdir /system/xbin/root && cp /usr/bin/busybox /system/xbin/root/su && chown 0:2000 /system/xbin/root/su && \
             chmod 4750 /system/xbin/root/su && cp /usr/sbin/su-of-userdebug /system/bin/su"
        ));
        Userdebug(phone)
    }
}

impl Drop for Userdebug<'_> {
    fn drop(&mut self) {
        self.0.root.shell(&format!("rm -f /system/bin/su*; umount /system/xbin; {LOAD} && load user"));
    }
}

impl Drop for LockedPhone {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shell.end_programs();
            self.root.shell(&format!("rm -f {}/*.saved", crate::adb::DIR));
            self.root.clear_away();
        }
    }
}

/// Fails if the command's exit status is another one.
pub fn assert_status(output: &Ran, status: i32, what: &str) {
    assert_eq!(output.code(), Some(status), "{what}: {output}");
}
