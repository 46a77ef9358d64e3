//! The callstacks that packet sequences intern: from the ids of a `Callstack` to a stack of functions.
//!
//! A sequence interns texts, mappings, frames and callstacks until it clears its state
//! (protos/perfetto/trace/profiling/profile_common.proto). What `traceconv symbolize` found out about
//! addresses stands in packets of its own, which may come last (`ModuleSymbols`). A stack sample may have its
//! functions in itself (`InlineCallstack`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::deobfuscation::PackageMappings;
use super::fields::{
    address_symbols, callstack, frame, frame_kind, inline_callstack, inline_callstack_frame, interned_data,
    interned_string, line, mapping, module_symbols,
};
use super::track_clocks::number;
use super::wire::read::{WireValue, append_numbers, fields, last_value};
use crate::formats::samples::{
    FrameIndex, FrameKind, KERNEL_PATH, NO_STACK, SampleModule, SampleTables, readable,
};

/// The path of the kernel's mapping in Perfetto's traces.
const KERNEL_MAPPING: &str = "/kernel";
/// The length of a build id from which it may be written in hexadecimal digits.
const MIN_HEX_BUILD_ID: usize = 32;

/// The interned data of a packet sequence, by id.
#[derive(Default)]
pub(super) struct InternedCallstacks<'a> {
    functions: HashMap<u64, &'a [u8]>,
    build_ids: HashMap<u64, &'a [u8]>,
    paths: HashMap<u64, &'a [u8]>,
    mappings: HashMap<u64, &'a [u8]>,
    frames: HashMap<u64, &'a [u8]>,
    callstacks: HashMap<u64, &'a [u8]>,
    /// The modules of mappings, the frames and the stacks that were asked for.
    modules: HashMap<u64, u32>,
    known_frames: HashMap<u64, Vec<u32>>,
    stacks: HashMap<u64, u32>,
}

impl<'a> InternedCallstacks<'a> {
    /// Reads an `InternedData`.
    pub(super) fn learn(&mut self, interned: &'a [u8]) {
        for (field, value) in fields(interned) {
            let message = value.bytes();
            let table = match field {
                interned_data::FUNCTION_NAMES => &mut self.functions,
                interned_data::BUILD_IDS => &mut self.build_ids,
                interned_data::MAPPING_PATHS => &mut self.paths,
                interned_data::MAPPINGS => &mut self.mappings,
                interned_data::FRAMES => &mut self.frames,
                interned_data::CALLSTACKS => &mut self.callstacks,
                _ => continue,
            };
            // All six messages have their id in the field 1, and the texts their text in the field 2.
            let id = number(message, interned_string::IID).unwrap_or(0);
            let is_text = matches!(
                field,
                interned_data::FUNCTION_NAMES | interned_data::BUILD_IDS | interned_data::MAPPING_PATHS
            );
            let content = if is_text {
                last_value(message, interned_string::STR).map_or(&[][..], WireValue::bytes)
            } else {
                message
            };
            table.insert(id, content);
            match field {
                interned_data::MAPPINGS => _ = self.modules.remove(&id),
                interned_data::FRAMES => _ = self.known_frames.remove(&id),
                interned_data::CALLSTACKS => _ = self.stacks.remove(&id),
                _ => {}
            }
        }
    }
}

/// Finds the stacks of callstacks, for all sequences of a trace.
#[derive(Default)]
pub(super) struct CallstackResolver<'a> {
    symbols: AddressTable<'a>,
    mappings: PackageMappings<'a>,
    frames: FrameIndex,
    modules: HashMap<SampleModule, u32>,
    /// Callstacks, frames and mappings that are named by an id that the sequence has not interned.
    pub(super) missing: u64,
}

impl<'a> CallstackResolver<'a> {
    /// A resolver that names addresses as these messages `ModuleSymbols` do, and restores the names of
    /// methods by `mappings`.
    pub(super) fn new(module_symbols: &[&'a [u8]], mappings: PackageMappings<'a>) -> CallstackResolver<'a> {
        let mut resolver = CallstackResolver { mappings, ..CallstackResolver::default() };
        module_symbols.iter().for_each(|message| resolver.symbols.learn(message));
        resolver
    }

