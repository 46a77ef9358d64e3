//! Datasets that somebody else has made or damaged: every command ends with a message, in little memory, and
//! what is damaged can be removed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use nix::sys::resource::{UsageWho, getrusage};
use parquet::basic::{Compression as Packing, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use support::python::{has_modules, query_of};
use support::scenario::{Era, Scenario};
use support::tables::parts;
use support::{Command, Ran, binary, run_in};

/// The address space of a command, KiB.
const MEMORY_KIB: u32 = 900 << 10;

/// Runs a command with little memory and little time.
fn run(dir: &Path, args: &[&str]) -> Ran {
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.current_dir(dir).arg("-c").arg(limited).arg(binary()).args(args);
    command.limit(Duration::from_secs(30));
    command.run()
}

/// Runs it, and expects neither a panic nor a signal.
fn survives(dir: &Path, args: &[&str]) -> Ran {
    let ran = run(dir, args);
    assert!(matches!(ran.code(), Some(0 | 1 | 3)), "{args:?}: {ran}");
    assert!(!ran.stderr.contains("panicked"), "{args:?}: {ran}");
    ran
}

/// A dataset `set` of two traces in one part. Returns the part.
fn dataset(dir: &Path) -> PathBuf {
    dataset_of(dir, |seed| Scenario::new(seed, Era::ArtMono))
}

/// The same, of what `scenario` makes of two seeds.
fn dataset_of(dir: &Path, scenario: impl Fn(u64) -> Scenario) -> PathBuf {
    for (name, seed) in [("a", 3), ("b", 4)] {
        let made = scenario(seed).make();
        fs::write(dir.join(format!("{name}.dat")), made.dat).unwrap();
        fs::write(dir.join(format!("{name}.trace")), made.trace).unwrap();
    }
    let args = ["dataset", "add", "set", "a.dat", "a.trace", "b.dat", "b.trace", "--tag", "k=v", "--events"];
    run_in(dir, &args).exited(0);
    parts(&dir.join("set")).remove(0)
}

fn ids(dir: &Path) -> Vec<String> {
    let said = run_in(dir, &["dataset", "list", "set"]).exited(0).stdout;
    said.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

fn copy_dataset(from: &Path, to: &Path) -> PathBuf {
    let part = parts(from).remove(0);
    let target = to.join(part.strip_prefix(from).unwrap());
    fs::create_dir_all(&target).unwrap();
    fs::copy(from.join(".tracebridge-lock"), to.join(".tracebridge-lock")).unwrap();
    for entry in fs::read_dir(&part).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
    target
}

/// Writes a table of so many rows, which are all the same, in one row group: some kilobytes.
fn write_many_rows(file: &Path, like: &Path, rows: usize) {
    let old = SerializedFileReader::new(fs::File::open(like).unwrap()).unwrap();
    let schema = old.metadata().file_metadata().schema();
    let zstd = Packing::ZSTD(ZstdLevel::try_new(3).unwrap());
    let properties = WriterProperties::builder().set_compression(zstd).set_max_row_group_row_count(None);
    let file = fs::File::create(file).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema.clone()), Arc::new(properties.build()));
    let writer = writer.as_mut().unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut at = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let defined = vec![0; rows];
        let is_optional = schema.get_fields()[at].is_optional();
        let (levels, count) = if is_optional { (Some(&defined[..]), 0) } else { (None, rows) };
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(w) => w.write_batch(&vec![7; count], levels, None),
            ColumnWriter::Int32ColumnWriter(w) => w.write_batch(&vec![7; count], levels, None),
            ColumnWriter::DoubleColumnWriter(w) => w.write_batch(&vec![7.0; count], levels, None),
            ColumnWriter::BoolColumnWriter(w) => w.write_batch(&vec![true; count], levels, None),
            ColumnWriter::ByteArrayColumnWriter(w) => {
                w.write_batch(&vec![ByteArray::from("text"); count], levels, None)
            }
            _ => panic!("a column of an unknown type"),
        }
        .unwrap();
        column.close().unwrap();
        at += 1;
    }
    group.close().unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_table_that_is_no_regular_file_is_named_and_can_be_removed() {
    let dir = support::tempdir();
    let dir = dir.path();
    let part = dataset(dir);
    let [first, second] = &ids(dir)[..] else { panic!("two traces") };
    let table = part.join("slice.parquet");
    type Make = fn(&Path);
    let kinds: [(&str, Make); 3] = [
        ("fifo", |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap()),
        ("link", |path| symlink("/etc/passwd", path).unwrap()),
        ("directory", |path| fs::create_dir(path).unwrap()),
    ];
    for (kind, make) in kinds {
        let copy = dir.join(kind);
        let copied = copy_dataset(&dir.join("set"), &copy);
        let table = copied.join("slice.parquet");
        fs::remove_file(&table).unwrap();
        make(&table);
        let said = run(dir, &["dataset", "check", kind]).exited(1).said();
        assert!(said.contains("slice.parquet: is not a regular file"), "{kind}: {said}");
        let said = run(dir, &["dataset", "add", "other", kind]).exited(3).said();
        assert!(said.contains("0 added") && said.contains("not a regular file"), "{kind}: {said}");
        assert!(parts(&dir.join("other")).is_empty());
        // The other trace of the part stays, without the table that nobody can read.
        let said = run(dir, &["dataset", "remove", kind, first]).exited(3).said();
        assert!(said.contains("slice.parquet") && said.contains("is kept"), "{kind}: {said}");
        let said = run(dir, &["dataset", "list", kind]).exited(0).said();
        assert!(said.contains(second.as_str()) && !said.contains(first.as_str()), "{kind}: {said}");
        run(dir, &["dataset", "remove", kind, second]).exited(0);
        run(dir, &["dataset", "check", kind]).exited(0);
    }
    // Whose ids cannot be read is removed by the name of its part.
    fs::remove_file(part.join("trace.parquet")).unwrap();
    fs::write(part.join("trace.parquet"), "no table").unwrap();
    assert!(table.exists());
    let said = run(dir, &["dataset", "remove", "set", first]).exited(1).said();
    let name = part.file_name().unwrap().to_str().unwrap();
    assert!(said.contains("trace.parquet") && said.contains(&format!("remove DATASET {name}")), "{said}");
    run(dir, &["dataset", "remove", "set", name]).exited(0);
    run(dir, &["dataset", "check", "set"]).exited(0);
}

