//! AUX data: the bytes that a CPU's own tracer writes, such as Intel PT. They are counted and named, and not
//! decoded.

use super::bytes::Bytes;
use crate::formats::{LossKind, LossPlace, ReadReport};

/// `perf_aux_record.flags`: the buffer was full (`PERF_AUX_FLAG_TRUNCATED`), or a part is missing
/// (`PERF_AUX_FLAG_PARTIAL`).
const INCOMPLETE: u64 = 0x01 | 0x04;
/// The tracers, by the type in `AUXTRACE_INFO` (`enum auxtrace_type` of perf).
const TRACERS: [(u32, &str); 6] = [
    (1, "Intel PT"),
    (2, "Intel BTS"),
    (3, "CoreSight ETM"),
    (4, "Arm SPE"),
    (5, "S390 CPUMSF"),
    (6, "HiSilicon PTT"),
];

/// The AUX data of a file.
#[derive(Debug, Default)]
pub(super) struct AuxData {
    tracer: Option<u32>,
    pieces: u64,
    bytes: u64,
    incomplete: u64,
}

impl AuxData {
    /// Reads an `AUXTRACE_INFO`.
    pub(super) fn info(&mut self, mut body: Bytes<'_>) {
        self.tracer = body.u32();
    }

    /// Reads an `AUXTRACE`, which the data follows.
    pub(super) fn piece(&mut self, mut body: Bytes<'_>) {
        self.pieces += 1;
        self.bytes = self.bytes.saturating_add(body.u64().unwrap_or(0));
    }

    /// Reads an `AUX`: offset, size and flags.
    pub(super) fn written(&mut self, mut body: Bytes<'_>) {
        let flags = body.u64().and_then(|_| body.u64()).and_then(|_| body.u64());
        self.incomplete += u64::from(flags.unwrap_or(0) & INCOMPLETE != 0);
    }

    /// Adds what is missing to a report.
    pub(super) fn report(&self, report: &mut ReadReport) {
        report.losses.add(LossKind::AuxData, LossPlace::Recording, self.pieces);
        report.losses.add(LossKind::IncompleteAuxData, LossPlace::Recording, self.incomplete);
        if self.pieces > 0 {
            let tracer = TRACERS.iter().find(|(number, _)| Some(*number) == self.tracer);
            let tracer = tracer.map_or("a tracer of the CPU", |(_, name)| name);
            let bytes = self.bytes;
            report.notes.push(format!("{bytes} bytes of AUX data of {tracer}: perf script decodes them"));
        }
    }
}
