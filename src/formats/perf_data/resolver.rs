//! From the addresses of a sample to its stack of functions.
//!
//! The frames of ART's interpreter and of its bridges beside a frame of Java say nothing about the app.
//! They are left out by the rule of simpleperf's reports (`CallChainReportBuilder` in
//! simpleperf/report_utils.cpp): code of `libart.so` on both sides of a Java method is hidden, but for what
//! a bridge to JNI has called.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bytes::Bytes;
use super::features::{FileSymbols, FileType};
use super::records::RawSample;
use crate::formats::samples::{FrameIndex, FrameKind, KERNEL_PATH, SampleModule, SampleTables, readable};

/// Parts of the names of files that simpleperf makes for the symbols of methods that were compiled while they
/// ran: by the app, and by the process that apps are forked from.
const JIT_APP_FILE: &str = "jit_app_cache:";
const JIT_ZYGOTE_FILE: &str = "jit_zygote_cache:";

/// The lowest of the numbers in a call chain that are marks and not addresses (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = -4095i64 as u64;
/// The marks before the frames of the kernel and of its guests.
const KERNEL_MARKS: [u64; 3] = [-32i64 as u64, -128i64 as u64, -2176i64 as u64];
/// The marks before the frames of programs, and of what runs in guests. The second is of Linux 6.19.
const OTHER_MARKS: [u64; 4] = [-512i64 as u64, -640i64 as u64, -2048i64 as u64, -2560i64 as u64];

/// The part of a record's `misc` that says where the processor was, and its values for a kernel.
const CPU_MODE: u16 = 7;
const KERNEL_MODES: [u16; 3] = [1, 3, 4];

/// The role of a frame in ART.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FrameRole {
    /// A method that ART interprets or has compiled while it ran.
    is_java: bool,
    /// Code that was compiled while it ran.
    is_jit: bool,
    /// Code of ART.
    is_art: bool,
    /// A bridge from Java to a function of JNI.
    is_jni_bridge: bool,
}

/// A frame of a stack that is being made.
#[derive(Debug, Clone, Copy)]
struct StackEntry {
    frame: u32,
    role: FrameRole,
    is_hidden: bool,
}

/// Finds the stacks of samples.
#[derive(Debug)]
pub(super) struct Resolver {
    pub spaces: AddressSpaces,
    is_big_endian: bool,
    pub is_simpleperf: bool,
    /// Call chains with a number that is neither an address nor a mark.
    pub corrupt_chains: u64,
    files: Vec<FileSymbols>,
    file_by_path: FxHashMap<String, usize>,
    build_ids: FxHashMap<String, String>,
    modules: FxHashMap<String, u32>,
    /// By module: the index of its file in `files`.
    file_of_module: Vec<Option<usize>>,
    frames: FrameIndex,
    by_address: FxHashMap<(u64, u64, bool), (u32, FrameRole)>,
    /// By number of a chain: its stack, and the version of the process's maps that it holds for.
    stacks: Vec<(u64, u32)>,
    /// The modules of methods in DEX files, by the methods' names.
    java_methods: FxHashMap<Vec<u8>, String>,
    entries: Vec<StackEntry>,
}

impl Resolver {
    pub(super) fn new(
        files: Vec<FileSymbols>,
        build_ids: Vec<(String, String)>,
        is_big_endian: bool,
        is_simpleperf: bool,
    ) -> Resolver {
        let mut resolver = Resolver {
            spaces: AddressSpaces::default(),
            is_big_endian,
            is_simpleperf,
            corrupt_chains: 0,
            files: Vec::new(),
            file_by_path: FxHashMap::default(),
            build_ids: build_ids.into_iter().map(|(path, id)| (kernel_path(&path).to_owned(), id)).collect(),
            modules: FxHashMap::default(),
            file_of_module: Vec::new(),
            frames: FrameIndex::default(),
            by_address: FxHashMap::default(),
            stacks: Vec::new(),
            java_methods: FxHashMap::default(),
            entries: Vec::new(),
        };
        for file in files {
            resolver.add_file(file);
        }
        resolver
    }

    /// Adds the symbols of a file. Symbols that are already known for this path are kept.
    pub(super) fn add_file(&mut self, mut file: FileSymbols) {
        file.sort();
        if file.kind == FileType::Kernel {
            KERNEL_PATH.clone_into(&mut file.path);
        }
        if file.kind == FileType::Dex {
            let names = file.all_names().map(|name| (name.to_vec(), file.path.clone()));
            self.java_methods.extend(names);
        }
        let index = self.files.len();
        self.file_by_path.insert(file.path.clone(), index);
        if let Some(module) = self.modules.get(&file.path) {
            self.file_of_module[*module as usize] = Some(index);
        }
        self.files.push(file);
    }