#[test]
fn a_trace_whose_id_was_damaged_unnoticed_can_be_removed() {
    let dir = support::tempdir();
    let dir = dir.path();
    let part = dataset(dir);
    let [first, second] = &ids(dir)[..] else { panic!("two traces") };
    // Another list of traces is whole by itself, as one is in which a bit of an id is another.
    let other = dir.join("elsewhere");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("c.dat"), Scenario::new(5, Era::ArtMono).make().dat).unwrap();
    run_in(&other, &["dataset", "add", "set", "c.dat"]).exited(0);
    let listed = parts(&other.join("set")).remove(0).join("trace.parquet");
    fs::copy(listed, part.join("trace.parquet")).unwrap();
    let [stranger] = &ids(dir)[..] else { panic!("one trace") };
    run(dir, &["dataset", "check", "set"]).exited(1);
    copy_dataset(&dir.join("set"), &dir.join("alone"));
    let said = run(dir, &["dataset", "remove", "alone", first]).exited(3).said();
    assert!(said.contains("trace.parquet: lacks") && said.contains(first.as_str()), "{said}");
    run(dir, &["dataset", "remove", "alone", second]).exited(3);
    run(dir, &["dataset", "remove", "alone", stranger]).exited(0);
    run(dir, &["dataset", "check", "alone"]).exited(0);
    run(dir, &["dataset", "remove", "set", "0123456789"]).exited(1);
}

#[test]
fn tables_of_more_rows_than_a_trace_has_are_refused_in_little_memory() {
    let dir = support::tempdir();
    let dir = dir.path();
    let part = dataset(dir);
    for (name, rows) in [("trace", (64 << 10) + 1), ("tag", (4 << 20) + 1)] {
        let kind = format!("large-{name}");
        let copied = copy_dataset(&dir.join("set"), &dir.join(&kind));
        let table = format!("{name}.parquet");
        write_many_rows(&copied.join(&table), &part.join(&table), rows);
        let said = run(dir, &["dataset", "check", &kind]).exited(1).said();
        assert!(said.contains(&table) && said.contains("rows in"), "{said}");
        let said = run(dir, &["dataset", "add", "other", &kind]).exited(3).said();
        assert!(said.contains("0 added") && said.contains(&table), "{said}");
        survives(dir, &["dataset", "list", &kind]);
    }
}

