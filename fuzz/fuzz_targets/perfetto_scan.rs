//! Any bytes as a Perfetto trace, counted twice: by the reader, which decodes every event, and by the scan
//! that a copy of whole packets uses. Where the reader finds no damage, both counts agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Order, perfetto};
use tracebridge::internals::count_perfetto;
use tracebridge_fuzz::Render;

fuzz_target!(|data: &[u8]| {
    let read = perfetto::read(data, Order::Any, &mut Render::default()).expect("the sink never fails");
    let counted = count_perfetto(data);
    if read.damage.is_empty() && read.notes.is_empty() {
        let of = |report: &tracebridge::formats::ReadReport| (report.events(), report.lost());
        assert_eq!(of(&read), of(&counted));
        // The reader also counts what it leaves of packets that it reads; the scan counts whole packets.
        let is_part = |kind: &str| {
            ["sys_stats_", "process_stats_", "power_rails_"].iter().any(|packet| kind.starts_with(packet))
        };
        let packets = read.unread.into_iter().filter(|(kind, _)| !is_part(kind));
        assert_eq!(packets.collect::<std::collections::BTreeMap<_, _>>(), counted.unread);
    }
});
