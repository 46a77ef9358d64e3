//! How deep the parts of an input may lie inside each other. Every reader that calls itself for an inner part
//! passes a [`Depth`] on: a file of some kilobytes can nest its parts until the stack overflows.

/// The number of levels that may still follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    left: u32,
    max: u32,
}

/// The parts of an input lie inside each other deeper than its reader goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("inside each other more than {max} deep")]
pub struct TooDeep {
    /// The most levels.
    pub max: u32,
}

impl Depth {
    /// The outermost level, with at most `max` levels inside of it.
    pub const fn new(max: u32) -> Depth {
        Depth { left: max, max }
    }

    /// The level inside of this one.
    ///
    /// # Errors
    /// [`TooDeep`] at the innermost level.
    pub fn inner(self) -> Result<Depth, TooDeep> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Depth { left, max: self.max }),
            None => Err(TooDeep { max: self.max }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_levels_follow_as_are_allowed() {
        let inner = Depth::new(2).inner().and_then(Depth::inner).unwrap();
        let error = inner.inner().unwrap_err();
        assert_eq!((error.max, error.to_string().as_str()), (2, "inside each other more than 2 deep"));
    }
}
