//! Opens the traces in a zip archive.
//!
//! - With a `perfetto_manifest.json`, as tracebridge writes it for Perfetto: a recording, and method traces
//!   whose clocks the manifest relates to the recording's.
//!   <https://perfetto.dev/docs/reference/perfetto-manifest> defines the manifest.
//! - Without one, as bug reports are: the method traces in the dumps of threads.

use std::collections::HashSet;
use std::io::{self, Cursor, Read};

use serde_json::Value as Json;
use zip::ZipArchive;

use super::contained::{self, ContainedTrace, may_hold_a_dump};
use super::input::{Input, InputError, first_bytes, unpacking_reader};
use super::input_format::identify_bytes;
use super::input_set::{InputSet, Omission, OmissionReason};
use super::unpack_budget::{OverUnpackLimit, UnpackBudget, is_over_limit};

/// The manifest's name in the archive.
const MANIFEST: &str = "perfetto_manifest.json";
/// The largest manifest that is read, bytes.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// Whether the bytes are those of a zip archive.
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The zip or a file in it is damaged, or compressed.
    #[error("{name}: the zip archive cannot be read: {source}: unzip it and name the files in it")]
    Zip {
        /// The archive's path as given, and the file in it.
        name: String,
        /// The error of the zip's reader.
        source: zip::result::ZipError,
    },
    /// The files unpack to more than they may.
    #[error("{name}: {source}")]
    TooBig {
        /// The archive's path as given, and the file in it.
        name: String,
        /// The limit.
        source: OverUnpackLimit,
    },
    /// A file in the archive cannot be decompressed.
    #[error(transparent)]
    Member(#[from] InputError),
    /// The manifest cannot be used.
    #[error("{name}/{MANIFEST}: {what}")]
    Manifest {
        /// The archive's path as given.
        name: String,
        /// What is wrong.
        what: String,
    },
}

/// The zip archive in an input.
struct Archive<'a> {
    input: &'a Input,
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

/// The traces in a zip archive: the files that its manifest lists, in the manifest's order, or else the
/// method traces in dumps of threads.
///
/// # Errors
/// [`ArchiveError`].
pub fn inputs_in(input: &Input) -> Result<InputSet, ArchiveError> {
    let zip = ZipArchive::new(Cursor::new(&input[..]));
    let zip = zip.map_err(|source| ArchiveError::Zip { name: input.name.clone(), source })?;
    let mut archive = Archive { input, zip };
    match archive.zip.index_for_name(MANIFEST) {
        Some(_) => archive.listed(),
        None => Ok(archive.in_dumps()),
    }
}

impl Archive<'_> {
    fn member_name(&self, file: &str) -> String {
        format!("{}/{file}", self.input.name)
    }

    /// The files that the manifest lists, in its order.
    fn listed(&mut self) -> Result<InputSet, ArchiveError> {
        let name = self.input.name.clone();
        let wrong = |what: String| ArchiveError::Manifest { name: name.clone(), what };
        let manifest = self.read(MANIFEST, MAX_MANIFEST_BYTES)?;
        let manifest: Json = serde_json::from_slice(&manifest).map_err(|error| wrong(error.to_string()))?;
        let files = manifest["perfetto_manifest"]["files"].as_array();
        let files = files.ok_or_else(|| wrong("it lists no files".into()))?;
        let mut set = InputSet::default();
        let mut listed = HashSet::from([MANIFEST]);
        for entry in files {
            let path = entry["path"].as_str().ok_or_else(|| wrong("a file has no path".into()))?;
            let bytes = self.read(path, u64::MAX)?;
            let budget = self.input.unpack_budget.clone();
            let mut member = Input::open_member(self.member_name(path), bytes, budget)?;
            member.offset_ns = entry["clocks"]["offset_ns"].as_i64();
            set.inputs.push(member);
            listed.insert(path);
        }
        for index in 0..self.zip.len() {
            let Ok(member) = self.zip.by_index_raw(index) else { continue };
            let path = String::from_utf8_lossy(member.name_raw()).into_owned();
            if member.is_file() && !listed.contains(&*path) {
                let name = format!("{name}/{path}");
                set.omissions.push(Omission { name, reason: OmissionReason::NotInManifest });
            }
        }
        Ok(set)
    }

    /// The bytes of the file `path`, at most `limit`.
    fn read(&mut self, path: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let name = self.member_name(path);
        let budget = &self.input.unpack_budget;
        let zip_error = |source| ArchiveError::Zip { name: name.clone(), source };
        let member = self.zip.by_name(path).map_err(zip_error)?;
        let mut bytes = Vec::new();
        match budget.read_to_end(member.take(limit), &mut bytes) {
            Err(error) if is_over_limit(&error) => {
                Err(ArchiveError::TooBig { name: name.clone(), source: budget.error() })
            }
            Err(error) => Err(zip_error(error.into())),
            Ok(()) => Ok(bytes),
        }
    }

    /// The method traces in dumps of threads. The other traces in the archive are named.
    fn in_dumps(&mut self) -> InputSet {
        let mut traces: Vec<ContainedTrace> = Vec::new();
        let mut omissions = Vec::new();
        for index in 0..self.zip.len() {
            let Ok(member) = self.zip.by_index(index) else { continue };
            let path = String::from_utf8_lossy(member.name_raw()).into_owned();
            let Ok(mut content) = unpacking_reader(member) else { continue };
            let Ok(start) = first_bytes(&mut content) else { continue };
            let reason = if is_name_of_a_dump(&path) && may_hold_a_dump(&start) {
                match read_text(start.chain(content), &self.input.unpack_budget) {
                    Ok(text) => {
                        add_new(&mut traces, contained::in_text(&text));
                        continue;
                    }
                    Err(error) if is_over_limit(&error) => {
                        OmissionReason::TooBig(self.input.unpack_budget.error())
                    }
                    // The member is damaged.
                    Err(_) => continue,
                }
            } else {
                match identify_bytes(&start) {
                    Ok(format) => OmissionReason::BesideDumps { format },
                    Err(_) => continue,
                }
            };
            omissions.push(Omission { name: format!("{}/{path}", self.input.name), reason });
        }
        let inputs = traces.into_iter().map(|trace| trace.into_input(&self.input.name)).collect();
        InputSet { inputs, omissions }
    }
}

