//! The manifest of an archive: the clocks and machines of the files in it.
//! <https://perfetto.dev/docs/reference/perfetto-manifest> defines it.

use serde_json::{Map, Value};

use crate::clock::Clock;

/// The usual name of the manifest. Perfetto knows it by its contents.
pub(super) const MANIFEST_NAME: &str = "perfetto_manifest.json";
/// The largest manifest that is read, bytes: that of an archive with hundreds of files.
const MAX_MANIFEST_BYTES: usize = 64 << 10;
/// The names of clocks in a manifest. The coarse clocks show the time of the others' last tick.
const CLOCKS: [(&str, Clock); 6] = [
    ("REALTIME", Clock::Realtime),
    ("REALTIME_COARSE", Clock::Realtime),
    ("MONOTONIC", Clock::Monotonic),
    ("MONOTONIC_COARSE", Clock::Monotonic),
    ("MONOTONIC_RAW", Clock::MonotonicRaw),
    ("BOOTTIME", Clock::Boottime),
];

/// Why the manifest of an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is larger than any manifest.
    #[error("it has more than {limit} bytes, which no manifest needs")]
    TooLarge {
        /// The limit, bytes.
        limit: usize,
    },
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The document is no object with the member `perfetto_manifest`.
    #[error("it has no object perfetto_manifest")]
    NoManifest,
    /// The manifest has no version.
    #[error("the member version is missing: it must be 1")]
    NoVersion,
    /// The manifest has a version that is not defined.
    #[error("its version is {0}: only version 1 is known")]
    Version(String),
    /// A member is of another type than it must be.
    #[error("{member} must be {wanted}")]
    Type {
        /// The member's place: `files[2].clocks.offset_ns`.
        member: String,
        /// The type that it must have.
        wanted: &'static str,
    },
    /// A member that must be there is missing.
    #[error("{member} is missing")]
    Missing {
        /// The member's place.
        member: String,
    },
    /// A clock has a name that is not defined.
    #[error("{member}: no clock is called {name:?}; there are {}", clock_names())]
    Clock {
        /// The member's place.
        member: String,
        /// The name.
        name: String,
    },
    /// A file has both members.
    #[error(
        "{file} has a machine and machines: machine is for a trace of one machine, machines for one of several"
    )]
    MachineAndMachines {
        /// The entry's place.
        file: String,
    },
    /// An offset cannot be added.
    #[error("{member} is out of range")]
    Range {
        /// The member's place.
        member: String,
    },
    /// A clock refers to a file that the manifest does not list.
    #[error("{member}: {file:?} is no path of an entry in files")]
    UnknownFile {
        /// The member's place.
        member: String,
        /// The file that it names.
        file: String,
    },
    /// A machine is named without its file.
    #[error("{member} names a machine without its file: a machine's name alone is ambiguous")]
    MachineWithoutFile {
        /// The member's place.
        member: String,
    },
    /// A trace of several machines is named without one of them.
    #[error("{member}: {file:?} is a trace of several machines: name one of them")]
    NoMachine {
        /// The member's place.
        member: String,
        /// The file.
        file: String,
    },
    /// A file does not have the machine that a clock refers to.
    #[error("{member}: {machine:?} is no machine of {file:?}")]
    UnknownMachine {
        /// The member's place.
        member: String,
        /// The machine.
        machine: String,
        /// The file.
        file: String,
    },
    /// A listed file is an archive or a manifest.
    #[error("it relates the clock of {file:?}, which is no trace")]
    NoTrace {
        /// The file's path.
        file: String,
    },
    /// The archive has another manifest beside it.
    #[error("the archive has two manifests")]
    Two,
}

fn clock_names() -> String {
    CLOCKS.map(|(name, _)| name).join(", ")
}

/// The contents of a manifest.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// The clock of the timeline.
    pub trace_time: Option<Clock>,
    /// The files, in their order.
    pub files: Vec<ManifestFile>,
    /// Keys and values that describe the archive.
    pub attributes: Vec<(String, String)>,
}

/// One file of a manifest.
#[derive(Debug)]
pub(super) struct ManifestFile {
    pub path: String,
    /// The name of the machine that the whole file is of.
    pub machine: Option<String>,
    /// The ids and names of the machines in the file.
    pub machines: Vec<(u32, String)>,
    pub clocks: Option<ClockRelation>,
}

/// The relation of a file's clock to a clock of another file: where this clock reads T, the other one reads
/// T + `offset_ns`.
#[derive(Debug)]
pub(super) struct ClockRelation {
    /// The file's clock; `None` is the only clock of a file that does not name it.
    pub clock: Option<Clock>,
    machine: Option<String>,
    /// The path of the other file.
    pub file: String,
    other_machine: Option<String>,
    /// The clock of the other file; `None` as above.
    pub other_clock: Option<Clock>,
    pub offset_ns: i64,
}

