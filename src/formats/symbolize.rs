//! Gives functions without a symbol the names that files with symbols have for them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::samples::{FrameIndex, NO_STACK, SampleTables, StackTable, readable};
use super::symbols::{FunctionNames, SymbolAddress, SymbolDirectory, SymbolMatch};

/// The most names of files in a note.
const MAX_LISTED_FILES: usize = 5;

/// The stacks after their functions got names.
#[derive(Debug, Default)]
pub(crate) struct SymbolizedStacks {
    /// By the number of a stack before: its number now.
    stacks: Vec<u32>,
    /// Notes for people about files whose symbols were found by their name alone, or not at all.
    pub(crate) notes: Vec<String>,
}

impl SymbolizedStacks {
    /// The number that a stack has now.
    pub(crate) fn stack(&self, before: u32) -> u32 {
        self.stacks.get(before as usize).copied().unwrap_or(NO_STACK)
    }
}

/// A frame where it is asked for: its index, and whether it has called another one. Its address is then the
/// one behind the call, which may be another function's.
type FramePlace = (u32, bool);

/// Names the functions without a symbol, and adds those that were inlined into them. Stacks get other
/// numbers.
pub(crate) fn symbolize(tables: &mut SampleTables, symbols: &SymbolDirectory) -> SymbolizedStacks {
    let mut has_called = vec![false; tables.stacks.nodes().len()];
    for node in tables.stacks.nodes().iter().filter(|node| node.parent != NO_STACK) {
        has_called[node.parent as usize] = true;
    }
    let mut asked: BTreeMap<u32, Vec<FramePlace>> = BTreeMap::new();
    for (node, has_called) in tables.stacks.nodes().iter().zip(&has_called) {
        let frame = &tables.frames[node.frame as usize];
        if !frame.has_symbol {
            asked.entry(frame.module).or_default().push((node.frame, *has_called));
        }
    }
    let mut found: FxHashMap<FramePlace, FunctionNames> = FxHashMap::default();
    let mut faults = SymbolFaults::default();
    for (module, mut places) in asked {
        places.sort_unstable();
        places.dedup();
        let of_module = &tables.modules[module as usize];
        let name = of_module.file_name();
        let files = match symbols.find(&of_module.path, &of_module.build_id) {
            SymbolMatch::BuildId(files) => files,
            SymbolMatch::NameAlone(files) => {
                faults.by_name.push(name.to_owned());
                files
            }
            SymbolMatch::OtherBuildId => {
                faults.other.push(name.to_owned());
                continue;
            }
            SymbolMatch::Missing => continue,
        };
        let address = |(frame, has_called): &FramePlace| SymbolAddress {
            address: tables.frames[*frame as usize].address.saturating_sub(u64::from(*has_called)),
            is_offset: of_module.has_offsets,
        };
        let addresses: Vec<SymbolAddress> = places.iter().map(address).collect();
        let names = symbols.names(&files, &addresses);
        faults
            .unread
            .extend(names.fault.map(|fault| format!("the file with the symbols of {name}: {fault}")));
        found.extend(places.into_iter().zip(names.names).filter_map(|(place, names)| Some((place, names?))));
    }
    let stacks = renumbered(tables, &has_called, &found);
    SymbolizedStacks { stacks, notes: faults.notes() }
}

/// Files of the recording whose symbols are in doubt.
#[derive(Default)]
struct SymbolFaults {
    by_name: Vec<String>,
    other: Vec<String>,
    /// Sentences about symbols that are not read.
    unread: Vec<String>,
}

impl SymbolFaults {
    fn notes(self) -> Vec<String> {
        let mut notes = self.unread;
        for (mut names, what) in [
            (
                self.by_name,
                "have no build id in the recording: their symbols are those of files of the same name",
            ),
            (
                self.other,
                "have another build id in the recording than the files of their names: these are not used",
            ),
        ] {
            names.sort();
            names.dedup();
            if !names.is_empty() {
                let count = names.len();
                let more = if count > MAX_LISTED_FILES { ", …" } else { "" };
                names.truncate(MAX_LISTED_FILES);
                notes.push(format!("{count} files ({}{more}) {what}", names.join(", ")));
            }
        }
        notes
    }
}

