//! Opens the traces in an archive (zip, tar, and these packed with gzip or zstd) or in a directory.
//!
//! - With a manifest, as `merge` and Perfetto's tools write it: the files that it lists, on the clocks that
//!   it relates, and the other traces.
//! - In a bug report of Android: its system traces, and the method traces in its dumps of threads.
//! - Otherwise all traces of an archive, as Perfetto opens it. Of several traces in a directory the user
//!   names one.

mod manifest;
mod members;
pub(super) mod tar;

use std::io::{self, Read};
use std::path::Path;

use super::Damage;
use super::contained::{self, ContainedTrace, may_hold_a_dump};
use super::format_id::FormatId;
use super::input::{
    Input, InputError, InputSet, ManifestPlace, Omission, OmissionReason, first_bytes, unpacking_reader,
};
use super::input_format::identify_bytes;
use super::unpack_budget::{UnpackBudget, UnpackLimit, is_over_limit};
use crate::depth::Depth;
use manifest::{Manifest, ManifestFile, is_manifest};

pub use manifest::ManifestError;
pub(super) use members::ZIP_MAGIC;
pub use members::{ArchiveError, Members, is_zip};

/// So many archives inside each other are opened.
const DEPTH: Depth = Depth::new(3);

/// Whether the bytes are those of an archive.
pub fn is_archive(bytes: &[u8]) -> bool {
    is_zip(bytes) || tar::is_tar(bytes)
}

/// The traces in an archive. Without any, the set is empty.
///
/// # Errors
/// [`ArchiveError`].
pub fn inputs_in(input: &Input) -> Result<InputSet, ArchiveError> {
    inputs_nested(input, DEPTH)
}

fn inputs_nested(input: &Input, depth: Depth) -> Result<InputSet, ArchiveError> {
    let Some(members) = Members::of_archive(input)? else { return Ok(InputSet::default()) };
    let cut = members.is_cut.then(|| Damage {
        offset: input.len() as u64,
        what: "the archive is cut or damaged: files of it may be missing".to_owned(),
    });
    let mut set = Archive { members }.inputs(depth)?;
    for member in &mut set.inputs {
        // Bytes that are missing of the archive may be missing of each file.
        if member.damage.is_empty() {
            member.damage.extend(input.damage.iter().chain(&cut).cloned());
        }
    }
    Ok(set)
}

/// The traces in a directory. Without any, the set is empty.
///
/// # Errors
/// [`ArchiveError`].
pub fn inputs_in_directory(path: &Path, limit: &UnpackLimit) -> Result<InputSet, ArchiveError> {
    let name = path.display().to_string();
    let members = Members::of_directory(path, limit).map_err(|source| InputError::Io { name, source })?;
    Archive { members }.inputs(DEPTH)
}

/// The file `path` in an archive.
///
/// # Errors
/// [`ArchiveError`].
pub fn member(input: &Input, path: &str) -> Result<Input, ArchiveError> {
    let missing = || ArchiveError::NoMember { name: input.name.clone(), member: path.to_owned() };
    let mut member = Members::of_archive(input)?.ok_or_else(missing)?.open(path)?;
    member.damage.extend(input.damage.iter().cloned());
    Ok(member)
}

/// The findings from the first bytes of an archive's files.
#[derive(Default)]
struct Survey {
    manifests: Vec<String>,
    traces: Vec<(String, FormatId)>,
    archives: Vec<String>,
    dumps: Vec<ContainedTrace>,
    is_bug_report: bool,
    omissions: Vec<Omission>,
}

struct Archive<'a> {
    members: Members<'a>,
}