    /// Learns the build id of the file with a path, of which maps have told.
    pub(super) fn add_build_id(&mut self, path: &str, id: &[u8]) {
        let path = kernel_path(path);
        if !self.build_ids.contains_key(path) {
            self.build_ids.insert(path.to_owned(), data_encoding::HEXLOWER.encode(id));
        }
    }

    /// The index of the file with a path.
    pub(super) fn module(&mut self, tables: &mut SampleTables, path: &str) -> u32 {
        let path = kernel_path(path);
        if let Some(module) = self.modules.get(path) {
            return *module;
        }
        let module = tables.modules.len() as u32;
        let build_id = self.build_ids.get(path).cloned().unwrap_or_default();
        // Only where the recording has the file's symbols does it say how offsets become addresses.
        let has_offsets = path != KERNEL_PATH && !self.file_by_path.contains_key(path);
        tables.modules.push(SampleModule { path: path.to_owned(), build_id, has_offsets });
        self.modules.insert(path.to_owned(), module);
        self.file_of_module.push(self.file_by_path.get(path).copied());
        module
    }

    /// The stack of a sample as far as it is known. `chain` is the number of the sample's chain. In a short
    /// loop over samples the processor looks several up at a time.
    #[inline]
    pub(super) fn known_stack(&mut self, sample: &RawSample<'_>, chain: u32) -> Option<u32> {
        let (version, stack) = *self.stacks.get(chain as usize)?;
        (version == self.spaces.version(sample.pid)).then_some(stack)
    }

    /// The stack of a sample, of which [`Resolver::known_stack`] did not know it.
    pub(super) fn stack(
        &mut self,
        tables: &mut SampleTables,
        misc: u16,
        sample: &RawSample<'_>,
        chain: u32,
    ) -> u32 {
        if let Some(stack) = self.known_stack(sample, chain) {
            return stack;
        }
        let version = self.spaces.version(sample.pid);
        let stack = self.new_stack(tables, misc, sample, version);
        let at = chain as usize;
        if at >= self.stacks.len() {
            // No process has the version 0.
            self.stacks.resize(at + 1, (0, 0));
        }
        self.stacks[at] = (version, stack);
        stack
    }

    #[cold]
    fn new_stack(
        &mut self,
        tables: &mut SampleTables,
        misc: u16,
        sample: &RawSample<'_>,
        version: u64,
    ) -> u32 {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        let mut in_kernel = KERNEL_MODES.contains(&(misc & CPU_MODE));
        let mut is_exact = true;
        let mut chain = Bytes::new(sample.chain, self.is_big_endian);
        let mut addresses: Vec<u64> = std::iter::from_fn(|| chain.u64()).collect();
        let is_corrupt = |address: &u64| {
            *address >= FIRST_MARK && !KERNEL_MARKS.contains(address) && !OTHER_MARKS.contains(address)
        };
        // A program that keeps no frame pointers may lead the kernel anywhere. perf drops such a chain, too.
        if !self.is_simpleperf && addresses.iter().any(is_corrupt) {
            self.corrupt_chains += 1;
            addresses.clear();
        }
        // The kernel gives the sample's own address also as the first of the chain.
        let first = addresses.iter().find(|address| **address < FIRST_MARK);
        if first.is_none_or(|first| *first != sample.ip && sample.ip != 0) {
            entries.push(self.entry(tables, sample.pid, version, sample.ip, sample.ip, in_kernel));
            is_exact = false;
        }
        for address in addresses {
            if address >= FIRST_MARK {
                in_kernel = KERNEL_MARKS.contains(&address);
                is_exact = true;
                continue;
            }
            // A return address may already be in the next function. simpleperf has moved it when recording.
            let looked_up = if is_exact || self.is_simpleperf { address } else { address.saturating_sub(1) };
            entries.push(self.entry(tables, sample.pid, version, address, looked_up, in_kernel));
            is_exact = false;
        }
        if self.is_simpleperf {
            hide_art(&mut entries);
            entries.retain(|entry| !entry.is_hidden);
            hide_entries_into_jit(&mut entries);
        }
        let stack = tables.stacks.of_frames(entries.iter().rev().map(|entry| entry.frame));
        self.entries = entries;
        stack
    }

