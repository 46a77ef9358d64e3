//! The parsed arguments of a print format.

use crate::ftrace::{Field, FieldType};

/// An integer with its type in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Num {
    /// The value, sign-extended or zero-extended to 64 bits by its type.
    pub(super) v: i64,
    pub(super) unsigned: bool,
    /// Whether the type has 64 bits instead of 32.
    pub(super) wide: bool,
}

impl Num {
    pub(super) fn new(v: i64, unsigned: bool, wide: bool) -> Num {
        let v = match (wide, unsigned) {
            (true, _) => v,
            (false, true) => i64::from(v as u32),
            (false, false) => i64::from(v as i32),
        };
        Num { v, unsigned, wide }
    }

    pub(super) fn int(v: i64) -> Num {
        Num::new(v, false, false)
    }
}

/// An integer type of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IntType {
    /// Size in bytes: 1, 2, 4 or 8.
    pub(super) bytes: u8,
    pub(super) signed: bool,
}

/// The type that a cast casts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CType {
    Int(IntType),
    /// A pointer to integers; `None` for a pointer of which only the address is used.
    Pointer(Option<IntType>),
    Bool,
    Void,
}

/// A binary operator of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    AndAnd,
    OrOr,
}

/// The names of values or of bits, in the order of the format.
pub(super) type NameTable = Vec<(u64, Vec<u8>)>;

/// An argument, or a part of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Num(Num),
    Text(Vec<u8>),
    /// `REC->field`. For an array this is the array's bytes.
    Field(Field),
    /// `&REC->field`.
    Address(Box<Expr>),
    /// `array[index]` or `*pointer`, where the bytes are in the record.
    Element {
        array: Box<Expr>,
        index: Box<Expr>,
        elem: IntType,
    },
    Not(Box<Expr>),
    Complement(Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `condition ? then : other`, or `condition ?: other`, whose `then` is the condition's value.
    Ternary(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    Cast(CType, Box<Expr>),
    Flags {
        value: Box<Expr>,
        delimiter: Vec<u8>,
        table: NameTable,
    },
    Symbolic {
        value: Box<Expr>,
        table: NameTable,
    },
    Hex {
        buffer: Box<Expr>,
        len: Box<Expr>,
        spaced: bool,
    },
    Array {
        buffer: Box<Expr>,
        count: Box<Expr>,
        size: Box<Expr>,
    },
    Bitmask(Box<Expr>),
    Sockaddr(Box<Expr>),
    /// The length of a dynamic array in bytes.
    Len(Box<Expr>),
    /// `ntohs` and similar functions: reverses the order of this many bytes, either always or only where the
    /// recording machine is little-endian.
    Swap {
        value: Box<Expr>,
        bytes: u8,
        always: bool,
    },
}

impl Expr {
    /// The one integer field on which this expression's text depends. `None` where the text depends on
    /// something else, or where the expression is cheap to print.
    pub(super) fn sole_input(&self) -> Option<&Field> {
        let mut field = None;
        let is_costly = matches!(self, Expr::Flags { .. } | Expr::Symbolic { .. } | Expr::Ternary(..));
        (is_costly && self.depends_only_on(&mut field)).then_some(field).flatten()
    }

    /// Whether the expression depends on nothing but texts, numbers and one integer field. If `field` is set,
    /// it must be that one field. If `field` is not set, the first field of the expression is stored in it.
    fn depends_only_on<'e>(&'e self, field: &mut Option<&'e Field>) -> bool {
        match self {
            Expr::Num(_) | Expr::Text(_) => true,
            Expr::Field(this) => {
                let known = *field.get_or_insert(this);
                known == this && matches!(this.ty, FieldType::Int | FieldType::Uint)
            }
            Expr::Not(inner) | Expr::Complement(inner) | Expr::Negate(inner) | Expr::Cast(_, inner) => {
                inner.depends_only_on(field)
            }
            Expr::Flags { value, .. } | Expr::Symbolic { value, .. } => value.depends_only_on(field),
            Expr::Binary(_, a, b) => a.depends_only_on(field) && b.depends_only_on(field),
            Expr::Ternary(condition, then, other) => {
                let mut parts = [Some(condition), then.as_ref(), Some(other)].into_iter().flatten();
                parts.all(|e| e.depends_only_on(field))
            }
            _ => false,
        }
    }
}

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
