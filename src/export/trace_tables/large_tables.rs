//! Which of the large tables get rows.

/// The tables that are large, and are empty unless they are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargeTables {
    /// `method_call`: a row for each call of a method.
    pub method_calls: bool,
    /// `event`: a row for each kernel event as it was recorded.
    pub events: bool,
}
