//! Writes parts of a dataset again: without a trace that is removed, and many small parts as few larger ones;
//! and copies parts, whole as files and by rows.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::dataset_dir::{DatasetDir, ID_DIGITS, LockedDataset, PART, Part, make_parent, part_name};
use super::error::DatasetError;
use super::open_parts::PART_TRACES;
use crate::file_access;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, Rows, TABLES, TableFile, TableId, TableSchema, UNFINISHED_PREFIX};

/// So many small parts of a day are combined. A trace that is added alone is written again at most nine times
/// before its part is full.
const MIN_SMALL_PARTS: usize = 8;

/// A part is small that could hold more traces, and whose files are smaller than this together, bytes.
const SMALL_PART_BYTES: u64 = 16 << 20;

/// A combined part is not made larger than this, bytes.
const MAX_COMBINED_BYTES: u64 = 64 << 20;

/// A trace, a rejected input or a part that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The whole id of the trace or of the rejected input; the name of a part.
    pub name: String,
    /// Sentences about damaged tables of the same part, of which what cannot be read is gone too.
    pub damaged: Vec<String>,
}

/// Removes the trace whose id begins with `id`, or forgets the rejected input whose id does; or removes the
/// part of which `id` is the name (`part=…`), whatever is in it. The part with the trace is written again
/// without it, and takes the older one's place with one exchange of names where the system can do that
/// (Linux): a reader finds either all traces of the part, or all but this one. Elsewhere a reader may find
/// the others twice for a moment.
///
/// # Errors
/// [`DatasetError`]; the dataset is then as it was. Damaged parts are none, unless they may hold the trace.
pub fn remove(dataset: &Path, id: &str, wait: &mut dyn FnMut()) -> Result<Removed, DatasetError> {
    DatasetDir::open(dataset)?;
    let locked = LockedDataset::lock(dataset, wait)?;
    let parts = locked.dir.parts()?;
    if id.starts_with(PART) {
        return remove_named(&parts, id, locked.dir.path());
    }
    let mut found: Vec<(Part, String)> = Vec::new();
    let mut unreadable: Vec<(Part, DatasetError)> = Vec::new();
    for part in parts.clone() {
        match part.all_ids() {
            Ok(ids) => {
                let matching = ids.into_iter().filter(|known| known.starts_with(id));
                found.extend(matching.map(|known| (part.clone(), known)));
            }
            Err(error) => unreadable.push((part, error)),
        }
    }
    let is_id = !id.is_empty() && id.len() <= ID_DIGITS;
    if found.is_empty() && is_id {
        let strays = parts.iter().find_map(|part| Some((part, stray_id(part, id)?)));
        if let Some((part, whole)) = strays {
            return remove_strays(part, whole, locked.dir.path());
        }
    }
    match (&found[..], unreadable.into_iter().next()) {
        ([(part, whole)], _) if is_id => {
            let damaged = rewrite(part, whole, locked.dir.path())?;
            Ok(Removed { name: whole.clone(), damaged })
        }
        ([], Some((part, error))) => Err(DatasetError::UnreadablePart {
            id: id.to_owned(),
            part: part.name().to_string_lossy().into_owned(),
            source: Box::new(error),
        }),
        ([], None) => Err(DatasetError::NoSuchTrace { id: id.to_owned() }),
        _ => Err(DatasetError::SeveralTraces { id: id.to_owned(), count: found.len() }),
    }
}

/// The first id that begins with `id` and that a table of the part has rows of, although its lists of traces
/// and of rejected inputs lack it: a damage that is no fault of the file's form.
fn stray_id(part: &Part, id: &str) -> Option<String> {
    let known = part.all_ids().ok()?;
    let others = TABLES.iter().filter(|table| !matches!(table.id, TableId::Trace | TableId::Rejected));
    // What cannot be read tells of no id.
    let files = others.filter_map(|table| TableFile::open(&part.dir, table).ok());
    for file in files {
        for rows in file.batches().map_while(Result::ok) {
            let ids = (0..rows.len()).filter_map(|row| rows.text(row, 0));
            let mut strays = ids.filter(|found| found.starts_with(id) && !known.iter().any(|k| k == found));
            if let Some(stray) = strays.next() {
                return Some(stray.to_owned());
            }
        }
    }
    None
}

