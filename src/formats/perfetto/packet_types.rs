//! Counts the packets of a trace by type.
//!
//! `scripts/gen-perfetto-tables` writes `packet_types.tsv` from Perfetto's published protos.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::fields::trace_packet;

/// Fields of `TracePacket` below this number are counted in an array.
const ARRAY_LEN: usize = 256;

/// The types of packets, by field number in `TracePacket`, sorted.
fn types() -> &'static [(u32, &'static str)] {
    static TYPES: OnceLock<Vec<(u32, &'static str)>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let lines = include_str!("packet_types.tsv").lines();
        lines
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(n, t)| Some((n.parse().ok()?, t)))
            .collect()
    })
}

/// The name of a type of packet: the name of its field in `TracePacket`.
pub(crate) fn name(field: u32) -> Cow<'static, str> {
    match types().binary_search_by_key(&field, |(number, _)| *number) {
        Ok(at) => types().get(at).map_or("", |(_, name)| name).into(),
        Err(_) => format!("packet_field_{field}").into(),
    }
}

/// Whether the field is a number in every packet that has it. All other fields are messages or texts.
pub(super) fn is_varint_field(field: u32) -> bool {
    is_envelope(field) && !matches!(field, trace_packet::INTERNED_DATA | trace_packet::TRACE_PACKET_DEFAULTS)
}

/// Whether the field says how a packet is to be read, and is not the packet's content.
fn is_envelope(field: u32) -> bool {
    matches!(
        field,
        trace_packet::TIMESTAMP
            | trace_packet::TRUSTED_PACKET_SEQUENCE_ID
            | trace_packet::INTERNED_DATA
            | trace_packet::SEQUENCE_FLAGS
            | trace_packet::INCREMENTAL_STATE_CLEARED
            | trace_packet::PREVIOUS_PACKET_DROPPED
            | trace_packet::TIMESTAMP_CLOCK_ID
            | trace_packet::TRACE_PACKET_DEFAULTS
            | trace_packet::TRUSTED_UID
            | trace_packet::TRUSTED_PID
            | trace_packet::FIRST_PACKET_ON_SEQUENCE
            | trace_packet::MACHINE_ID
    )
}

/// Types of packets that the reader reads, or that describe the recorder and not what it recorded.
const NOT_CONTENT: &[&str] = &[
    "ftrace_events",
    "process_tree",
    "packages_list",
    "clock_snapshot",
    "track_event",
    "track_descriptor",
    "process_descriptor",
    "thread_descriptor",
    "ftrace_stats",
    "frame_timeline_event",
    "battery",
    "power_rails",
    "sys_stats",
    "process_stats",
    "gpu_mem_total_event",
    "compressed_packets",
    "zstd_compressed_packets",
    "trace_config",
    "trace_stats",
    "synchronization_marker",
    "system_info",
    "trigger",
    "service_event",
    "extension_descriptor",
    "trace_uuid",
    "trace_provenance",
    "trace_attributes",
    "clone_snapshot_trigger",
    "remote_clock_sync",
    "protovms",
    "concurrent_session_event",
    "recovered_trace_info",
];

/// How many packets of each type a trace has.
#[derive(Debug, Clone)]
pub(crate) struct PacketTypes {
    by_field: [u64; ARRAY_LEN],
    beyond: BTreeMap<u32, u64>,
    /// Packets that hold only interned data, defaults or flags.
    without_content: u64,
}

impl Default for PacketTypes {
    fn default() -> PacketTypes {
        PacketTypes { by_field: [0; ARRAY_LEN], beyond: BTreeMap::new(), without_content: 0 }
    }
}

impl PacketTypes {
    /// Counts one packet whose content is the field `content`.
    #[inline]
    pub(crate) fn count_content(&mut self, content: Option<u32>) {
        let Some(field) = content else {
            self.without_content += 1;
            return;
        };
        match self.by_field.get_mut(field as usize) {
            Some(count) => *count += 1,
            None => *self.beyond.entry(field).or_default() += 1,
        }
    }

    /// The number of packets whose content is the field `field`.
    pub(crate) fn count_of(&self, field: u32) -> u64 {
        self.counted().find(|(counted, _)| *counted == field).map_or(0, |(_, count)| count)
    }

    /// The types that occur, and how many packets of each there are.
    fn counted(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let small = self.by_field.iter().enumerate().map(|(field, count)| (field as u32, *count));
        small.filter(|(_, count)| *count > 0).chain(self.beyond.iter().map(|(field, count)| (*field, *count)))
    }

    /// Packets whose content the reader does not read, by the name of their type.
    pub(crate) fn unread(&self) -> BTreeMap<String, u64> {
        let named = self.counted().map(|(field, count)| (name(field), count));
        named
            .filter(|(name, _)| !NOT_CONTENT.contains(&name.as_ref()))
            .map(|(n, c)| (n.into_owned(), c))
            .collect()
    }
}

/// Whether a field of `TracePacket` is the packet's content.
#[inline]
pub(crate) fn is_content(field: u32) -> bool {
    !is_envelope(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood_and_sorted() {
        assert_eq!(types().len(), include_str!("packet_types.tsv").lines().count());
        assert!(types().is_sorted_by_key(|(number, _)| *number), "name does a binary search");
        for name in NOT_CONTENT {
            assert!(types().iter().any(|(_, known)| known == name), "{name}");
        }
    }

    #[test]
    fn packets_are_counted_by_their_content() {
        let mut types = PacketTypes::default();
        for packet in [&[10, 66, 8, 12][..], &[1, 10], &[12, 13], &[76], &[69], &[1999]] {
            types.count_content(packet.iter().copied().find(|field| is_content(*field)));
        }
        let unread: Vec<(String, u64)> = types.unread().into_iter().collect();
        let want = [("packet_field_1999", 1), ("perf_sample", 1)];
        assert_eq!(unread, want.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(types.without_content, 1);
    }
}
