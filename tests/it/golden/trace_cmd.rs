//! Files that the real trace-cmd wrote, against what the real trace-cmd reports of them.

use super::pages::assert_same;
use super::text::{
    Event, events, exact_times, reported_times, rounded, systrace, trace_cmd_report, without_learned_names,
};
use super::{golden, read_text};

/// Each file, and the report that was made of it. Version 7 holds what version 6 holds.
const FILES: [(&str, &str); 3] = [
    ("dat/v6.dat", "dat/v6.report.txt"),
    ("dat/v7-zstd.dat", "dat/v6.report.txt"),
    ("dat/split.dat", "dat/split.report.txt"),
];

/// An event of trace-cmd's report as the kernel prints it: markers are named after the function that wrote
/// them.
fn as_the_kernel_prints(event: Event) -> Event {
    let time = rounded(event.ns());
    let fields = event.fields.strip_prefix("tracing_mark_write: ").filter(|_| event.name == "print");
    let (name, fields) = match fields {
        Some(text) => ("tracing_mark_write".to_owned(), text.to_owned()),
        None => (event.name, event.fields),
    };
    Event { name, fields, time, ..event }
}

#[test]
fn every_file_reads_as_trace_cmd_reports_it() {
    for (file, report) in FILES {
        let report = read_text(&golden(report));
        let theirs: Vec<Event> = events(&report).into_iter().map(as_the_kernel_prints).collect();
        let ours: Vec<Event> = events(&systrace(&golden(file), 0))
            .into_iter()
            .map(|event| Event { flags: String::new(), ..event })
            .collect();
        let ours = without_learned_names(ours, &theirs, |event| &mut event.task);
        assert_same(&ours, &theirs, file);
        let reported = reported_times(&report);
        let exact = without_learned_names(exact_times(&golden(file)), &reported, |event| &mut event.2);
        assert_same(&exact, &reported, file);
    }
}

#[test]
fn what_is_written_from_a_golden_file_reads_the_same_in_trace_cmd() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    let dir = support::tempdir();
    for (file, report) in FILES {
        let out = dir.path().join("out.dat");
        let done = support::tracebridge().arg("convert").arg(golden(file)).arg("-o").arg(&out).run();
        assert!(done.status.success(), "{file}: {}", done.stderr);
        // The product's files hold no symbols, so trace-cmd prints the address of the function that wrote a
        // marker.
        let comparable = |report: &str| -> Vec<Event> {
            let without_writer = |event: Event| match event.name.as_str() {
                "print" => Event { fields: event.fields.split_once(": ").unwrap().1.to_owned(), ..event },
                _ => event,
            };
            events(report).into_iter().map(without_writer).collect()
        };
        let theirs = comparable(&read_text(&golden(report)));
        let ours = comparable(&trace_cmd_report(&out));
        let ours = without_learned_names(ours, &theirs, |event| &mut event.task);
        assert_same(&ours, &theirs, file);
    }
}

#[test]
fn the_golden_reports_are_what_trace_cmd_says_today() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    for (file, report) in FILES {
        let [theirs, golden_events] =
            [trace_cmd_report(&golden(file)), read_text(&golden(report))].map(|t| events(&t));
        assert_same(&theirs, &golden_events, file);
    }
}