/// Whether a file that begins with these bytes is a manifest.
pub(super) fn is_manifest(path: &str, start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    let inside = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    path == MANIFEST_NAME || inside.is_some_and(|inside| inside.starts_with(b"\"perfetto_manifest\""))
}

/// An object of the manifest, and its place in it: `files[2].clocks`.
struct Object<'m> {
    members: &'m Map<String, Value>,
    place: String,
}

impl<'m> Object<'m> {
    fn new(value: &'m Value, place: String) -> Result<Object<'m>, ManifestError> {
        match value {
            Value::Object(members) => Ok(Object { members, place }),
            _ => Err(ManifestError::Type { member: place, wanted: "an object" }),
        }
    }

    fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    fn object(&self, name: &str) -> Result<Option<Object<'m>>, ManifestError> {
        self.members.get(name).map(|value| Object::new(value, self.place_of(name))).transpose()
    }

    /// The elements of a list, each an object.
    fn objects(&self, name: &str) -> Result<Vec<Object<'m>>, ManifestError> {
        let place = self.place_of(name);
        let list = match self.members.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(ManifestError::Type { member: place, wanted: "a list" }),
        };
        let element = |(at, value)| Object::new(value, format!("{place}[{at}]"));
        list.iter().enumerate().map(element).collect()
    }

    fn text(&self, name: &str) -> Result<Option<String>, ManifestError> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(ManifestError::Type { member: self.place_of(name), wanted: "a text" }),
        }
    }

    fn needed_text(&self, name: &str) -> Result<String, ManifestError> {
        self.text(name)?.ok_or_else(|| ManifestError::Missing { member: self.place_of(name) })
    }

    /// A text that is not empty.
    fn name(&self) -> Result<String, ManifestError> {
        let name = self.needed_text("name")?;
        if name.is_empty() {
            return Err(ManifestError::Type {
                member: self.place_of("name"),
                wanted: "a text that is not empty",
            });
        }
        Ok(name)
    }

    fn clock(&self, name: &str) -> Result<Option<Clock>, ManifestError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match CLOCKS.iter().find(|(known, _)| *known == text) {
            Some((_, clock)) => Ok(Some(*clock)),
            None => Err(ManifestError::Clock { member: self.place_of(name), name: text }),
        }
    }
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge { limit: MAX_MANIFEST_BYTES });
        }
        let document: Value = serde_json::from_slice(bytes)?;
        let Some(Value::Object(members)) = document.get("perfetto_manifest") else {
            return Err(ManifestError::NoManifest);
        };
        let manifest = Object { members, place: String::new() };
        match manifest.members.get("version") {
            None => return Err(ManifestError::NoVersion),
            Some(version) if version.as_i64() == Some(1) => {}
            Some(version) => return Err(ManifestError::Version(version.to_string())),
        }
        let files = manifest.objects("files")?;
        let files = files.iter().map(ManifestFile::parse).collect::<Result<Vec<_>, _>>()?;
        let mut parsed = Manifest { files, ..Manifest::default() };
        if let Some(trace_time) = manifest.object("trace_time")? {
            let clock = trace_time.clock("clock")?;
            let missing = || ManifestError::Missing { member: "trace_time.clock".to_owned() };
            parsed.trace_time = Some(clock.ok_or_else(missing)?);
            let file = trace_time.text("file")?;
            let machine = trace_time.text("machine")?;
            parsed.check_reference("trace_time", file.as_deref(), machine.as_deref())?;
        }
        if let Some(attributes) = manifest.object("attributes")? {
            parsed.attributes = attributes_of(&attributes)?;
        }
        parsed.check_clocks()?;
        Ok(parsed)
    }

    fn file(&self, path: &str) -> Option<&ManifestFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Checks that a clock refers to a file and a machine of the manifest.
    fn check_reference(
        &self,
        member: &str,
        path: Option<&str>,
        machine: Option<&str>,
    ) -> Result<(), ManifestError> {
        let member = || member.to_owned();
        let Some(path) = path else {
            let is_alone = machine.is_some();
            return if is_alone {
                Err(ManifestError::MachineWithoutFile { member: member() })
            } else {
                Ok(())
            };
        };
        let file = || path.to_owned();
        let Some(entry) = self.file(path) else {
            return Err(ManifestError::UnknownFile { member: member(), file: file() });
        };
        match machine {
            None if !entry.machines.is_empty() => {
                Err(ManifestError::NoMachine { member: member(), file: file() })
            }
            Some(machine) if !entry.machine_names().any(|name| name == machine) => {
                let machine = machine.to_owned();
                Err(ManifestError::UnknownMachine { member: member(), machine, file: file() })
            }
            _ => Ok(()),
        }
    }

    fn check_clocks(&self) -> Result<(), ManifestError> {
        for (at, entry) in self.files.iter().enumerate() {
            let Some(clocks) = &entry.clocks else { continue };
            let member = format!("files[{at}].clocks");
            self.check_reference(&member, Some(&entry.path), clocks.machine.as_deref())?;
            let other = clocks.other_machine.as_deref();
            self.check_reference(&format!("{member}.sync_to"), Some(&clocks.file), other)?;
        }
        Ok(())
    }
}

