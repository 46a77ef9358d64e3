//! The pages that a real kernel handed out, and its own files that describe them: tests/golden/pages.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::PathBuf;

/// The files of one scenario. Each has the path that it has in tracefs.
pub struct KernelPages {
    archive: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl KernelPages {
    /// Reads the files of a scenario.
    ///
    /// # Panics
    /// If there is no such scenario.
    #[track_caller]
    pub fn read(scenario: &str) -> KernelPages {
        let archive = directory().join(scenario).with_extension("zip");
        let bytes = fs::read(&archive).unwrap_or_else(|e| panic!("{}: {e}", archive.display()));
        let mut packed = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        let mut files = BTreeMap::new();
        for index in 0..packed.len() {
            let mut member = packed.by_index(index).expect("a member of the archive");
            let mut contents = Vec::new();
            member.read_to_end(&mut contents).expect("the member is whole");
            files.insert(member.name().expect("a name in UTF-8").into_owned(), contents);
        }
        KernelPages { archive, files }
    }

    /// The names of all scenarios, in order.
    pub fn scenarios() -> Vec<String> {
        let names = crate::files::entries(&directory());
        names.iter().filter_map(|name| name.strip_suffix(".zip")).map(str::to_owned).collect()
    }

    /// The contents of a file.
    ///
    /// # Panics
    /// If the scenario has no such file.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.files.get(name).unwrap_or_else(|| panic!("{}: no {name}", self.archive.display()))
    }

    /// The contents of a text file.
    ///
    /// # Panics
    /// If the scenario has no such file.
    #[track_caller]
    pub fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).expect("a text of the kernel")
    }

    /// The pages of a CPU. Empty where the kernel had none.
    pub fn cpu(&self, cpu: usize) -> &[u8] {
        self.files.get(&format!("cpu{cpu}.raw")).map_or(&[], Vec::as_slice)
    }

    /// The `format` files, each with the names of its subsystem and of its event, by these names.
    pub fn formats(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.files.keys().filter_map(|path| {
            let (system, event) = path.strip_prefix("events/")?.strip_suffix("/format")?.split_once('/')?;
            Some((system, event, self.text(path)))
        })
    }

    /// The text that the kernel printed of the events on the pages.
    pub fn printed(scenario: &str) -> String {
        let path = directory().join(scenario).with_extension("txt");
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

fn directory() -> PathBuf {
    crate::project_dir().join("tests/golden/pages")
}