/// Removes the rows of an id that the list of traces lacks. The traces of the list stay, also one whose id is
/// the damaged one.
fn remove_strays(part: &Part, id: String, dataset: &Path) -> Result<Removed, DatasetError> {
    let mut damaged = rewrite_rows(part, &id, dataset)?;
    let table = part.dir.join(TableId::Trace.table().file_name());
    damaged.push(format!("{}: lacks {id}, of which other tables had rows", table.display()));
    Ok(Removed { name: id, damaged })
}

/// Removes the part whose directory has this name.
fn remove_named(parts: &[Part], name: &str, dataset: &Path) -> Result<Removed, DatasetError> {
    let part = parts.iter().find(|part| part.name() == name);
    let part = part.ok_or_else(|| DatasetError::NoSuchTrace { id: name.to_owned() })?;
    remove_part(part, dataset)?;
    Ok(Removed { name: name.to_owned(), damaged: Vec::new() })
}

fn remove_part(part: &Part, dataset: &Path) -> Result<(), DatasetError> {
    let scratch = ScratchDir::take(&part.dir, dataset, UNFINISHED_PREFIX);
    drop(scratch.map_err(DatasetError::io(&part.dir))?);
    // The day's directory goes with its last part; where others are in it, this fails.
    let _ = part.dir.parent().map(std::fs::remove_dir);
    Ok(())
}

/// Writes a part again without the rows of `id`. Returns sentences about damaged tables.
fn rewrite(part: &Part, id: &str, dataset: &Path) -> Result<Vec<String>, DatasetError> {
    if part.all_ids()?.len() == 1 {
        remove_part(part, dataset)?;
        return Ok(Vec::new());
    }
    rewrite_rows(part, id, dataset)
}

fn rewrite_rows(part: &Part, id: &str, dataset: &Path) -> Result<Vec<String>, DatasetError> {
    let mut files = PartFiles::create(dataset).map_err(DatasetError::io(dataset))?;
    let damaged = copy_readable_rows(part, &mut files, |row_id| row_id != id)?;
    files.publish_over(&part.dir).map_err(DatasetError::io(&part.dir))?;
    Ok(damaged)
}

/// A tag that a trace has with another value than the one that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTag {
    /// The trace's id.
    pub id: String,
    /// The tag's key.
    pub key: String,
    /// The value that the trace keeps.
    pub value: String,
}

/// The traces to which tags were added.
#[derive(Debug, Default)]
pub(super) struct TaggedTraces {
    /// How many they are.
    pub traces: usize,
    /// The tags that traces had with other values.
    pub kept: Vec<KeptTag>,
}

/// Adds tags to the traces with these ids. A trace that has a key keeps its value. Each part is written again
/// beside the older one, and takes its place.
///
/// # Errors
/// [`DatasetError`]; a part is then as it was, or has its tags.
pub(super) fn add_tags(
    dataset: &DatasetDir,
    ids: &HashSet<String>,
    tags: &[(String, String)],
) -> Result<TaggedTraces, DatasetError> {
    let mut tagged = TaggedTraces::default();
    if ids.is_empty() || tags.is_empty() {
        return Ok(tagged);
    }
    for part in dataset.parts()? {
        let there: Vec<String> =
            part.ids(TableId::Trace)?.into_iter().filter(|id| ids.contains(id)).collect();
        if there.is_empty() {
            continue;
        }
        let old = TableFile::open(&part.dir, TableId::Tag.table())?.all_rows()?;
        let value_of = |id: &str, key: &str| {
            let is_it = |row: &usize| old.text(*row, 0) == Some(id) && old.text(*row, 1) == Some(key);
            (0..old.len()).find(is_it).and_then(|row| old.text(row, 2))
        };
        let mut new = Rows::new(TableId::Tag.table());
        for id in &there {
            let before = new.len();
            for (key, value) in tags {
                match value_of(id, key) {
                    None => new.push(&[id.as_str().into(), key.as_str().into(), value.as_str().into()]),
                    Some(has) if has != value => {
                        let kept = KeptTag { id: id.clone(), key: key.clone(), value: has.to_owned() };
                        tagged.kept.push(kept);
                    }
                    Some(_) => {}
                }
            }
            tagged.traces += usize::from(new.len() > before);
        }
        if !new.is_empty() {
            let mut files = PartFiles::create(dataset.path()).map_err(DatasetError::io(dataset.path()))?;
            copy_rows(std::slice::from_ref(&part), &mut files, |_| true)?;
            files.add(&new).map_err(DatasetError::io(files.dir()))?;
            files.publish_over(&part.dir).map_err(DatasetError::io(&part.dir))?;
        }
    }
    Ok(tagged)
}

