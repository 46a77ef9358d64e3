//! Perfetto traces of the corpus through the reader.

use tracebridge::formats::{Order, detect, perfetto};

use crate::support;
use crate::texts::Told;

#[test]
fn each_perfetto_trace_has_the_events_that_perfettos_own_classes_count() {
    let Some(corpus) = support::corpus() else { return };
    let index = std::fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut seen = 0;
    for line in index.lines().filter(|l| l.starts_with("perfetto/")) {
        let (name, rest) = line.split_once('\t').unwrap();
        let count = rest.split("ftrace-events=").nth(1).unwrap();
        let want: usize = count.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let data = std::fs::read(corpus.join(name)).unwrap();
        assert_eq!(detect::detect(&data), detect::Format::Perfetto, "{name}");
        for order in [Order::Any, Order::Time] {
            let mut told = Told::default();
            let report = perfetto::read(&data, order, &mut told).unwrap();
            assert_eq!(told.events.len(), want, "{name}: {report:?}");
            assert_eq!(report.events(), want as u64);
            if order == Order::Time {
                assert!(told.events.is_sorted_by_key(|e| e.ts), "{name}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
}