#[test]
fn what_another_dataset_says_of_itself_is_checked_before_it_is_taken() {
    let dir = support::tempdir();
    let dir = dir.path();
    dataset(dir);
    run(dir, &["dataset", "add", "whole", "set"]).exited(0);
    run(dir, &["dataset", "check", "whole"]).exited(0);
    let taken = parts(&dir.join("whole")).remove(0);
    let given = parts(&dir.join("set")).remove(0);
    // Whoever may write to the one does not write to the other.
    fs::write(given.join("slice.parquet"), "garbage").unwrap();
    assert!(fs::read(taken.join("slice.parquet")).unwrap().starts_with(b"PAR1"));
    run(dir, &["dataset", "check", "whole"]).exited(0);
    let said = run(dir, &["dataset", "add", "other", "set"]).exited(3).said();
    assert!(said.contains("0 added") && said.contains("slice.parquet"), "{said}");
    // Rows that the table of traces does not count.
    fs::copy(taken.join("slice.parquet"), given.join("slice.parquet")).unwrap();
    let counter = given.join("counter.parquet");
    write_many_rows(&counter, &taken.join("counter.parquet"), 10);
    let said = run(dir, &["dataset", "add", "other", "set"]).exited(3).said();
    assert!(said.contains("0 added") && said.contains("which `trace` lacks"), "{said}");
}

/// A table of a dataset, damaged.
struct Damage {
    number: usize,
    file: PathBuf,
    bytes: Vec<u8>,
}

/// So many damages of these tables, the same in each run.
fn damages(files: &[PathBuf], count: usize) -> Vec<Damage> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut damages = Vec::new();
    for number in 0..count {
        let file = &files[number % files.len()];
        let mut bytes = fs::read(file).unwrap();
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        let footer_at = bytes.len() - 8 - footer;
        match number / files.len() % 4 {
            0 => bytes.truncate(random() % bytes.len()),
            // The footer and the headers of pages say the sizes; the rest is compressed.
            1 => {
                let at = footer_at + random() % footer;
                bytes[at] ^= 1 << (random() % 8);
            }
            2 if footer_at > 4 => {
                let at = 4 + random() % 64.min(footer_at - 4);
                bytes[at] = random() as u8;
            }
            _ => {
                for _ in 0..3 {
                    let at = footer_at + random() % footer;
                    bytes[at] = random() as u8;
                }
            }
        }
        damages.push(Damage { number, file: file.clone(), bytes });
    }
    damages
}

/// The commands that are run on each damaged dataset beside `check` and `remove`: those of its number alone,
/// or all of them.
#[derive(Clone, Copy, PartialEq)]
enum Commands {
    Some,
    All,
}

/// Runs the commands on a damaged copy of the dataset `set` in `dir`, whose first trace has this id. Returns
/// whether `check` finds the damage.
fn is_found(dir: &Path, id: &str, damage: &Damage, commands: Commands) -> bool {
    let number = damage.number;
    let is_due = |every: usize, at: usize| commands == Commands::All || number % every == at;
    let hurt = format!("hurt-{number}");
    let copied = copy_dataset(&dir.join("set"), &dir.join(&hurt));
    fs::write(copied.join(damage.file.file_name().unwrap()), &damage.bytes).unwrap();
    let found = survives(dir, &["dataset", "check", &hurt]).code() != Some(0);
    if is_due(4, 0) {
        let other = format!("other-{number}");
        survives(dir, &["dataset", "list", &hurt]);
        let added = survives(dir, &["dataset", "add", &other, &hurt]);
        assert!(!found || added.code() == Some(3), "{number}: {added}");
        let _ = fs::remove_dir_all(dir.join(&other));
    }
    if is_due(4, 2) {
        let compare = ["gate", "--baseline", &hurt, "--candidate", &hurt, "--fail-if", "launch.total > +5%"];
        let compared = run(dir, &compare);
        assert!(matches!(compared.code(), Some(0..=3)), "{number}: {compared}");
        assert!(!compared.stderr.contains("panicked"), "{number}: {compared}");
    }
    if number % 70 == 3 && has_modules("duckdb") {
        let asked = query_of(dir, &["--csv", &hurt, "slowest-slices"]);
        assert!(matches!(asked.code(), Some(0 | 1)), "{number}: {asked}");
        assert!(!asked.stderr.contains("Traceback"), "{number}: {asked}");
    }
    let removed = survives(dir, &["dataset", "remove", &hurt, id]);
    if removed.code() == Some(1) {
        assert!(removed.stderr.contains("part="), "{number}: {removed}");
        let name = copied.file_name().unwrap().to_str().unwrap();
        run(dir, &["dataset", "remove", &hurt, name]).exited(0);
    }
    fs::remove_dir_all(dir.join(&hurt)).unwrap();
    found
}

