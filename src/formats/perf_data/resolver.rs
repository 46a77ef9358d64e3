//! From the addresses of a sample to its stack of functions.
//!
//! The frames of ART's interpreter and of its bridges beside a frame of Java say nothing about the app.
//! They are left out by the rule of simpleperf's reports (`CallChainReportBuilder` in
//! simpleperf/report_utils.cpp): code of `libart.so` on both sides of a Java method is hidden, but for what
//! a bridge to JNI has called.

use rustc_hash::FxHashMap;

use super::address_space::{AddressSpaces, Map};
use super::bytes::Bytes;
use super::layout::RawSample;
use super::symbols::{FileSymbols, FileType};
use crate::formats::samples::{FrameIndex, FrameKind, SampleModule, SampleTables, readable};

/// The path of the kernel itself.
pub(super) const KERNEL_PATH: &str = "[kernel.kallsyms]";
/// Parts of the names of files that simpleperf makes for the symbols of methods that were compiled while they
/// ran: by the app, and by the process that apps are forked from.
const JIT_APP_FILE: &str = "jit_app_cache:";
const JIT_ZYGOTE_FILE: &str = "jit_zygote_cache:";

/// The lowest of the numbers in a call chain that are marks and not addresses (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = -4095i64 as u64;
/// The marks before the frames of the kernel and of its guests.
const KERNEL_MARKS: [u64; 3] = [-32i64 as u64, -128i64 as u64, -2176i64 as u64];

/// The part of a record's `misc` that says where the processor was, and its values for a kernel.
const CPU_MODE: u16 = 7;
const KERNEL_MODES: [u16; 3] = [1, 3, 4];

/// What a frame is to ART.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Role {
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
struct Entry {
    frame: u32,
    role: Role,
    is_hidden: bool,
}

/// Finds the stacks of samples.
#[derive(Debug)]
pub(super) struct Resolver {
    pub spaces: AddressSpaces,
    is_big_endian: bool,
    is_simpleperf: bool,
    files: Vec<FileSymbols>,
    file_by_path: FxHashMap<String, usize>,
    build_ids: FxHashMap<String, String>,
    modules: FxHashMap<String, u32>,
    /// By module: the index of its file in `files`.
    file_of_module: Vec<Option<usize>>,
    frames: FrameIndex,
    by_address: FxHashMap<(u64, u64, bool), (u32, Role)>,
    stacks: FxHashMap<(u64, u64), u32>,
    /// The modules of methods in DEX files, by the methods' names.
    java_methods: FxHashMap<Vec<u8>, String>,
    entries: Vec<Entry>,
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
            files: Vec::new(),
            file_by_path: FxHashMap::default(),
            build_ids: build_ids.into_iter().map(|(path, id)| (kernel_path(&path).to_owned(), id)).collect(),
            modules: FxHashMap::default(),
            file_of_module: Vec::new(),
            frames: FrameIndex::default(),
            by_address: FxHashMap::default(),
            stacks: FxHashMap::default(),
            java_methods: FxHashMap::default(),
            entries: Vec::new(),
        };
        for file in files {
            resolver.add_file(file);
        }
        resolver
    }

    /// Adds the symbols of a file. Those that a file of this path has already stay.
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

    /// The index of the file with a path.
    pub(super) fn module(&mut self, tables: &mut SampleTables, path: &str) -> u32 {
        let path = kernel_path(path);
        if let Some(module) = self.modules.get(path) {
            return *module;
        }
        let module = tables.modules.len() as u32;
        let build_id = self.build_ids.get(path).cloned().unwrap_or_default();
        tables.modules.push(SampleModule { path: path.to_owned(), build_id });
        self.modules.insert(path.to_owned(), module);
        self.file_of_module.push(self.file_by_path.get(path).copied());
        module
    }

    /// The stack of a sample.
    #[inline]
    pub(super) fn stack(&mut self, tables: &mut SampleTables, misc: u16, sample: &RawSample<'_>) -> u32 {
        let version = self.spaces.version(sample.pid);
        let key = key_of(version, misc & CPU_MODE, sample.ip, sample.chain);
        match self.stacks.get(&key) {
            Some(stack) => *stack,
            None => self.new_stack(tables, misc, sample, version, key),
        }
    }

    #[cold]
    fn new_stack(
        &mut self,
        tables: &mut SampleTables,
        misc: u16,
        sample: &RawSample<'_>,
        version: u64,
        key: (u64, u64),
    ) -> u32 {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        let mut in_kernel = KERNEL_MODES.contains(&(misc & CPU_MODE));
        let mut is_exact = true;
        let mut chain = Bytes::new(sample.chain, self.is_big_endian);
        let addresses: Vec<u64> = std::iter::from_fn(|| chain.u64()).collect();
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
        self.stacks.insert(key, stack);
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
    ) -> Entry {
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
        Entry { frame, role, is_hidden: false }
    }

    /// The frame at an address, and what it is to ART.
    fn frame(
        &mut self,
        tables: &mut SampleTables,
        pid: u32,
        address: u64,
        looked_up: u64,
        in_kernel: bool,
    ) -> (u32, Role) {
        let map =
            if in_kernel { self.spaces.find_kernel(looked_up) } else { self.spaces.find(pid, looked_up) };
        let module = match map {
            Some(map) => map.module,
            None => self.module(tables, if in_kernel { KERNEL_PATH } else { "" }),
        };
        let mut place = Place { module, address, symbol: Vec::new(), role: Role::default(), is_dex: false };
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

    fn find_symbol(&self, place: &mut Place, map: Option<Map>, looked_up: u64, in_kernel: bool) {
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

/// What is known of an address.
struct Place {
    module: u32,
    /// The address in the file.
    address: u64,
    /// The symbol's name, mangled; empty where there is none.
    symbol: Vec<u8>,
    role: Role,
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

fn kind_of(path: &str, place: &Place) -> FrameKind {
    const COMPILED: [&str; 4] = [".oat", ".odex", ".dex", ".vdex"];
    let is_method = |name: &[u8]| name.contains(&b'.') && !name.contains(&b'(') && !name.starts_with(b"_Z");
    match place.role.is_java || COMPILED.iter().any(|end| path.ends_with(end)) && is_method(&place.symbol) {
        true => FrameKind::Java,
        false => FrameKind::Native,
    }
}

/// Hides the code of ART beside frames of Java. `entries` are innermost first.
fn hide_art(entries: &mut [Entry]) {
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
fn hide_entries_into_jit(entries: &mut Vec<Entry>) {
    let frames: Vec<(u32, bool)> = entries.iter().map(|entry| (entry.frame, entry.role.is_jit)).collect();
    let mut at = 0;
    entries.retain(|_| {
        let is_same = frames[at].1 && frames.get(at + 1).is_some_and(|next| next.0 == frames[at].0);
        at += 1;
        !is_same
    });
}

/// What makes the stacks of two samples the same, as a number of 128 bits.
#[inline]
fn key_of(version: u64, mode: u16, ip: u64, chain: &[u8]) -> (u64, u64) {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut key = (fold(version ^ A, ip ^ B), fold(version.rotate_left(32) ^ B, ip ^ u64::from(mode) ^ A));
    let (words, _) = chain.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        key.0 = fold(key.0 ^ word, A);
        key.1 = fold(key.1.rotate_left(23) ^ word, B);
    }
    let len = chain.len() as u64;
    (fold(key.0 ^ len, B), fold(key.1 ^ len, A))
}