    /// The frame at an address. `looked_up` is the address whose symbol it has.
    fn entry(
        &mut self,
        tables: &mut SampleTables,
        pid: u32,
        version: u64,
        address: u64,
        looked_up: u64,
        in_kernel: bool,
    ) -> StackEntry {
        let is_shifted = address != looked_up;
        let key = (version, looked_up, in_kernel);
        let (frame, role) = match self.by_address.get(&key) {
            Some(found) if !is_shifted => *found,
            _ => {
                let found = self.frame(tables, pid, address, looked_up, in_kernel);
                if !is_shifted {
                    self.by_address.insert(key, found);
                }
                found
            }
        };
        StackEntry { frame, role, is_hidden: false }
    }

    /// The frame at an address, and what it is to ART.
    fn frame(
        &mut self,
        tables: &mut SampleTables,
        pid: u32,
        address: u64,
        looked_up: u64,
        in_kernel: bool,
    ) -> (u32, FrameRole) {
        let map =
            if in_kernel { self.spaces.find_kernel(looked_up) } else { self.spaces.find(pid, looked_up) };
        let module = match map {
            Some(map) => map.module,
            None => self.module(tables, if in_kernel { KERNEL_PATH } else { "" }),
        };
        let mut place = ResolvedAddress {
            module,
            address,
            symbol: Vec::new(),
            role: FrameRole::default(),
            is_dex: false,
        };
        self.find_symbol(&mut place, map, looked_up, in_kernel);
        if in_kernel && place.symbol.is_empty() {
            let kernel = self.module(tables, KERNEL_PATH);
            if let Some(name) = self.file(kernel).and_then(|file| file.find(looked_up)) {
                place.symbol = name.to_vec();
                place.module = kernel;
            }
        }
        let path = &tables.modules[place.module as usize].path;
        let kind = if in_kernel { FrameKind::Kernel } else { kind_of(path, &place) };
        place.role.is_art =
            !place.role.is_java && (path.ends_with("/libart.so") || path.ends_with("/libartd.so"));
        place.role.is_jni_bridge = !place.role.is_java && place.symbol.ends_with(b"jni_trampoline");
        place.role.is_art |= place.role.is_jni_bridge;
        if place.role.is_jit {
            let owner = self.java_methods.get(&place.symbol).cloned();
            let renamed = match path {
                _ if path.contains(JIT_APP_FILE) => "[JIT app cache]",
                _ if path.contains(JIT_ZYGOTE_FILE) => "[JIT zygote cache]",
                _ => "[JIT cache]",
            };
            place.module = self.module(tables, owner.as_deref().unwrap_or(renamed));
        }
        let symbol = String::from_utf8_lossy(&place.symbol);
        let frame = self.frames.intern(tables, &readable(&symbol), place.module, kind, place.address);
        (frame, place.role)
    }

    fn file(&self, module: u32) -> Option<&FileSymbols> {
        self.file_of_module.get(module as usize).copied().flatten().map(|file| &self.files[file])
    }

    fn find_symbol(&self, place: &mut ResolvedAddress, map: Option<Map>, looked_up: u64, in_kernel: bool) {
        let Some(map) = map else { return };
        let shift = place.address.wrapping_sub(looked_up);
        let file = self.file(map.module);
        let in_file = match file {
            _ if map.is_jit_symbols => looked_up,
            Some(file) => file.address_in_file(looked_up, map.start, map.offset),
            None if in_kernel => looked_up,
            None => looked_up.wrapping_sub(map.start).wrapping_add(map.offset),
        };
        place.address = in_file.wrapping_add(shift);
        if let Some(file) = file {
            place.symbol = file.find(in_file).map_or(Vec::new(), <[u8]>::to_vec);
            place.is_dex = file.kind == FileType::Dex;
            place.role.is_jit = map.is_jit_symbols || is_jit_file(&file.path);
        }
        place.role.is_jit |= map.is_jit_symbols;
        place.role.is_java = place.is_dex || place.role.is_jit;
    }
}

/// The findings about an address.
struct ResolvedAddress {
    module: u32,
    /// The address in the file.
    address: u64,
    /// The symbol's name, mangled; empty where there is none.
    symbol: Vec<u8>,
    role: FrameRole,
    is_dex: bool,
}

/// The kernel's path without the name of the symbol that perf writes behind it.
fn kernel_path(path: &str) -> &str {
    if path.starts_with(KERNEL_PATH) { KERNEL_PATH } else { path }
}

/// Whether simpleperf wrote the symbols of methods compiled while they ran into a file of this name.
fn is_jit_file(path: &str) -> bool {
    path.contains(JIT_APP_FILE)
        || path.contains(JIT_ZYGOTE_FILE)
        || path.rsplit('/').next().is_some_and(|name| name.starts_with("TemporaryFile"))
}

fn kind_of(path: &str, place: &ResolvedAddress) -> FrameKind {
    if place.role.is_java { FrameKind::Java } else { FrameKind::of_code(path, &place.symbol) }
}