impl Archive<'_> {
    fn inputs(mut self, depth: Depth) -> Result<InputSet, ArchiveError> {
        let survey = self.survey();
        let limits = std::mem::take(&mut self.members.omissions);
        let mut set = self.found(survey, depth)?;
        set.omissions.extend(limits);
        Ok(set)
    }

    fn found(&mut self, survey: Survey, depth: Depth) -> Result<InputSet, ArchiveError> {
        if let Some(path) = survey.manifests.first() {
            if survey.manifests.len() > 1 {
                let name = format!("{}/{}", self.members.name(), survey.manifests[1]);
                return Err(ArchiveError::Manifest { name, source: Box::new(ManifestError::Two) });
            }
            return self.listed(&path.clone(), &survey);
        }
        if !survey.dumps.is_empty() || survey.is_bug_report {
            return self.bug_report(survey);
        }
        let is_video = |found: &&(String, FormatId)| found.1 == FormatId::ScreenVideo;
        let videos = survey.traces.iter().filter(is_video);
        let others: Vec<_> = survey.traces.iter().filter(|found| !is_video(found)).collect();
        if let [(path, _)] = others.as_slice() {
            let paths = [path].into_iter().chain(videos.map(|(path, _)| path));
            let inputs = paths.map(|path| self.members.open(path)).collect::<Result<_, _>>()?;
            return Ok(InputSet { inputs, omissions: survey.omissions });
        }
        let inner = depth.inner().ok();
        match (survey.traces.as_slice(), survey.archives.as_slice(), inner) {
            ([], [nested], Some(depth)) => inputs_nested(&self.members.open(nested)?, depth),
            ([], ..) => Ok(InputSet { inputs: Vec::new(), omissions: survey.omissions }),
            ([(path, _)], ..) => {
                Ok(InputSet { inputs: vec![self.members.open(path)?], omissions: survey.omissions })
            }
            (several, ..) if self.members.is_directory() => Err(ArchiveError::SeveralTraces {
                name: self.members.name().to_owned(),
                traces: several.iter().map(|(path, _)| self.members.named(path)).collect(),
            }),
            (several, ..) => self.related(several, survey.omissions.clone()),
        }
    }

    /// Looks at the first bytes of each file, and takes the method traces out of the dumps of threads.
    fn survey(&mut self) -> Survey {
        let mut survey = Survey::default();
        let budget = self.members.budget().clone();
        for number in 0..self.members.count() {
            // Files that cannot be read are no traces; `info` names them.
            let _ = self.members.read_entry(number, |path, _, content| survey.add(path, content, &budget));
        }
        survey.traces.sort_by(|(a, _), (b, _)| a.cmp(b));
        let container = self.members.name();
        survey.omissions.iter_mut().for_each(|omission| {
            omission.name = format!("{container}/{}", omission.name);
        });
        survey
    }

    /// All traces of an archive, as Perfetto opens it. Its own traces come first: they have clock snapshots.
    fn related(
        &mut self,
        traces: &[(String, FormatId)],
        omissions: Vec<Omission>,
    ) -> Result<InputSet, ArchiveError> {
        let mut traces: Vec<_> = traces.iter().collect();
        traces.sort_by_key(|(_, format)| *format != FormatId::Perfetto);
        let inputs = traces.into_iter().map(|(path, _)| self.members.open(path));
        Ok(InputSet { inputs: inputs.collect::<Result<_, _>>()?, omissions })
    }

    /// The files that the manifest lists, in its order, and the other traces behind them.
    fn listed(&mut self, path: &str, survey: &Survey) -> Result<InputSet, ArchiveError> {
        let container = self.members.name().to_owned();
        let wrong =
            |source| ArchiveError::Manifest { name: format!("{container}/{path}"), source: Box::new(source) };
        let document = self.members.open(path)?;
        let manifest = Manifest::parse(&document).map_err(wrong)?;
        let mut inputs = Vec::new();
        for entry in &manifest.files {
            let is_no_trace = survey.archives.contains(&entry.path) || survey.manifests.contains(&entry.path);
            if is_no_trace && entry.clocks.is_some() {
                return Err(wrong(ManifestError::NoTrace { file: entry.path.clone() }));
            }
            let mut member = self.members.open(&entry.path)?;
            member.offset_ns = entry.clocks.as_ref().map(|clocks| clocks.offset_ns);
            member.place = Some(Box::new(place_of(entry, &manifest, &container)));
            inputs.push(member);
        }
        let is_listed = |path: &str| manifest.files.iter().any(|entry| entry.path == path);
        for (path, _) in survey.traces.iter().filter(|(path, _)| !is_listed(path)) {
            let mut member = self.members.open(path)?;
            let trace_time = manifest.trace_time;
            member.place = Some(Box::new(ManifestPlace { trace_time, ..ManifestPlace::default() }));
            inputs.push(member);
        }
        if let Some(first) = inputs.first_mut().and_then(|input| input.place.as_mut()) {
            first.attributes = manifest.attributes;
        }
        Ok(InputSet { inputs, omissions: survey.omissions.clone() })
    }

    /// The system traces of a bug report, and the method traces in its dumps. Other traces are named.
    fn bug_report(&mut self, survey: Survey) -> Result<InputSet, ArchiveError> {
        let mut set = InputSet { inputs: Vec::new(), omissions: survey.omissions };
        for (path, format) in survey.traces {
            if is_system_trace(&path) {
                set.inputs.push(self.members.open(&path)?);
            } else {
                let name = format!("{}/{path}", self.members.name());
                set.omissions.push(Omission { name, reason: OmissionReason::BesideDumps { format } });
            }
        }
        let container = self.members.name();
        set.inputs.extend(survey.dumps.into_iter().map(|trace| trace.into_input(container)));
        Ok(set)
    }
}

