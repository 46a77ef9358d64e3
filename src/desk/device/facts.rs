//! The facts about a device, which one command asks for.

use serde::Serialize;

use super::privilege::SuDialect;

/// The path of tracebridge's binary on a device. Its user `shell` and root alone may write there.
pub const BINARY_PATH: &str = "/data/local/tmp/tracebridge";

/// The facts about a device. A field whose value the device does not tell is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DeviceFacts {
    /// `uname -m`.
    pub machine: String,
    /// `ro.product.model`.
    pub model: String,
    /// `ro.build.version.release`: `15`.
    pub release: String,
    /// `ro.build.version.sdk`: `35`.
    pub sdk: String,
    /// `ro.product.cpu.abi`, or the ABI that belongs to the machine's name: `arm64-v8a`. Empty if neither is
    /// known.
    pub abi: String,
    /// `ro.build.type`: `user`, `userdebug` or `eng`.
    pub build_type: String,
    /// The user that adb's commands run as; `None` if the device does not tell.
    pub uid: Option<u32>,
    /// How `su` wants its command; `None` without `su`, and where adbd is root.
    #[schemars(with = "Option<String>")]
    pub su: Option<SuDialect>,
    /// Whether there is a `su` that gave no root: it refused, or waits for a dialogue on the screen.
    pub su_refused: bool,
    /// SHA-256 of the binary on the device, as hexadecimal digits; `None` without binary or `sha256sum`.
    #[serde(skip)]
    pub binary_hash: Option<String>,
}

/// The properties, in the order of the fields of [`DeviceFacts`].
const PROPERTIES: [&str; 5] = [
    "ro.product.model",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "ro.product.cpu.abi",
    "ro.build.type",
];

/// Texts of a device are cut after this many characters. A model's name of 100,000 would fill every table.
const MAX_TEXT_CHARS: usize = 200;

/// A text of a device, cut where it is too long, without control characters.
pub fn printable_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect()
}

/// The line that the script prints before it asks `su`, which may wait for somebody at the device.
const ASKING_SU: &str = "su=?";

impl DeviceFacts {
    /// The command that prints the facts, a line for each. Old releases have no `id -u`, and no `getprop` is
    /// on an ordinary Linux.
    pub fn script() -> String {
        let mut script = "echo \"machine=$(uname -m 2>/dev/null)\"\n".to_owned();
        script +=
            &format!("for p in {}; do echo \"$p=$(getprop $p 2>/dev/null)\"; done\n", PROPERTIES.join(" "));
        script += &format!("echo \"binary=$(sha256sum {BINARY_PATH} 2>/dev/null)\"\n");
        script += "i=$(id 2>/dev/null); echo \"id=$i\"\n";
        script += &format!(
            "case $i in uid=0*) exit;; esac; command -v su >/dev/null 2>&1 || exit 0; echo '{ASKING_SU}'\n"
        );
        for dialect in SuDialect::ALL {
            let asked = dialect.command("id");
            script += &format!(
                "case $({asked} </dev/null 2>/dev/null) in uid=0*) echo su={}; exit;; esac\n",
                dialect.name()
            );
        }
        script + "echo su=refused\n"
    }

    /// Parses the output of [`DeviceFacts::script`]. Of two lines with one name the first counts.
    pub fn parse(text: &str) -> DeviceFacts {
        let value = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                .map(|value| printable_text(value.trim()))
                .unwrap_or_default()
        };
        let machine = value("machine");
        let [model, release, sdk, abi, build_type] = PROPERTIES.map(value);
        let abi = if abi.is_empty() { abi_of_machine(&machine).unwrap_or_default().to_owned() } else { abi };
        let su = text.lines().filter_map(|line| line.strip_prefix("su=")).next_back().unwrap_or_default();
        let dialect = SuDialect::ALL.into_iter().find(|dialect| dialect.name() == su.trim());
        DeviceFacts {
            uid: value("id")
                .strip_prefix("uid=")
                .and_then(|id| id.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()),
            binary_hash: value("binary").split_whitespace().next().map(str::to_owned),
            su_refused: !su.is_empty() && dialect.is_none(),
            su: dialect,
            machine,
            model,
            release,
            sdk,
            abi,
            build_type,
        }
    }

    /// Whether everything but the answer of `su` has been printed.
    pub fn are_complete_without_su(text: &str) -> bool {
        text.lines().any(|line| line.trim() == ASKING_SU)
    }
}

/// The ABI of a machine, by the name that `uname -m` prints.
fn abi_of_machine(machine: &str) -> Option<&'static str> {
    match machine {
        "aarch64" => Some("arm64-v8a"),
        "x86_64" => Some("x86_64"),
        "i386" | "i486" | "i586" | "i686" => Some("x86"),
        name if name.starts_with("armv8") => Some("arm64-v8a"),
        name if name.starts_with("arm") => Some("armeabi-v7a"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phones_facts_are_read() {
        let facts = DeviceFacts::parse(
            "machine=aarch64\nro.product.model=Pixel 3a\nro.build.version.release=15\nro.build.version.sdk=35\n\
             ro.product.cpu.abi=armeabi-v7a\nro.build.type=user\nbinary=00ff  /data/x\n\
             id=uid=2000(shell) gid=2000(shell)\nsu=?\nsu=0\n",
        );
        assert_eq!(
            (facts.model.as_str(), facts.release.as_str(), facts.sdk.as_str()),
            ("Pixel 3a", "15", "35")
        );
        assert_eq!((facts.abi.as_str(), facts.uid), ("armeabi-v7a", Some(2000)));
        assert_eq!(facts.su, Some(SuDialect::Zero));
        assert_eq!(facts.binary_hash.as_deref(), Some("00ff"));
    }

    #[test]
    fn without_getprop_the_machine_decides_the_abi() {
        let of = |machine: &str| {
            DeviceFacts::parse(&format!("machine={machine}\nro.product.cpu.abi=\nid=uid=0(root)\n"))
        };
        let abi = |machine| of(machine).abi;
        assert_eq!(abi("aarch64"), "arm64-v8a");
        assert_eq!(abi("armv7l"), "armeabi-v7a");
        assert_eq!(abi("armv8l"), "arm64-v8a");
        assert_eq!(abi("i686"), "x86");
        assert_eq!(abi("riscv64"), "");
        assert_eq!((of("x").uid, of("x").su_refused, of("x").binary_hash), (Some(0), false, None));
    }

    #[test]
    fn a_su_that_does_not_answer_or_refuses_is_said() {
        assert!(DeviceFacts::parse("id=uid=2000\nsu=?\n").su_refused);
        assert!(DeviceFacts::parse("id=uid=2000\nsu=?\nsu=refused\n").su_refused);
        assert!(!DeviceFacts::parse("id=uid=2000\n").su_refused);
        assert!(DeviceFacts::are_complete_without_su("a\nsu=?\r\n"));
    }
}