/// Makes the stacks anew, with the frames that were found. Returns the new number of each stack.
fn renumbered(
    tables: &mut SampleTables,
    has_called: &[bool],
    found: &FxHashMap<FramePlace, FunctionNames>,
) -> Vec<u32> {
    let mut index = FrameIndex::of_tables(tables);
    let mut known: FxHashMap<FramePlace, Vec<u32>> = FxHashMap::default();
    let before = std::mem::take(&mut tables.stacks);
    let mut stacks = StackTable::default();
    let mut numbers = Vec::with_capacity(before.nodes().len());
    for (node, has_called) in before.nodes().iter().zip(has_called) {
        let parent = numbers.get(node.parent as usize).copied().unwrap_or(NO_STACK);
        let place = (node.frame, *has_called);
        let stack = match found.get(&place) {
            None => stacks.child(parent, node.frame),
            Some(names) => {
                let frames = known.entry(place).or_insert_with(|| {
                    let frame = tables.frames[node.frame as usize].clone();
                    let mut named = |name: &String| {
                        index.intern(tables, &readable(name), frame.module, frame.kind, frame.address)
                    };
                    names.iter().map(&mut named).collect()
                });
                frames.iter().fold(parent, |parent, frame| stacks.child(parent, *frame))
            }
        };
        numbers.push(stack);
    }
    tables.stacks = stacks;
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::samples::{FrameKind, SampleModule};
    use crate::formats::unpack_budget::UnpackLimit;

    #[test]
    fn functions_get_names_and_inlined_ones_are_added() {
        let dir = tempfile::tempdir().unwrap();
        let text = "MODULE Linux arm64 0 x\nINFO CODE_ID ABCD\nINLINE_ORIGIN 0 inlined\nFUNC 100 10 0 caller\n\
            FUNC 110 10 0 next\nFUNC 200 10 0 _Z4leafv\nINLINE 0 1 1 0 204 4\n";
        std::fs::write(dir.path().join("x.sym"), text).unwrap();
        let symbols = SymbolDirectory::open(&[dir.path().to_owned()], &UnpackLimit::default()).unwrap();
        let mut tables = SampleTables::default();
        for (path, build_id) in [("/lib/libx.so", "abcd"), ("/lib/x", "ffff")] {
            let module =
                SampleModule { path: path.into(), build_id: build_id.into(), ..SampleModule::default() };
            tables.modules.push(module);
        }
        let mut index = FrameIndex::default();
        let mut frame = |symbol: &str, module, address| {
            index.intern(&mut tables, symbol, module, FrameKind::Native, address)
        };
        // The call is the last instruction of `caller`.
        let frames = [frame("main", 0, 1), frame("", 0, 0x110), frame("", 0, 0x205), frame("", 1, 0x100)];
        let whole = tables.stacks.of_frames(frames);
        let again = tables.stacks.of_frames([frames[0], frames[1]]);
        let result = symbolize(&mut tables, &symbols);
        let names = |stack: u32| {
            let frames = tables.stacks.frames(result.stack(stack));
            frames.map(|frame| tables.frames[frame as usize].name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(whole), ["x+0x100", "inlined", "leaf()", "caller", "main"]);
        assert_eq!(names(again), ["caller", "main"]);
        assert_eq!(result.stack(NO_STACK), NO_STACK);
        assert_eq!(result.notes.len(), 1, "{:?}", result.notes);
        assert!(result.notes[0].starts_with("1 files (x) have another build id"));
    }

    #[test]
    fn the_leaf_has_its_inlined_functions() {
        let dir = tempfile::tempdir().unwrap();
        let text = "MODULE Linux arm64 0 libx.so\nINLINE_ORIGIN 0 inlined\nFUNC 200 10 0 leaf\nINLINE 0 1 1 0 204 4\n";
        std::fs::write(dir.path().join("x.sym"), text).unwrap();
        let symbols = SymbolDirectory::open(&[dir.path().to_owned()], &UnpackLimit::default()).unwrap();
        let mut tables = SampleTables::default();
        tables.modules.push(SampleModule { path: "/lib/libx.so".into(), ..SampleModule::default() });
        let frame = FrameIndex::default().intern(&mut tables, "", 0, FrameKind::Native, 0x205);
        let stack = tables.stacks.of_frames([frame]);
        let result = symbolize(&mut tables, &symbols);
        let frames = tables.stacks.frames(result.stack(stack));
        let names: Vec<&str> = frames.map(|frame| tables.frames[frame as usize].name.as_str()).collect();
        assert_eq!(names, ["inlined", "leaf"]);
        assert!(result.notes[0].contains("same name"), "{:?}", result.notes);
    }
}