/// The place of a file, as the manifest states it.
fn place_of(entry: &ManifestFile, manifest: &Manifest, container: &str) -> ManifestPlace {
    let machines: Vec<&str> = entry.machine_names().collect();
    ManifestPlace {
        trace_time: manifest.trace_time,
        machine: (!machines.is_empty()).then(|| machines.join(" and ")),
        clock: entry.clocks.as_ref().and_then(|clocks| clocks.clock),
        other: entry.clocks.as_ref().map(|clocks| format!("{container}/{}", clocks.file)),
        other_clock: entry.clocks.as_ref().and_then(|clocks| clocks.other_clock),
        attributes: Vec::new(),
    }
}

impl Survey {
    fn add(&mut self, path: String, content: &mut dyn Read, budget: &UnpackBudget) {
        if is_hidden(&path) {
            return;
        }
        self.is_bug_report |= path.contains("FS/data/") || is_name_of_a_report(&path);
        let Ok(mut content) = unpacking_reader(content, &budget.afresh()) else { return };
        let Ok(start) = first_bytes(&mut content) else { return };
        if is_manifest(&path, &start) {
            self.manifests.push(path);
        } else if is_name_of_a_dump(&path) && may_hold_a_dump(&start) {
            match read_text(start.chain(content), budget) {
                Ok(text) => add_new(&mut self.dumps, contained::in_text(&text)),
                Err(error) if is_over_limit(&error) => {
                    let reason = OmissionReason::TooBig(budget.error());
                    self.omissions.push(Omission { name: path, reason });
                }
                // The member is damaged.
                Err(_) => {}
            }
        } else if is_archive(&start) {
            self.archives.push(path);
        } else if let Ok(format) = identify_bytes(&start) {
            self.traces.push((path, format));
        }
    }
}

/// Whether a file is one of those that macOS adds to archives, or another hidden one.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') && part != "." && part != ".." || part == "__MACOSX")
}

/// Whether bug reports give this name to a text that may hold a dump of threads.
fn is_name_of_a_dump(path: &str) -> bool {
    path.contains("anr") || is_name_of_a_report(path)
}

/// Whether it is the name of the report itself.
fn is_name_of_a_report(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    (name.starts_with("bugreport") || name.starts_with("dumpstate")) && name.ends_with(".txt")
}