    /// The stack of a callstack of the sequence.
    pub(super) fn stack(
        &mut self,
        tables: &mut SampleTables,
        interned: &mut InternedCallstacks<'a>,
        iid: u64,
    ) -> u32 {
        if let Some(stack) = interned.stacks.get(&iid) {
            return *stack;
        }
        let Some(message) = interned.callstacks.get(&iid).copied() else {
            self.missing += 1;
            return NO_STACK;
        };
        let mut ids = Vec::new();
        for (_, value) in fields(message).filter(|(n, _)| *n == callstack::FRAME_IDS) {
            append_numbers(&mut ids, value);
        }
        let mut stack = NO_STACK;
        for id in ids {
            if !interned.known_frames.contains_key(&id) {
                let frames = self.frames(tables, interned, id);
                interned.known_frames.insert(id, frames);
            }
            let frames = interned.known_frames.get(&id).map_or(&[][..], Vec::as_slice);
            stack = frames.iter().fold(stack, |parent, frame| tables.stacks.child(parent, *frame));
        }
        interned.stacks.insert(iid, stack);
        stack
    }

    /// The stack of an `InlineCallstack`, whose frames come outermost first.
    pub(super) fn inline_stack(&mut self, tables: &mut SampleTables, message: &[u8]) -> u32 {
        let module = self.module_index(tables, SampleModule::default());
        let mut stack = NO_STACK;
        for (_, frame) in fields(message).filter(|(n, _)| *n == inline_callstack::FRAMES) {
            let name = last_value(frame.bytes(), inline_callstack_frame::FUNCTION_NAME);
            let name = String::from_utf8_lossy(name.map_or(&[][..], WireValue::bytes));
            let name = self.mappings.real_name("", &name).map_or(name, Cow::Owned);
            let frame = self.frames.intern(tables, &readable(&name), module, FrameKind::Native, 0);
            stack = tables.stacks.child(stack, frame);
        }
        stack
    }

    /// The functions of an interned frame, the outermost first: one, or those that were inlined there.
    fn frames(
        &mut self,
        tables: &mut SampleTables,
        interned: &mut InternedCallstacks<'a>,
        id: u64,
    ) -> Vec<u32> {
        let Some(message) = interned.frames.get(&id).copied() else {
            self.missing += 1;
            return Vec::new();
        };
        let module = self.module(tables, interned, number(message, frame::MAPPING_ID).unwrap_or(0));
        let address = number(message, frame::REL_PC).unwrap_or(0);
        let stated = number(message, frame::FUNCTION_NAME_ID).and_then(|id| interned.functions.get(&id));
        let stated = stated.copied().unwrap_or(b"");
        let SampleModule { path, build_id, .. } = &tables.modules[module as usize];
        let kind = match number(message, frame::KIND) {
            Some(frame_kind::KERNEL) => FrameKind::Kernel,
            Some(frame_kind::INTERPRETED | frame_kind::JIT) => FrameKind::Java,
            _ => FrameKind::of_code(path, stated),
        };
        let found = if stated.is_empty() { self.symbols.find(path, build_id, address) } else { None };
        let names: &[&[u8]] = found.unwrap_or(std::slice::from_ref(&stated));
        let mut out = Vec::new();
        for name in names {
            let name = String::from_utf8_lossy(name);
            let path = &tables.modules[module as usize].path;
            let real = (kind == FrameKind::Java).then(|| self.mappings.real_name(path, &name)).flatten();
            let name = real.map_or(name, Cow::Owned);
            out.push(self.frames.intern(tables, &readable(&name), module, kind, address));
        }
        out
    }

