//! Draws the call graph of every method trace of the corpus, and measures the pictures.

/// The most pixels that a picture is wide without an option: more cannot be read on a screen.
const MAX_WIDTH: u32 = 4_000;

#[test]
fn the_call_graph_of_every_trace_fits_a_screen() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dot") {
        return support::skip("dot", "no dot on PATH (package graphviz)");
    }
    let mut widths = Vec::new();
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        for options in [&[][..], &["--clock", "wall"], &["--threshold", "0.5"]] {
            let mut draw = support::tracebridge();
            draw.arg("profile").arg(&path).args(["--png", "-"]).args(options);
            let out = draw.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            if out.status.code() == Some(1) && said.contains("has no such clock") {
                continue;
            }
            assert!(matches!(out.status.code(), Some(0 | 3)), "{}: {said}", path.display());
            // A PNG file has its width behind its signature and the start of its first part.
            let width = u32::from_be_bytes(out.stdout[16..20].try_into().unwrap());
            assert!((100..=MAX_WIDTH).contains(&width), "{} {options:?}: {width}", path.display());
            widths.push(width);
        }
    }
    println!("{} pictures, widths {widths:?}", widths.len());
    assert!(widths.len() > 20);
}