/// Whether a bug report has a trace of the system at this path. There are Perfetto's trace (AOSP
/// `frameworks/native`, dumpstate's `MaybeSnapshotSystemTrace`), traces that Perfetto had to recover, and the
/// trace of atrace.
fn is_system_trace(path: &str) -> bool {
    path.contains("/misc/perfetto-traces/")
        || path.contains("recovered-traces/")
        || path.ends_with("systrace.txt")
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
    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::super::contained::tests::DUMPS;
    use super::manifest::MANIFEST_NAME;
    use super::tar::tests::tar;
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
        let manifest = r#"{"perfetto_manifest":{"version":1,"files":[
            {"path":"recording.pftrace"}, {"path":"0-app.trace","clocks":{"offset_ns":-5,
             "sync_to":{"file":"recording.pftrace"}}}]}}"#;
        let files = [("0-app.trace", "methods"), (MANIFEST_NAME, manifest), ("recording.pftrace", "events")];
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
            ("{}", "no object perfetto_manifest"),
            (r#"{"perfetto_manifest":{"version":1,"files":[{}]}}"#, "files[0].path is missing"),
            (r#"{"perfetto_manifest":{"version":1,"files":[{"path":"gone"}]}}"#, "holds no file gone"),
            (
                &format!(r#"{{"perfetto_manifest":{{"x":"{}"}}}}"#, "x".repeat(70_000)),
                "more than 65536 bytes",
            ),
        ] {
            let error = inputs_in(&archive(&[(MANIFEST_NAME, manifest)])).unwrap_err().to_string();
            assert!(error.contains("x.zip") && error.contains(said), "{error}");
        }
        let whole = archive(&[(MANIFEST_NAME, "{}"), ("a", "aaaaaaaaaaaaaaa")]);
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

    const TEXT: &[u8] = b"# tracer: nop\n sh-1 [000] 12.345678: print: B|1|a\n";

    fn names(set: &InputSet) -> Vec<&str> {
        set.inputs.iter().map(|input| input.name.as_str()).collect()
    }

    #[test]
    fn the_only_trace_of_an_archive_or_a_directory_is_taken() {
        let files: [(&str, &[u8]); 4] =
            [("readme.md", b"hello"), ("d/a.txt", TEXT), ("._a.txt", TEXT), ("__MACOSX/a.txt", TEXT)];
        let bytes = tar(&files);
        let set = inputs_in(&Input::from_bytes("x.tar", bytes.clone())).unwrap();
        assert_eq!((names(&set), &set.inputs[0][..]), (vec!["x.tar/d/a.txt"], TEXT));
        let outer = tar(&[("inner.tar", &bytes)]);
        let set = inputs_in(&Input::from_bytes("y.tar", outer)).unwrap();
        assert_eq!(names(&set), ["y.tar/inner.tar/d/a.txt"]);
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/a.txt"), TEXT).unwrap();
        std::fs::write(dir.path().join("notes"), "hello").unwrap();
        let set = inputs_in_directory(dir.path(), &UnpackLimit::default()).unwrap();
        assert_eq!((set.inputs.len(), &set.inputs[0][..]), (1, TEXT));
    }

    #[test]
    fn files_of_an_archive_that_are_too_many_are_told_of() {
        let mut files: Vec<(&str, &[u8])> = vec![("a.txt", TEXT)];
        files.resize(100_000, ("empty", b""));
        let omissions = |files: &[(&str, &[u8])]| {
            let set = inputs_in(&Input::from_bytes("x.tar", tar(files))).unwrap();
            assert_eq!(names(&set), ["x.tar/a.txt"]);
            set.omissions.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(omissions(&files).is_empty());
        files.push(("b.txt", TEXT));
        assert_eq!(omissions(&files), ["x.tar: only the first 100000 files were searched"]);
    }

    #[test]
    fn directories_that_are_too_deep_are_told_of() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), TEXT).unwrap();
        std::fs::create_dir_all(dir.path().join("d/".repeat(34))).unwrap();
        let set = inputs_in_directory(dir.path(), &UnpackLimit::default()).unwrap();
        let told: Vec<String> = set.omissions.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].ends_with("d/d: too deep, not searched"), "{told:?}");
    }

    #[test]
    fn several_traces_of_an_archive_are_taken_and_of_a_directory_one_must_be_named() {
        let dir = tempfile::tempdir().unwrap();
        ["a.txt", "b.txt"].iter().for_each(|name| std::fs::write(dir.path().join(name), TEXT).unwrap());
        let error = inputs_in_directory(dir.path(), &UnpackLimit::default()).unwrap_err().to_string();
        assert!(error.contains("holds 2 traces") && error.contains("/a.txt, "), "{error}");
        let trace = b"\x0a\x04\x50\x01\x40\x02";
        let input = Input::from_bytes("x.tar", tar(&[("a.txt", TEXT), ("b.txt", TEXT), ("c.pb", trace)]));
        assert_eq!(names(&inputs_in(&input).unwrap()), ["x.tar/c.pb", "x.tar/a.txt", "x.tar/b.txt"]);
        assert_eq!(member(&input, "./b.txt").unwrap().name, "x.tar/./b.txt");
        assert!(member(&input, "c.txt").unwrap_err().to_string().contains("holds no file c.txt"));
    }

    #[test]
    fn a_manifest_is_known_by_its_contents() {
        let one =
            br#" {"perfetto_manifest":{"version":1,"files":[{"path":"b.txt","clocks":{"sync_to":{"file":"b.txt"},"offset_ns":7}}]}}"#;
        let set = inputs_in(&Input::from_bytes("x.tar", tar(&[("m.json", one), ("b.txt", TEXT)]))).unwrap();
        assert_eq!((names(&set), set.inputs[0].offset_ns), (vec!["x.tar/b.txt"], Some(7)));
        let all = br#"{"perfetto_manifest":{"version":1}}"#;
        let files: [(&str, &[u8]); 3] = [("m.json", all), ("b.txt", TEXT), ("a.txt", TEXT)];
        let set = inputs_in(&Input::from_bytes("x.tar", tar(&files))).unwrap();
        assert_eq!(names(&set), ["x.tar/a.txt", "x.tar/b.txt"]);
        let two = tar(&[("m.json", one), ("n.json", one), ("b.txt", TEXT)]);
        let error = inputs_in(&Input::from_bytes("x.tar", two)).unwrap_err().to_string();
        assert!(error.contains("two manifests"), "{error}");
    }

    #[test]
    fn a_bug_report_gives_its_system_traces_and_its_dumps() {
        let files: [(&str, &[u8]); 5] = [
            ("FS/data/misc/perfetto-traces/bugreport/systrace.pftrace", b"\x0a\x04\x50\x01\x40\x02"),
            ("systrace.txt", TEXT),
            ("FS/data/anr/anr_1", DUMPS.as_bytes()),
            ("FS/data/local/other.txt", TEXT),
            ("bugreport-x.txt", b"== dumpstate: 2026\n"),
        ];
        let set = inputs_in(&Input::from_bytes("bug.tar", tar(&files))).unwrap();
        assert_eq!(set.inputs.len(), 4, "{:?}", names(&set));
        assert_eq!(names(&set)[1], "bug.tar/systrace.txt");
        assert!(set.omissions.len() == 1 && set.omissions[0].name.ends_with("other.txt"));
    }

    #[test]
    fn a_cut_archive_is_damage_of_its_file() {
        let bytes = tar(&[("a.txt", &TEXT.repeat(40))]);
        for cut in (600..2000).step_by(100) {
            let set = inputs_in(&Input::from_bytes("x.tar", bytes[..cut].to_vec())).unwrap();
            assert_eq!(set.inputs[0].damage.len(), 1, "cut at {cut}");
        }
    }
}
