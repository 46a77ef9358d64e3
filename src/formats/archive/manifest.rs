//! The manifest of an archive, which says how the clocks of its files are related.
//! <https://perfetto.dev/docs/reference/perfetto-manifest> defines it.

use serde::Deserialize;

/// The usual name of the manifest. Perfetto knows it by its contents.
pub(super) const NAME: &str = "perfetto_manifest.json";
/// The largest manifest that is read, bytes: that of an archive with hundreds of files.
pub(super) const MAX_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct Document {
    perfetto_manifest: Option<Manifest>,
}

/// What is read of a manifest.
#[derive(Deserialize)]
pub(super) struct Manifest {
    /// The files, in their order; `None` where the manifest does not list any.
    pub(super) files: Option<Vec<ManifestFile>>,
}

/// One file of a manifest.
#[derive(Deserialize)]
pub(super) struct ManifestFile {
    pub(super) path: Option<String>,
    clocks: Option<Clocks>,
}

#[derive(Deserialize)]
struct Clocks {
    offset_ns: Option<i64>,
}

impl ManifestFile {
    /// What is added to the file's clock, ns.
    pub(super) fn offset_ns(&self) -> Option<i64> {
        self.clocks.as_ref()?.offset_ns
    }
}

/// Whether a file that begins with these bytes is a manifest.
pub(super) fn is_manifest(path: &str, start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    let inside = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    path == NAME || inside.is_some_and(|inside| inside.starts_with(b"\"perfetto_manifest\""))
}

/// Reads a manifest.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes, which no manifest needs"));
    }
    let document: Document = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    document.perfetto_manifest.ok_or_else(|| "it lists no files".to_owned())
}
