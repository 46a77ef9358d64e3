//! What an argument of a print format is, after parsing.

use crate::ftrace::{Field, FieldType};

/// An integer with C's type of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Num {
    /// The value, extended to 64 bits as its type says.
    pub(super) v: i64,
    pub(super) unsigned: bool,
    /// 64 bits rather than 32.
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
    /// 1, 2, 4 or 8.
    pub(super) bytes: u8,
    pub(super) signed: bool,
}

/// What a cast casts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CType {
    Int(IntType),
    /// A pointer to integers; or to something unknown, of which only the address is used.
    Pointer(Option<IntType>),
    /// `bool`.
    Bool,
    Void,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
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

/// Names of values, in the order of the format.
pub(super) type Table = Vec<(u64, Vec<u8>)>;

/// An argument, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Num(Num),
    Text(Vec<u8>),
    /// `REC->field`; for an array its bytes.
    Field(Field),
    /// `&REC->field`.
    Address(Box<Expr>),
    /// `array[index]` and `*pointer`, of bytes in the record.
    Element {
        array: Box<Expr>,
        index: Box<Expr>,
        elem: IntType,
    },
    Not(Box<Expr>),
    Complement(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(CType, Box<Expr>),
    Flags {
        value: Box<Expr>,
        delimiter: Vec<u8>,
        table: Table,
    },
    Symbolic {
        value: Box<Expr>,
        table: Table,
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
    /// The length of a dynamic array, bytes.
    Len(Box<Expr>),
    /// `ntohs` and its like: this many bytes in the other order, if the recording machine's is little-endian and
    /// `from_big`, or always.
    Swap {
        value: Box<Expr>,
        bytes: u8,
        always: bool,
    },
}

impl Expr {
    /// The integer field that alone decides what this prints as, if one does and it is dear to print.
    pub(super) fn decided_by(&self) -> Option<&Field> {
        let mut field = None;
        let names = matches!(self, Expr::Flags { .. } | Expr::Symbolic { .. } | Expr::Ternary(..));
        (names && self.only_on(&mut field)).then_some(field).flatten()
    }

    /// Whether this depends on nothing but texts, numbers and one integer field, which is `field` if that is known.
    fn only_on<'e>(&'e self, field: &mut Option<&'e Field>) -> bool {
        match self {
            Expr::Num(_) | Expr::Text(_) => true,
            Expr::Field(this) => {
                let known = *field.get_or_insert(this);
                known == this && matches!(this.ty, FieldType::Int | FieldType::Uint)
            }
            Expr::Not(inner) | Expr::Complement(inner) | Expr::Negate(inner) | Expr::Cast(_, inner) => {
                inner.only_on(field)
            }
            Expr::Flags { value, .. } | Expr::Symbolic { value, .. } => value.only_on(field),
            Expr::Binary(_, a, b) => a.only_on(field) && b.only_on(field),
            Expr::Ternary(condition, a, b) => [condition, a, b].iter().all(|e| e.only_on(field)),
            _ => false,
        }
    }
}