impl ManifestFile {
    fn parse(entry: &Object<'_>) -> Result<ManifestFile, ManifestError> {
        if entry.has("machine") && entry.has("machines") {
            return Err(ManifestError::MachineAndMachines { file: entry.place.clone() });
        }
        let machine = entry.object("machine")?.map(|machine| machine.name()).transpose()?;
        let machines = entry.objects("machines")?;
        let machine_of = |machine: &Object<'_>| {
            let member = machine.place_of("id");
            let id = machine.members.get("id").and_then(Value::as_i64);
            let wanted = "a whole number";
            let id = id.ok_or_else(|| ManifestError::Type { member: member.clone(), wanted })?;
            let id = u32::try_from(id).map_err(|_| ManifestError::Range { member })?;
            Ok((id, machine.name()?))
        };
        Ok(ManifestFile {
            path: entry.needed_text("path")?,
            machine,
            machines: machines.iter().map(machine_of).collect::<Result<_, ManifestError>>()?,
            clocks: entry.object("clocks")?.map(|clocks| ClockRelation::parse(&clocks)).transpose()?,
        })
    }

    /// The names of the machines that the file is of.
    pub(super) fn machine_names(&self) -> impl Iterator<Item = &str> {
        self.machine.iter().chain(self.machines.iter().map(|(_, name)| name)).map(String::as_str)
    }
}

impl ClockRelation {
    fn parse(clocks: &Object<'_>) -> Result<ClockRelation, ManifestError> {
        let missing = || ManifestError::Missing { member: clocks.place_of("sync_to") };
        let sync_to = clocks.object("sync_to")?.ok_or_else(missing)?;
        let other_machine = sync_to.text("machine")?;
        if other_machine.is_some() && !sync_to.has("file") {
            return Err(ManifestError::MachineWithoutFile { member: sync_to.place });
        }
        let member = clocks.place_of("offset_ns");
        let offset_ns = match clocks.members.get("offset_ns") {
            None => 0,
            Some(value) => value.as_i64().ok_or_else(|| ManifestError::Type {
                member: member.clone(),
                wanted: "a whole number of 64 bits",
            })?,
        };
        if offset_ns == i64::MIN {
            return Err(ManifestError::Range { member });
        }
        Ok(ClockRelation {
            clock: clocks.clock("clock")?,
            machine: clocks.text("machine")?,
            file: sync_to.needed_text("file")?,
            other_machine,
            other_clock: sync_to.clock("clock")?,
            offset_ns,
        })
    }
}