/// Hides the code of ART beside frames of Java. `entries` are innermost first.
fn hide_art(entries: &mut [StackEntry]) {
    let mut is_near_java = false;
    let mut bridges = Vec::new();
    for at in 0..entries.len() {
        if entries[at].role.is_java {
            is_near_java = true;
            for before in (0..at).rev() {
                if !entries[before].role.is_art || entries[before].is_hidden {
                    break;
                }
                entries[before].is_hidden = true;
                if entries[before].role.is_jni_bridge {
                    bridges.push(before);
                }
            }
        } else if is_near_java && entries[at].role.is_art {
            entries[at].is_hidden = true;
            if entries[at].role.is_jni_bridge {
                bridges.push(at);
            }
        } else {
            is_near_java = false;
        }
    }
    for bridge in bridges {
        if let Some(called) = bridge.checked_sub(1) {
            entries[called].is_hidden = false;
        }
    }
}

/// ART may enter the compiled form of a method from its interpreted form: that is one call.
fn hide_entries_into_jit(entries: &mut Vec<StackEntry>) {
    let frames: Vec<(u32, bool)> = entries.iter().map(|entry| (entry.frame, entry.role.is_jit)).collect();
    let mut at = 0;
    entries.retain(|_| {
        let is_same = frames[at].1 && frames.get(at + 1).is_some_and(|next| next.0 == frames[at].0);
        at += 1;
        !is_same
    });
}

/// A number of 128 bits for the process and the addresses of a sample. Samples with equal numbers have the
/// same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StackHash(u64, u64);

impl StackHash {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;

    #[inline]
    fn fold(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    }

    /// The number of a sample whose record has this `misc`.
    #[inline]
    pub(super) fn new(misc: u16, sample: &RawSample<'_>) -> StackHash {
        let mode = u64::from(misc & CPU_MODE) | u64::from(sample.pid) << 3;
        let mut hash = StackHash(
            StackHash::fold(mode ^ StackHash::A, sample.ip ^ StackHash::B),
            StackHash::fold(mode.rotate_left(32) ^ StackHash::B, sample.ip ^ StackHash::A),
        );
        let (words, _) = sample.chain.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word);
            hash.0 = StackHash::fold(hash.0 ^ word, StackHash::A);
            hash.1 = StackHash::fold(hash.1.rotate_left(23) ^ word, StackHash::B);
        }
        let len = sample.chain.len() as u64;
        StackHash(StackHash::fold(hash.0 ^ len, StackHash::B), StackHash::fold(hash.1 ^ len, StackHash::A))
    }
}

/// Numbers for the chains of samples. Samples with the same process and the same addresses have one number.
#[derive(Debug, Default)]
pub(super) struct ChainNumbers {
    known: FxHashMap<StackHash, u32>,
}

impl ChainNumbers {
    /// The number of a sample's chain.
    #[inline]
    pub(super) fn of(&mut self, hash: StackHash) -> u32 {
        let next = self.known.len() as u32;
        *self.known.entry(hash).or_insert(next)
    }
}

/// A piece of a file in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    pub start: u64,
    /// The address behind the last byte.
    pub end: u64,
    /// Where the piece begins in the file, bytes.
    pub offset: u64,
    /// Index of the file.
    pub module: u32,
    /// Whether the file has symbols of methods that were compiled while they ran, by addresses in memory.
    pub is_jit_symbols: bool,
}

/// The pieces of one address space by the addresses where they begin. No two overlap.
#[derive(Debug, Clone, Default)]
struct Maps {
    pieces: Rc<BTreeMap<u64, Map>>,
    /// A number that address spaces share only if they have the same pieces. It is 0 until it is first
    /// needed.
    version: u32,
}

impl Maps {
    /// Adds a piece, and returns how many pieces more are in memory.
    fn add(&mut self, map: Map) -> usize {
        let copied = if Rc::strong_count(&self.pieces) > 1 { self.pieces.len() } else { 0 };
        let pieces = Rc::make_mut(&mut self.pieces);
        let before = pieces.len();
        // The new piece replaces all that it covers; the rest of a piece stays.
        if let Some((_, piece)) = pieces.range(..map.start).next_back()
            && piece.end > map.start
        {
            let piece = *piece;
            pieces.insert(piece.start, Map { end: map.start, ..piece });
            if piece.end > map.end {
                insert_rest(pieces, piece, map.end);
            }
        }
        while let Some((start, piece)) = pieces.range(map.start..map.end).next() {
            let start = *start;
            let piece = *piece;
            pieces.remove(&start);
            if piece.end > map.end {
                insert_rest(pieces, piece, map.end);
            }
        }
        pieces.insert(map.start, map);
        self.version = 0;
        (copied + pieces.len()).saturating_sub(if copied > 0 { 0 } else { before })
    }

