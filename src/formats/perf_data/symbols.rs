//! The symbols of one file with code, and the address in the file that an address in memory means.

/// The kind of a file, by simpleperf's numbers (`DsoType`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FileType {
    /// The kernel.
    Kernel,
    /// A module of the kernel.
    KernelModule,
    /// A library or a program.
    #[default]
    Elf,
    /// A file with code of Dalvik, which ART interprets.
    Dex,
    /// A list of symbols, such as perf's `/tmp/perf-PID.map`.
    SymbolMap,
    /// Another file.
    Unknown,
}

impl FileType {
    pub(super) fn of(number: u32) -> FileType {
        match number {
            0 => FileType::Kernel,
            1 => FileType::KernelModule,
            2 => FileType::Elf,
            3 => FileType::Dex,
            4 => FileType::SymbolMap,
            _ => FileType::Unknown,
        }
    }
}

/// A function of a file.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// Length, bytes; 0 for a function that ends where the next one begins.
    len: u64,
    name_at: u32,
    name_len: u32,
}

/// The functions of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSymbols {
    pub path: String,
    pub kind: FileType,
    /// The address of the first code, as the file's segments state it.
    pub min_vaddr: u64,
    /// Where that code lies in the file; of a kernel's module where it lies in its memory.
    pub offset_of_min_vaddr: Option<u64>,
    symbols: Vec<Symbol>,
    /// The names, one behind the other.
    names: Vec<u8>,
    is_sorted: bool,
}

impl FileSymbols {
    /// A file without functions.
    pub(super) fn of(path: String, kind: FileType, min_vaddr: u64) -> FileSymbols {
        FileSymbols { path, kind, min_vaddr, ..FileSymbols::default() }
    }

    /// Adds a function.
    pub(super) fn add(&mut self, address: u64, len: u64, name: &[u8]) {
        let (Ok(name_at), Ok(name_len)) = (u32::try_from(self.names.len()), u32::try_from(name.len())) else {
            return;
        };
        self.names.extend_from_slice(name);
        self.symbols.push(Symbol { address, len, name_at, name_len });
        self.is_sorted = false;
    }

    /// Takes the functions of the kernel from the text of `/proc/kallsyms`.
    pub(super) fn add_kallsyms(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
            let address = words.next().and_then(|word| std::str::from_utf8(word).ok());
            let address = address.and_then(|text| u64::from_str_radix(text, 16).ok());
            if let (Some(address @ 1..), Some(b"t" | b"T" | b"w" | b"W"), Some(name)) =
                (address, words.next(), words.next())
            {
                self.add(address, 0, name);
            }
        }
    }

    /// Whether the file has functions.
    pub(super) fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// The names of all functions.
    pub(super) fn all_names(&self) -> impl Iterator<Item = &[u8]> {
        self.symbols.iter().map(|symbol| self.name(symbol))
    }

    fn name(&self, symbol: &Symbol) -> &[u8] {
        let start = symbol.name_at as usize;
        self.names.get(start..start + symbol.name_len as usize).unwrap_or(&[])
    }

    /// Must be called behind the last [`FileSymbols::add`] and before [`FileSymbols::find`].
    pub(super) fn sort(&mut self) {
        if !std::mem::replace(&mut self.is_sorted, true) {
            self.symbols.sort_by_key(|symbol| symbol.address);
        }
    }

    /// The name of the function at an address of the file.
    pub(super) fn find(&self, address: u64) -> Option<&[u8]> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        let is_inside = symbol.len == 0 || address - symbol.address < symbol.len;
        is_inside.then(|| self.name(symbol))
    }

    /// The address in the file of an address in memory, where the file is mapped at `start` from its byte
    /// `offset` on.
    pub(super) fn address_in_file(&self, address: u64, start: u64, offset: u64) -> u64 {
        let in_map = address.wrapping_sub(start);
        match (self.kind, self.offset_of_min_vaddr) {
            (FileType::Kernel | FileType::SymbolMap, _) => address,
            (FileType::KernelModule, at) => in_map.wrapping_sub(at.unwrap_or(0)).wrapping_add(self.min_vaddr),
            (FileType::Dex, _) => in_map.wrapping_add(offset),
            (_, Some(at)) if at != u64::MAX => {
                in_map.wrapping_add(offset).wrapping_sub(at).wrapping_add(self.min_vaddr)
            }
            // Old files of simpleperf do not state the offset.
            (_, _) if self.has_symbols() => in_map.wrapping_add(self.min_vaddr),
            (_, _) => in_map.wrapping_add(offset),
        }
    }
}