fn attributes_of(attributes: &Object<'_>) -> Result<Vec<(String, String)>, ManifestError> {
    let attribute = |(key, value): (&String, &Value)| {
        let wanted = |wanted| Err(ManifestError::Type { member: attributes.place_of(key), wanted });
        match value {
            _ if key.is_empty() => wanted("under a key that is not empty"),
            Value::String(text) => Ok((key.clone(), text.clone())),
            Value::Number(number) if number.is_i64() || number.is_u64() => {
                Ok((key.clone(), number.to_string()))
            }
            _ => wanted("a text or a whole number"),
        }
    };
    attributes.members.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(inside: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(format!(r#"{{"perfetto_manifest":{{{inside}}}}}"#).as_bytes())
    }

    #[test]
    fn a_manifest_is_read_whole() {
        let manifest = parse(
            r#""version":1, "new":[], "trace_time":{"clock":"REALTIME","file":"b"},
            "files":[{"path":"a","machines":[{"id":0,"name":"host"},{"id":7,"name":"vm"}]},
                     {"path":"b","machine":{"name":"watch"},"clocks":{"clock":"BOOTTIME","offset_ns":-5,
                      "sync_to":{"file":"a","machine":"vm","clock":"MONOTONIC"}}}],
            "attributes":{"run":42,"name":"x"}"#,
        );
        let manifest = manifest.unwrap();
        assert_eq!(manifest.trace_time, Some(Clock::Realtime));
        assert_eq!(manifest.files[0].machine_names().collect::<Vec<_>>(), ["host", "vm"]);
        let clocks = manifest.files[1].clocks.as_ref().unwrap();
        assert_eq!((clocks.clock, clocks.offset_ns), (Some(Clock::Boottime), -5));
        assert_eq!((clocks.file.as_str(), clocks.other_clock), ("a", Some(Clock::Monotonic)));
        assert_eq!(manifest.attributes, [("name".into(), "x".into()), ("run".into(), "42".into())]);
    }

    #[test]
    fn every_fault_of_a_manifest_is_an_error_that_names_its_place() {
        let file = |inside: &str| format!(r#""version":1,"files":[{{"path":"a"}},{{"path":"b",{inside}}}]"#);
        let sync = |inside: &str| file(&format!(r#""clocks":{{{inside}}}"#));
        let cases = [
            (String::new(), "version is missing"),
            (r#""version":1.5"#.into(), "version is 1.5"),
            (r#""version":"1""#.into(), "version is \"1\""),
            (r#""version":2"#.into(), "version is 2"),
            (r#""version":1,"files":{}"#.into(), "files must be a list"),
            (r#""version":1,"files":["a"]"#.into(), "files[0] must be an object"),
            (r#""version":1,"files":[{"path":1}]"#.into(), "files[0].path must be a text"),
            (r#""version":1,"files":[{}]"#.into(), "files[0].path is missing"),
            (r#""version":1,"trace_time":"BOOTTIME""#.into(), "trace_time must be an object"),
            (r#""version":1,"trace_time":{}"#.into(), "trace_time.clock is missing"),
            (r#""version":1,"trace_time":{"clock":"BOOTIME"}"#.into(), "no clock is called \"BOOTIME\""),
            (r#""version":1,"trace_time":{"clock":3}"#.into(), "trace_time.clock must be a text"),
            (r#""version":1,"trace_time":{"clock":"REALTIME","file":"x"}"#.into(), "\"x\" is no path"),
            (r#""version":1,"trace_time":{"clock":"REALTIME","machine":"x"}"#.into(), "without its file"),
            (r#""version":1,"attributes":[]"#.into(), "attributes must be an object"),
            (r#""version":1,"attributes":{"a":1.5}"#.into(), "attributes.a must be a text or a whole number"),
            (r#""version":1,"attributes":{"":1}"#.into(), "key that is not empty"),
            (file(r#""machine":"x""#), "files[1].machine must be an object"),
            (file(r#""machine":{"name":""}"#), "machine.name must be a text that is not empty"),
            (file(r#""machine":{"name":"x"},"machines":[]"#), "a machine and machines"),
            (file(r#""machines":{}"#), "files[1].machines must be a list"),
            (file(r#""machines":[{"id":-1,"name":"x"}]"#), "files[1].machines[0].id is out of range"),
            (file(r#""machines":[{"id":4294967296,"name":"x"}]"#), "id is out of range"),
            (file(r#""machines":[{"id":"1","name":"x"}]"#), "id must be a whole number"),
            (file(r#""machines":[{"id":1,"name":""}]"#), "name must be a text that is not empty"),
            (file(r#""clocks":5"#), "files[1].clocks must be an object"),
            (sync(r#""offset_ns":5"#), "files[1].clocks.sync_to is missing"),
            (sync(r#""sync_to":{}"#), "sync_to.file is missing"),
            (sync(r#""sync_to":{"machine":"x"}"#), "without its file"),
            (sync(r#""sync_to":{"file":"c"}"#), "\"c\" is no path"),
            (sync(r#""sync_to":{"file":"a","machine":"x"}"#), "\"x\" is no machine of \"a\""),
            (sync(r#""machine":"x","sync_to":{"file":"a"}"#), "\"x\" is no machine of \"b\""),
            (sync(r#""sync_to":{"file":"a","clock":"x"}"#), "no clock is called \"x\""),
            (sync(r#""clock":"x","sync_to":{"file":"a"}"#), "no clock is called \"x\""),
            (sync(r#""offset_ns":1.5,"sync_to":{"file":"a"}"#), "offset_ns must be a whole number"),
            (sync(r#""offset_ns":-9223372036854775808,"sync_to":{"file":"a"}"#), "offset_ns is out of range"),
        ];
        for (inside, text) in cases {
            let error = parse(&inside).unwrap_err().to_string();
            assert!(error.contains(text), "{inside}: {error}");
        }
        let several = r#""version":1,"files":[{"path":"a","machines":[{"id":1,"name":"m"}]},
            {"path":"b","clocks":{"sync_to":{"file":"a"}}}]"#;
        assert!(parse(several).unwrap_err().to_string().contains("several machines"));
        for document in ["{}", "[]", r#"{"perfetto_manifest":[]}"#] {
            assert!(matches!(Manifest::parse(document.as_bytes()), Err(ManifestError::NoManifest)));
        }
    }
}