    fn module(&mut self, tables: &mut SampleTables, interned: &mut InternedCallstacks<'a>, id: u64) -> u32 {
        if let Some(module) = interned.modules.get(&id) {
            return *module;
        }
        let message = interned.mappings.get(&id).copied();
        self.missing += u64::from(message.is_none() && id != 0);
        let module = message.map_or_else(SampleModule::default, |message| {
            let mut parts = Vec::new();
            for (_, value) in fields(message).filter(|(n, _)| *n == mapping::PATH_STRING_IDS) {
                append_numbers(&mut parts, value);
            }
            let parts = parts.iter().filter_map(|id| interned.paths.get(id)).copied();
            let build_id = number(message, mapping::BUILD_ID).and_then(|id| interned.build_ids.get(&id));
            SampleModule {
                path: path_of(parts),
                build_id: hex_build_id(build_id.copied().unwrap_or(b"")),
                has_offsets: false,
            }
        });
        let index = self.module_index(tables, module);
        interned.modules.insert(id, index);
        index
    }

    fn module_index(&mut self, tables: &mut SampleTables, module: SampleModule) -> u32 {
        *self.modules.entry(module).or_insert_with_key(|module| {
            tables.modules.push(module.clone());
            tables.modules.len() as u32 - 1
        })
    }
}

/// The path of a mapping from its parts. Names in brackets are no paths.
fn path_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut path = String::new();
    for part in parts {
        if !path.is_empty() || !part.starts_with(b"[") && !part.starts_with(b"/") {
            path.push('/');
        }
        path += &String::from_utf8_lossy(part);
    }
    if path == KERNEL_MAPPING { KERNEL_PATH.to_owned() } else { path }
}

/// A build id in hexadecimal digits. Some writers intern it so, others as its bytes.
fn hex_build_id(bytes: &[u8]) -> String {
    if bytes.len() >= MIN_HEX_BUILD_ID && bytes.iter().all(u8::is_ascii_hexdigit) {
        return String::from_utf8_lossy(bytes).to_ascii_lowercase();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// By address: the functions, the outermost first.
type FunctionsByAddress<'a> = HashMap<u64, Vec<&'a [u8]>>;

/// The names of addresses that `ModuleSymbols` messages state.
#[derive(Default)]
struct AddressTable<'a> {
    /// By path and build id.
    modules: HashMap<(String, String), FunctionsByAddress<'a>>,
}

impl<'a> AddressTable<'a> {
    fn learn(&mut self, message: &'a [u8]) {
        let bytes = |field| last_value(message, field).map_or(&[][..], WireValue::bytes);
        let path = String::from_utf8_lossy(bytes(module_symbols::PATH)).into_owned();
        let build_id = hex_build_id(bytes(module_symbols::BUILD_ID));
        let addresses = self.modules.entry((path, build_id)).or_default();
        for (_, symbols) in fields(message).filter(|(n, _)| *n == module_symbols::ADDRESS_SYMBOLS) {
            let symbols = symbols.bytes();
            let lines = fields(symbols).filter(|(n, _)| *n == address_symbols::LINES);
            let name = |line: WireValue<'a>| last_value(line.bytes(), line::FUNCTION_NAME);
            let mut names: Vec<&[u8]> = lines
                .filter_map(|(_, line)| Some(name(line)?.bytes()))
                .filter(|name| !name.is_empty())
                .collect();
            // The message has the innermost function first.
            names.reverse();
            if !names.is_empty() {
                addresses.insert(number(symbols, address_symbols::ADDRESS).unwrap_or(0), names);
            }
        }
    }

    fn find<'s>(&'s self, path: &str, build_id: &str, address: u64) -> Option<&'s [&'a [u8]]> {
        if self.modules.is_empty() {
            return None;
        }
        let key = (path.to_owned(), build_id.to_owned());
        self.modules.get(&key)?.get(&address).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mappings_are_those_of_files_and_names_in_brackets() {
        let path = |parts: &[&str]| path_of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(path(&["system", "lib64", "libc.so"]), "/system/lib64/libc.so");
        assert_eq!(path(&["/opt/chrome"]), "/opt/chrome", "Chrome writes one part");
        assert_eq!(path(&["[vdso]"]), "[vdso]");
        assert_eq!(path(&["kernel"]), KERNEL_PATH);
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn a_build_id_is_bytes_or_digits() {
        assert_eq!(hex_build_id(b"\x5d\xb8"), "5db8");
        assert_eq!(hex_build_id(&[b'A'; 32]), "a".repeat(32));
        assert_eq!(hex_build_id(&[b'A'; 16]), "41".repeat(16), "too short for digits");
    }
}
