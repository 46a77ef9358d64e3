//! Compares the output of `--json` with the published schemas (docs/schemas).

use std::path::Path;
use std::process::Stdio;

use crate::{Command, Ran};

/// Documents that commands have printed, each with the name of its schema.
pub struct Documents {
    python: String,
    text: Vec<u8>,
}

impl Documents {
    /// `None`, loudly, where no Python with the package jsonschema is installed.
    pub fn new() -> Option<Documents> {
        let python = crate::python::python_with("jsonschema")?;
        Some(Documents { python, text: Vec::new() })
    }

    /// Runs a command, and adds each line of its output, or the whole output, as a document of `schema`.
    /// Returns how the command went.
    pub fn add(&mut self, schema: &str, command: &mut Command) -> Ran {
        let out = command.run();
        assert!(!out.stdout.is_empty(), "{command:?}: {}", out.stderr);
        self.add_printed(schema, &out.stdout);
        out
    }

    /// The same for a command that may refuse its inputs, and prints nothing then. Returns whether it has
    /// printed anything.
    pub fn add_if_any(&mut self, schema: &str, command: &mut Command) -> bool {
        let out = command.run();
        assert!(matches!(out.code(), Some(0 | 1 | 3)), "{command:?}: {out:?}");
        self.add_printed(schema, &out.stdout);
        !out.stdout.is_empty()
    }

    fn add_printed(&mut self, schema: &str, printed: &str) {
        let is_pretty = printed.starts_with("{\n") || printed.starts_with("[\n");
        let lines: Vec<String> = if is_pretty {
            vec![printed.replace('\n', "")]
        } else {
            printed.split('\n').map(str::to_owned).collect()
        };
        for line in lines.iter().filter(|line| !line.is_empty()) {
            self.text.extend(format!("{schema}\t{line}\n").bytes());
        }
    }

    /// Asserts that every document has the form of its schema. Returns the number of documents.
    pub fn check(self) -> usize {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("check_schemas.py");
        let mut checker = Command::new(self.python);
        checker.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut checker = checker.spawn().unwrap();
        let expected = self.text.iter().filter(|b| **b == b'\n').count();
        checker.feed(self.text);
        let done = checker.finish().exited(0);
        assert_eq!(done.stdout, format!("{expected} documents checked\n"));
        expected
    }
}
