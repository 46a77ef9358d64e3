//! Writes the first inputs of the fuzz targets that read trace.dat files, their pages and their event
//! formats: `cargo run --example generate_fuzz_seeds -- fuzz/corpus`

use std::path::PathBuf;
use std::{fs, io};

#[path = "../tests/support/foreign_dat.rs"]
mod foreign_dat;

use foreign_dat::{FORMAT, Maker, all, make};

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).filter(|dir| !dir.starts_with('-'));
    let dir = PathBuf::from(dir.expect("usage: generate_fuzz_seeds DIRECTORY"));
    let save = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(dir.join(target))?;
        fs::write(dir.join(target).join(name), bytes)
    };
    for (endian, long, packing) in all() {
        let name = format!("{endian:?}-{long}-{packing:?}").to_lowercase();
        save("trace_dat", &name, &make(endian, long, packing))?;
        save("ftrace_page", &name, &Maker::new(endian, long).page(5, 0, 3, Some(7))[..200])?;
    }
    save("event_format", "made_up", FORMAT.as_bytes())?;
    save(
        "print_fmt",
        "flags",
        br#""%s %5d", __print_flags(REC->b, "|", { 1, "A" }, { 2, "B" }), REC->a ? 1 : -2"#,
    )?;
    save(
        "print_fmt",
        "pointers",
        br#""%pS %pI4 %*ph %s", (void *)REC->u, REC->addr, 3, REC->addr, __get_str(d)"#,
    )?;
    Ok(())
}
