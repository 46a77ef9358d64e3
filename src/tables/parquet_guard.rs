//! The one place from which the reader of the crate `parquet` is called: it panics on some damaged files.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::ParquetError;

thread_local! {
    /// Whether a panic of this thread is one of the reader's, which becomes an error.
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `read`, which calls the reader. A panic in it is an error, and is not printed. What `read` has
/// changed must not be used after that.
///
/// # Errors
/// The error of `read`.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_READING.get() {
                hook(info);
            }
        }));
    });
    let outer = IS_READING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(outer);
    result.unwrap_or_else(|panicked| {
        Err(ParquetError::General(format!(
            "is damaged in a way that its reader does not expect: {}",
            words(&*panicked)
        )))
    })
}

fn words(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_reader_is_an_error_with_its_words() {
        let error = guarded::<()>(|| panic!("index {} out of range", 7)).unwrap_err().to_string();
        assert!(error.contains("index 7 out of range"), "{error}");
        assert!(guarded(|| Ok(5)).unwrap() == 5 && !IS_READING.get());
    }
}
