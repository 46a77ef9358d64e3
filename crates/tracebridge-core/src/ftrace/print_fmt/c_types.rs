//! The names of C's types, and of the kernel's own integer types, in casts of print formats.

use super::expr::{CType, IntType};

/// The type that these words name with this many `*` behind them.
pub(super) fn ctype(words: &[&str], pointers: u32, long_size: u8) -> Option<CType> {
    let word = |w: &str| words.contains(&w);
    let int = |bytes, signed| Some(CType::Int(IntType { bytes, signed }));
    let base = if word("struct") || word("union") {
        Some(CType::Void)
    } else if word("enum") {
        int(4, false)
    } else if word("char") {
        int(1, !word("unsigned"))
    } else if word("short") {
        int(2, !word("unsigned"))
    } else if word("long") {
        let double = words.iter().filter(|w| **w == "long").count() > 1;
        int(if double { 8 } else { long_size }, !word("unsigned"))
    } else if word("int") || word("unsigned") || word("signed") {
        int(4, !word("unsigned"))
    } else if word("bool") || word("_Bool") {
        Some(CType::Bool)
    } else if word("void") {
        Some(CType::Void)
    } else {
        let last = words.iter().rev().find(|w| !matches!(**w, "const" | "volatile" | "__force"))?;
        named_type(last.trim_start_matches("__"), long_size).or_else(|| {
            // The type is a driver's own. Behind a pointer only the address is used.
            (pointers > 0).then_some(CType::Void)
        })
    }?;
    Some(match (base, pointers) {
        (base, 0) => base,
        (CType::Int(elem), 1) => CType::Pointer(Some(elem)),
        _ => CType::Pointer(None),
    })
}

fn named_type(name: &str, long_size: u8) -> Option<CType> {
    let (bytes, signed) = match name {
        "u8" | "uint8_t" => (1, false),
        "s8" | "int8_t" => (1, true),
        "u16" | "le16" | "be16" | "uint16_t" | "umode_t" | "ushort" | "sum16" => (2, false),
        "s16" | "int16_t" => (2, true),
        "u32" | "le32" | "be32" | "uint32_t" | "dev_t" | "gfp_t" | "uid_t" | "gid_t" | "uint" | "fmode_t"
        | "slab_flags_t" | "blk_opf_t" | "wsum" | "vm_fault_t" => (4, false),
        "s32" | "int32_t" | "pid_t" | "clockid_t" => (4, true),
        "u64" | "le64" | "be64" | "uint64_t" | "sector_t" | "blkcnt_t" | "phys_addr_t" | "dma_addr_t"
        | "resource_size_t" | "xfs_ino_t" | "xfs_daddr_t" => (8, false),
        "s64" | "int64_t" | "loff_t" | "time64_t" | "ktime_t" | "xfs_off_t" => (8, true),
        "size_t" | "uintptr_t" | "ulong" | "ino_t" | "pgoff_t" | "kernel_ulong_t" => (long_size, false),
        "ssize_t" | "off_t" | "ptrdiff_t" | "time_t" | "kernel_long_t" => (long_size, true),
        _ => return None,
    };
    Some(CType::Int(IntType { bytes, signed }))
}