/// Whether bug reports give this name to a text that may hold a dump of threads.
fn is_name_of_a_dump(path: &str) -> bool {
    path.contains("anr") || path.starts_with("bugreport") || path.starts_with("dumpstate")
}

fn read_text(from: impl Read, budget: &UnpackBudget) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    budget.read_to_end(from, &mut text)?;
    Ok(text)
}

/// Adds those of `found` that are not in `traces`: the text of a bug report repeats the dumps that are in
/// files of their own.
fn add_new(traces: &mut Vec<ContainedTrace>, found: Vec<ContainedTrace>) {
    for trace in found {
        let is_same = |known: &ContainedTrace| known.process == trace.process && known.bytes == trace.bytes;
        if !traces.iter().any(is_same) {
            traces.push(trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::super::contained::tests::DUMPS;
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Input {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in files {
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            zip.start_file(*name, options).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        Input::from_bytes("x.zip", zip.finish().unwrap().into_inner())
    }

    #[test]
    fn the_files_of_the_manifest_come_with_their_offsets() {
        let manifest = r#"{"perfetto_manifest":{"files":[
            {"path":"recording.pftrace"}, {"path":"0-app.trace","clocks":{"offset_ns":-5}}]}}"#;
        let files = [("0-app.trace", "methods"), (MANIFEST, manifest), ("recording.pftrace", "events")];
        let members = inputs_in(&archive(&files)).unwrap().inputs;
        let told: Vec<(&str, &[u8], Option<i64>)> =
            members.iter().map(|m| (m.name.as_str(), &m[..], m.offset_ns)).collect();
        assert_eq!(
            told,
            [("x.zip/recording.pftrace", &b"events"[..], None), ("x.zip/0-app.trace", b"methods", Some(-5)),]
        );
    }

    #[test]
    fn other_zips_are_left_alone_and_bad_manifests_are_named() {
        assert!(inputs_in(&archive(&[("a.txt", "a")])).unwrap().inputs.is_empty());
        assert!(!is_zip(b"no zip"));
        for (manifest, said) in [
            ("{", "EOF"),
            ("{}", "lists no files"),
            (r#"{"perfetto_manifest":{"files":[{}]}}"#, "has no path"),
            (r#"{"perfetto_manifest":{"files":[{"path":"gone"}]}}"#, "not found"),
        ] {
            let error = inputs_in(&archive(&[(MANIFEST, manifest)])).unwrap_err().to_string();
            assert!(error.contains("x.zip") && error.contains(said), "{error}");
        }
        let whole = archive(&[(MANIFEST, "{}"), ("a", "aaaaaaaaaaaaaaa")]);
        for cut in 4..whole.len() {
            let _ = inputs_in(&Input::from_bytes("cut", whole[..cut].to_vec()));
        }
    }

    #[test]
    fn a_dump_that_a_bug_report_holds_twice_is_taken_once() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        let report = format!("=========\n== dumpstate: 2026-11-22\n{DUMPS}");
        for (name, text) in
            [("FS/data/anr/anr_1", DUMPS), ("bugreport-x.txt", &report), ("version.txt", "2.0")]
        {
            zip.start_file(name, options).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let zip = zip.finish().unwrap().into_inner();
        let found = |bytes: &[u8]| inputs_in(&Input::from_bytes("bug.zip", bytes.to_vec()));
        let names: Vec<String> = found(&zip).unwrap().inputs.into_iter().map(|input| input.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for cut in (4..zip.len()).step_by(7) {
            let _ = found(&zip[..cut]);
        }
    }
}