/// A part that may be combined with others.
struct SmallPart {
    part: Part,
    /// The ids of its traces and rejected inputs.
    ids: Vec<String>,
    bytes: u64,
}

/// Combines the small parts of each day that has [`MIN_SMALL_PARTS`] of them, if that leaves half as many.
/// The day's directory is made anew beside the older one, with the large parts as they are, and takes its
/// place with one exchange of names where the system can do that: a reader finds each trace once, in the
/// older parts or in the newer ones.
///
/// # Errors
/// [`DatasetError`]; the day is then as it was.
pub(super) fn compact(dataset: &DatasetDir) -> Result<(), DatasetError> {
    dataset.days()?.iter().try_for_each(|day| compact_day(dataset.path(), day))
}

fn compact_day(dataset: &Path, day: &Path) -> Result<(), DatasetError> {
    let parts = Part::all_of(day)?;
    if parts.len() < MIN_SMALL_PARTS {
        return Ok(());
    }
    let mut small = Vec::new();
    let mut others = Vec::new();
    for part in parts {
        let bytes = part.bytes()?;
        // Only files that are small are opened: a dataset has many large ones.
        let ids = if bytes < SMALL_PART_BYTES { part.all_ids()? } else { Vec::new() };
        if bytes < SMALL_PART_BYTES && ids.len() < PART_TRACES {
            small.push(SmallPart { part, ids, bytes });
        } else {
            others.push(part);
        }
    }
    let before = small.len();
    small.sort_by_key(|part| part.ids.len());
    let mut groups: Vec<Vec<SmallPart>> = Vec::new();
    for part in small {
        match groups.last_mut().filter(|group| fits(group, &part)) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    // Parts that are nearly full would be written again for each trace more.
    if before < MIN_SMALL_PARTS || groups.len() > before / 2 {
        return Ok(());
    }
    let scratch = ScratchDir::create_shared(dataset, UNFINISHED_PREFIX).map_err(DatasetError::io(dataset))?;
    for group in groups {
        if let [alone] = &group[..] {
            others.push(alone.part.clone());
            continue;
        }
        let parts: Vec<Part> = group.iter().map(|small| small.part.clone()).collect();
        let ids = group.into_iter().flat_map(|small| small.ids).collect();
        combine(&parts, ids, scratch.path())?;
    }
    for part in others {
        let name = part.dir.file_name().unwrap_or_default();
        link(&part, &scratch.path().join(name), scratch.path()).map_err(DatasetError::io(&part.dir))?;
    }
    scratch.publish_over(day).map_err(DatasetError::io(day))
}

/// Whether a group of parts and one more become a part of no more than the usual size.
fn fits(group: &[SmallPart], more: &SmallPart) -> bool {
    let ids: usize = group.iter().map(|part| part.ids.len()).sum();
    let bytes: u64 = group.iter().map(|part| part.bytes).sum();
    ids + more.ids.len() <= PART_TRACES && bytes + more.bytes <= MAX_COMBINED_BYTES
}

/// Adds the rows of `parts` to `files`, but for those of the traces and rejected inputs whose id `keep`
/// refuses.
///
/// # Errors
/// [`DatasetError`].
pub(super) fn copy_rows(
    parts: &[Part],
    files: &mut PartFiles,
    keep: impl Fn(&str) -> bool,
) -> Result<(), DatasetError> {
    for table in TABLES {
        for part in parts {
            copy_table(part, table, files, &keep)?;
        }
    }
    Ok(())
}

/// The same for one part, of which damaged tables are copied as far as they can be read. Returns a sentence
/// about each damaged table.
///
/// # Errors
/// [`DatasetError`] where the rows cannot be written.
fn copy_readable_rows(
    part: &Part,
    files: &mut PartFiles,
    keep: impl Fn(&str) -> bool,
) -> Result<Vec<String>, DatasetError> {
    let mut damaged = Vec::new();
    for table in TABLES {
        match copy_table(part, table, files, &keep) {
            Err(DatasetError::Table(error)) => damaged.push(error.to_string()),
            copied => copied?,
        }
    }
    Ok(damaged)
}

fn copy_table(
    part: &Part,
    table: &'static TableSchema,
    files: &mut PartFiles,
    keep: &impl Fn(&str) -> bool,
) -> Result<(), DatasetError> {
    let old = TableFile::open(&part.dir, table)?;
    for rows in old.batches() {
        let mut rows = rows?;
        rows.retain(0, keep);
        files.add(&rows).map_err(DatasetError::io(files.dir()))?;
    }
    Ok(())
}

/// Makes one part of several in the directory `day`. `ids` are those of their traces and rejected inputs.
///
/// # Errors
/// [`DatasetError`].
fn combine(parts: &[Part], ids: Vec<String>, day: &Path) -> Result<(), DatasetError> {
    let mut files = PartFiles::create(day).map_err(DatasetError::io(day))?;
    copy_rows(parts, &mut files, |_| true)?;
    let target = day.join(part_name(ids));
    files.publish(&target).map_err(DatasetError::io(&target))?;
    Ok(())
}

/// Publishes a second copy of a part of the same dataset under the name `target`. Its directory is made in
/// `scratch_parent`, a directory of the same file system.
///
/// # Errors
/// The system's error; nothing is left then.
fn link(part: &Part, target: &Path, scratch_parent: &Path) -> io::Result<()> {
    make_parent(target)?;
    let copy = ScratchDir::create_shared(scratch_parent, UNFINISHED_PREFIX)?;
    for_each_file(part, copy.path(), |from, to| {
        // No file of a part is ever written again, so that two parts may share it.
        if fs::hard_link(from, to).is_err() {
            copy_file(from, to)?;
        }
        Ok(())
    })?;
    copy.publish(target)
}

/// A copy of a part of another dataset in a new directory in `scratch_parent`. It shares no file with the
/// other dataset, which somebody else may write to.
///
/// # Errors
/// The system's error; nothing is left then.
pub(super) fn private_copy(part: &Part, scratch_parent: &Path) -> io::Result<ScratchDir> {
    let copy = ScratchDir::create_shared(scratch_parent, UNFINISHED_PREFIX)?;
    for_each_file(part, copy.path(), copy_file)?;
    Ok(copy)
}

/// Calls `make` with the path of each table's file, and with the path of that in `dir`.
fn for_each_file(
    part: &Part,
    dir: &Path,
    mut make: impl FnMut(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    for table in TABLES {
        let from = part.dir.join(table.file_name());
        let to = dir.join(table.file_name());
        if table.may_be_absent() && !file_access::exists(&from) {
            continue;
        }
        make(&from, &to)?;
    }
    Ok(())
}

/// Copies a regular file. File systems that can share the blocks of two files do so.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = File::options().write(true).create_new(true).open(to)?;
    let from = file_access::open_regular(from)?;
    let bytes = from.metadata()?.len();
    io::copy(&mut from.take(bytes), &mut copy)?;
    copy.sync_all()
}