#[test]
fn no_damage_to_a_table_makes_a_command_panic_or_wait() {
    // The commands read the whole tables as often as there are damages: most of these are in small ones,
    // which have the same columns, headers and footers, and fewer pages.
    let dir = support::tempdir();
    let part = dataset(dir.path());
    damage_tables(dir.path(), &part, support::rounds(8, 40), Commands::Some);
    let dir = support::tempdir();
    let part = dataset_of(dir.path(), small);
    damage_tables(dir.path(), &part, support::rounds(60, 160), Commands::Some);
}

/// Every table and column, in a tenth of the bytes.
fn small(seed: u64) -> Scenario {
    Scenario { length: 150_000_000, threads: 2, ..Scenario::new(seed, Era::ArtMono) }
}

/// The most memory that a command uses on a damaged dataset, MiB.
const RESIDENT_MIB: i64 = 500;

#[test]
#[ignore = "7,000 damages take ten minutes"]
fn no_damage_of_many_makes_a_command_panic_or_wait() {
    let dir = support::tempdir();
    let part = dataset_of(dir.path(), small);
    damage_tables(dir.path(), &part, 7_000, Commands::All);
    // Of all commands that this test program has run: it is run alone.
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() >> 10;
    println!("at most {peak} MiB");
    assert!(peak < RESIDENT_MIB, "{peak} MiB");
}

fn damage_tables(dir: &Path, part: &Path, count: usize, commands: Commands) {
    let ids = ids(dir);
    let mut files: Vec<PathBuf> = fs::read_dir(part).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let damages = damages(&files, count);
    // The commands mostly wait for the disk: a thread for each quarter.
    let faults: usize = std::thread::scope(|scope| {
        let quarters = damages.chunks(damages.len() / 4);
        let threads: Vec<_> = quarters
            .map(|quarter| {
                let id = &ids[0];
                let is_found = move |damage: &&Damage| is_found(dir, id, damage, commands);
                scope.spawn(move || quarter.iter().filter(is_found).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{faults} of {count} damages are found");
    assert!(faults * 10 > count * 6, "{faults} of {count} damages are found");
}

/// A Perfetto trace whose packets are all in one compressed packet.
fn compressed_packets(packets: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(packets).unwrap();
    let field = |tag: &[u8], body: &[u8]| {
        let mut out = tag.to_vec();
        let mut length = body.len();
        while length > 0x7f {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        [&out[..], body].concat()
    };
    // Trace.packet is field 1, TracePacket.compressed_packets is field 50.
    field(&[0x0a], &field(&[0x92, 0x03], &zlib.finish().unwrap()))
}

#[test]
fn a_file_that_is_read_several_times_spends_its_budget_once() {
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("a.dat"), Scenario::new(3, Era::ArtMono).make().dat).unwrap();
    run_in(dir, &["convert", "a.dat", "-o", "plain.pftrace"]).exited(0);
    let packets = fs::read(dir.join("plain.pftrace")).unwrap();
    fs::write(dir.join("packed.pftrace"), compressed_packets(&packets)).unwrap();
    let limit = (packets.len() + 1000).to_string();
    run_in(dir, &["info", "packed.pftrace", "--max-memory", &limit]).exited(0);
    run_in(dir, &["dataset", "add", "set", "packed.pftrace", "--max-memory", &limit]).exited(0);
    // A file that is too large is no damaged file.
    let limit = (packets.len() / 2).to_string();
    let said =
        run_in(dir, &["dataset", "add", "set2", "packed.pftrace", "--max-memory", &limit]).exited(3).said();
    assert!(said.contains("is too large") && said.contains("--max-memory"), "{said}");
    assert!(!said.contains("is damaged"), "{said}");
}