    fn find(&self, address: u64) -> Option<Map> {
        let (_, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then_some(*piece)
    }
}

/// Keeps the end of a piece whose beginning is hidden.
fn insert_rest(pieces: &mut BTreeMap<u64, Map>, piece: Map, start: u64) {
    let offset = piece.offset.wrapping_add(start - piece.start);
    pieces.insert(start, Map { start, offset, ..piece });
}

/// The most pieces that are kept in memory, of all processes: some 300 MB. A process has at most 65,530
/// pieces where nobody has changed the kernel's limit.
const MAX_PIECES: usize = 4 << 20;

/// The address spaces of all processes, and that of the kernel.
#[derive(Debug, Default)]
pub(super) struct AddressSpaces {
    processes: FxHashMap<u32, Maps>,
    kernel: Maps,
    versions: u32,
    pieces: usize,
    /// How many pieces were left out because there were too many.
    pub left_out: u64,
}

impl AddressSpaces {
    /// A process maps a piece of a file.
    pub(super) fn add(&mut self, pid: u32, map: Map) {
        if self.pieces < MAX_PIECES {
            self.pieces += self.processes.entry(pid).or_default().add(map);
        } else {
            self.left_out += 1;
        }
    }

    /// A piece of the kernel, or one of its modules.
    pub(super) fn add_kernel(&mut self, map: Map) {
        if self.pieces < MAX_PIECES {
            self.pieces += self.kernel.add(map);
        } else {
            self.left_out += 1;
        }
    }

    /// A new process begins with the pieces of its parent.
    pub(super) fn fork(&mut self, pid: u32, parent: u32) {
        if pid != parent
            && let Some(maps) = self.processes.get(&parent).cloned()
        {
            self.processes.insert(pid, maps);
        }
    }

    /// The piece at an address of a process.
    pub(super) fn find(&self, pid: u32, address: u64) -> Option<Map> {
        self.processes.get(&pid)?.find(address)
    }

    /// The piece of the kernel at an address.
    pub(super) fn find_kernel(&self, address: u64) -> Option<Map> {
        self.kernel.find(address)
    }

    /// A number that changes whenever an address of the process, or of the kernel, may mean something else.
    pub(super) fn version(&mut self, pid: u32) -> u64 {
        let versions = &mut self.versions;
        let mut version_of = |maps: &mut Maps| {
            if maps.version == 0 {
                *versions += 1;
                maps.version = *versions;
            }
            u64::from(maps.version)
        };
        let kernel = version_of(&mut self.kernel);
        let process = self.processes.entry(pid).or_default();
        kernel << 32 | version_of(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, end: u64, module: u32) -> Map {
        Map { start, end, offset: 0, module, is_jit_symbols: false }
    }

    #[test]
    fn a_new_piece_hides_what_it_covers_and_no_more() {
        let mut spaces = AddressSpaces::default();
        spaces.add(1, map(100, 200, 0));
        spaces.add(1, map(300, 400, 1));
        spaces.add(1, map(150, 160, 2));
        spaces.add(1, map(190, 310, 3));
        let found =
            |address| spaces.find(1, address).map(|map| (map.module, address - map.start + map.offset));
        assert_eq!(found(99), None);
        assert_eq!(found(149), Some((0, 49)));
        assert_eq!(found(150), Some((2, 0)));
        assert_eq!(found(160), Some((0, 60)));
        assert_eq!(found(189), Some((0, 89)));
        assert_eq!(found(190), Some((3, 0)));
        assert_eq!(found(309), Some((3, 119)));
        assert_eq!(found(310), Some((1, 10)));
        assert_eq!(found(400), None);
    }

    #[test]
    fn a_process_begins_with_its_parents_pieces_and_goes_its_own_way() {
        let mut spaces = AddressSpaces::default();
        spaces.add(1, map(100, 200, 0));
        spaces.fork(2, 1);
        let same = (spaces.version(1), spaces.version(1));
        assert_eq!(same.0, same.1);
        spaces.add(2, map(100, 200, 1));
        assert_eq!(spaces.find(1, 150).map(|map| map.module), Some(0));
        assert_eq!(spaces.find(2, 150).map(|map| map.module), Some(1));
        assert_ne!(spaces.version(1), spaces.version(2));
        spaces.add_kernel(map(1 << 63, u64::MAX, 2));
        assert_ne!(spaces.version(1), same.0);
    }
}
