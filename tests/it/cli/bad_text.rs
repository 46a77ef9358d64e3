//! Malformed trace texts and Perfetto traces.

/// Converts `content` and returns the exit status and the text on standard error.
fn convert(name: &str, content: &[u8], out: &str) -> (Option<i32>, String) {
    let dir = support::tempdir();
    std::fs::write(dir.path().join(name), content).unwrap();
    let mut command = support::tracebridge();
    let done = command.current_dir(dir.path()).args(["convert", name, "-o", out]).output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn a_cpu_that_no_machine_has_is_refused() {
    for out in ["o.dat", "o.pftrace"] {
        let (code, messages) = convert("in.txt", b" a-1 [4294967295] 1.5: foo: a=1\n", out);
        assert_eq!(code, Some(1), "{messages}");
        assert!(messages.contains("4294967295"), "{messages}");
    }
}

#[test]
fn a_perfetto_trace_cut_within_a_packet_opens_up_to_the_cut() {
    // An event of CPU 0 (time 9, thread 7, an empty print), then a packet of 100 bytes, cut after its first.
    let trace = [0x0a, 10, 0x0a, 8, 0x12, 6, 8, 9, 16, 7, 0x1a, 0, 0x0a, 100, 0x0a];
    let (code, messages) = convert("in.pftrace", &trace, "o.csv");
    assert_eq!(code, Some(3), "{messages}");
    let (code, messages) = convert("in.pftrace", &trace[..12], "o.csv");
    assert_eq!(code, Some(0), "{messages}");
}
