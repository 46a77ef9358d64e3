//! Inputs that were opened together, and the parts of their files that are not among them.

use std::fmt;

use super::format_id::FormatId;
use super::input::Input;
use super::unpack_budget::OverUnpackLimit;

/// The inputs that one or several files hold.
#[derive(Debug, Default)]
pub struct InputSet {
    /// The inputs, in the order of the files.
    pub inputs: Vec<Input>,
    /// The parts of the files that are not among the inputs.
    pub omissions: Vec<Omission>,
}

/// A file, or a part of one, that is not among the inputs. Its text for people follows its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// The path as given; for a file in an archive that of the archive and the file's own behind it.
    pub name: String,
    /// Why it is not among the inputs.
    pub reason: OmissionReason,
}

/// The reason why a file is not among the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OmissionReason {
    /// An earlier input has the same contents.
    SameContents {
        /// The name of the earlier input.
        first: String,
    },
    /// The file is in an archive whose manifest does not list it.
    NotInManifest,
    /// The trace is in an archive from which only the method traces of dumps are taken.
    BesideDumps {
        /// The trace's format.
        format: FormatId,
    },
    /// The file unpacks to more than the archive still may.
    TooBig(OverUnpackLimit),
}

impl InputSet {
    /// A set of one input.
    pub fn of(input: Input) -> InputSet {
        InputSet { inputs: vec![input], omissions: Vec::new() }
    }

    /// Adds another set.
    pub(super) fn extend(&mut self, others: InputSet) {
        self.inputs.extend(others.inputs);
        self.omissions.extend(others.omissions);
    }

    /// The same without the inputs whose contents an earlier input has.
    pub(super) fn without_copies(self) -> InputSet {
        let mut set = InputSet { inputs: Vec::new(), omissions: self.omissions };
        for input in self.inputs {
            match set.inputs.iter().find(|first| first[..] == input[..]) {
                Some(first) => {
                    let reason = OmissionReason::SameContents { first: first.name.clone() };
                    set.omissions.push(Omission { name: input.name, reason });
                }
                None => set.inputs.push(input),
            }
        }
        set
    }
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl fmt::Display for OmissionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OmissionReason::SameContents { first } => {
                write!(f, "has the same contents as {first}: it is taken once")
            }
            OmissionReason::NotInManifest => {
                f.write_str("is left out: the archive's manifest does not list it")
            }
            OmissionReason::BesideDumps { format } => write!(
                f,
                "is left out: of an archive without a manifest only the method traces in dumps are read; this is \
                 a file of the format {format}: unzip it and name it"
            ),
            OmissionReason::TooBig(over_limit) => write!(f, "is left out: {over_limit}"),
        }
    }
}
