//! Opens a zip of traces with a `perfetto_manifest.json`, as tracebridge writes it for Perfetto: a recording,
//! and method traces whose clocks the manifest relates to the recording's.
//!
//! <https://perfetto.dev/docs/reference/perfetto-manifest> defines the manifest.

use std::io::{Cursor, Read};

use serde_json::Value as Json;
use zip::ZipArchive;

use super::input::Input;
use super::is_zip;
use super::unpack_budget::{OverUnpackLimit, is_over_limit};

/// The manifest's name in the archive.
const MANIFEST: &str = "perfetto_manifest.json";
/// The largest manifest that is read, bytes.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The zip or a file in it is damaged, or compressed.
    #[error("{name}: {source}: unzip it and name the files in it")]
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
    /// The manifest cannot be used.
    #[error("{name}/{MANIFEST}: {what}")]
    Manifest {
        /// The archive's path as given.
        name: String,
        /// What is wrong.
        what: String,
    },
}

/// The files of the archive that the manifest lists, in its order; `None` if `input` is no zip with a
/// manifest.
///
/// # Errors
/// [`ArchiveError`].
pub fn members(input: &Input) -> Result<Option<Vec<Input>>, ArchiveError> {
    if !is_zip(input) {
        return Ok(None);
    }
    let zip_error = |file: &str, source| ArchiveError::Zip { name: format!("{}{file}", input.name), source };
    let mut zip = ZipArchive::new(Cursor::new(&input[..])).map_err(|source| zip_error("", source))?;
    if zip.index_for_name(MANIFEST).is_none() {
        return Ok(None);
    }
    let mut file = |path: &str, limit: u64| {
        let name = format!("/{path}");
        let mut bytes = Vec::new();
        let member = zip.by_name(path).map_err(|source| zip_error(&name, source))?;
        let read = input.unpack_budget.read_to_end(member.take(limit), &mut bytes);
        read.map_err(|source| match is_over_limit(&source) {
            true => {
                let source = input.unpack_budget.error();
                ArchiveError::TooBig { name: format!("{}{name}", input.name), source }
            }
            false => zip_error(&name, source.into()),
        })?;
        Ok(bytes)
    };
    let wrong = |what: String| ArchiveError::Manifest { name: input.name.clone(), what };
    let manifest: Json = serde_json::from_slice(&file(MANIFEST, MAX_MANIFEST_BYTES)?)
        .map_err(|error| wrong(error.to_string()))?;
    let files = manifest["perfetto_manifest"]["files"].as_array();
    let files = files.ok_or_else(|| wrong("it lists no files".into()))?;
    let mut members = Vec::new();
    for entry in files {
        let path = entry["path"].as_str().ok_or_else(|| wrong("a file has no path".into()))?;
        let bytes = file(path, u64::MAX)?;
        let mut member = Input::from_bytes(&format!("{}/{path}", input.name), bytes);
        member.unpack_budget = input.unpack_budget.clone();
        member.offset_ns = entry["clocks"]["offset_ns"].as_i64();
        members.push(member);
    }
    Ok(Some(members))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

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
        let members = members(&archive(&files)).unwrap().unwrap();
        let told: Vec<(&str, &[u8], Option<i64>)> =
            members.iter().map(|m| (m.name.as_str(), &m[..], m.offset_ns)).collect();
        assert_eq!(
            told,
            [("x.zip/recording.pftrace", &b"events"[..], None), ("x.zip/0-app.trace", b"methods", Some(-5)),]
        );
    }

    #[test]
    fn other_zips_are_left_alone_and_bad_manifests_are_named() {
        assert!(members(&archive(&[("a.txt", "a")])).unwrap().is_none());
        assert!(members(&Input::from_bytes("a", b"no zip".to_vec())).unwrap().is_none());
        for (manifest, said) in [
            ("{", "EOF"),
            ("{}", "lists no files"),
            (r#"{"perfetto_manifest":{"files":[{}]}}"#, "has no path"),
            (r#"{"perfetto_manifest":{"files":[{"path":"gone"}]}}"#, "not found"),
        ] {
            let error = members(&archive(&[(MANIFEST, manifest)])).unwrap_err().to_string();
            assert!(error.contains("x.zip") && error.contains(said), "{error}");
        }
        let whole = archive(&[(MANIFEST, "{}"), ("a", "aaaaaaaaaaaaaaa")]);
        for cut in 4..whole.len() {
            let _ = members(&Input::from_bytes("cut", whole[..cut].to_vec()));
        }
    }
}
