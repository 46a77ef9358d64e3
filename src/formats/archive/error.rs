//! Why an archive cannot be read.

use crate::formats::input::InputError;
use crate::formats::unpack_budget::OverUnpackLimit;

/// So many traces are named in a message.
const NAMED_TRACES: usize = 20;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive or a file in it is damaged.
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
    /// Not one file of a tar can be read.
    #[error("{name}: the tar archive is cut or damaged: not one file in it can be read")]
    Tar {
        /// The archive's path as given.
        name: String,
    },
    /// A file in the archive cannot be decompressed.
    #[error(transparent)]
    Member(#[from] InputError),
    /// The manifest cannot be used.
    #[error("{name}: {what}")]
    Manifest {
        /// The archive's path as given, and the manifest's in it.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// There is no file of this name.
    #[error("{name}: holds no file {member}: `tracebridge info {name}` lists the traces in it")]
    NoMember {
        /// The archive's path as given.
        name: String,
        /// The file that was asked for.
        member: String,
    },
    /// There are several traces, and nothing says how they are related.
    #[error("{name}: holds {} traces: name one of them: {}", traces.len(), list(traces))]
    SeveralTraces {
        /// The archive's path as given.
        name: String,
        /// The traces in it, each as a user names it.
        traces: Vec<String>,
    },
}

/// Some traces for people.
fn list(traces: &[String]) -> String {
    let more = if traces.len() > NAMED_TRACES { ", …" } else { "" };
    format!("{}{more}", traces[..traces.len().min(NAMED_TRACES)].join(", "))
}
