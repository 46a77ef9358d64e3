//! The library for C and C++: the functions that `include/tracebridge.h` declares.
//!
//! `scripts/build-markers` builds it as `libtracebridge_markers.a` and `.so`. The header says what each
//! function does. A name that is a null pointer counts as `(null)`, as on Android's Java side.
#![allow(unsafe_code, non_snake_case)] // functions that C calls, strings that C passes, the NDK's names

use std::ffi::{CStr, c_char};

use super::marker::Marker;
use super::process;
use super::ring_writer::{WithoutRecorder, use_ring};
use super::tracer::Tracer;
use crate::tags::{APP, Tag};

/// The tracer behind all functions, which check the tag themselves.
static TRACER: Tracer = Tracer::new(Tag::ALWAYS);

#[inline]
fn is_on(tags: u64) -> bool {
    // No tag has a bit above 27.
    process::may_be_on(tags as u32) && process::tags_on() & tags != 0
}

/// Returns the bytes of a string of C.
///
/// # Safety
/// `text` is null, or points to bytes that a NUL ends and that nobody changes for `'a`.
#[inline]
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"(null)";
    }
    // SAFETY: the caller vouches for the string.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// Returns the mask of the tags that are on.
#[unsafe(no_mangle)]
pub extern "C" fn tracebridge_enabled_tags() -> u64 {
    process::tags_on()
}

/// Reads the tags that are on again.
#[unsafe(no_mangle)]
pub extern "C" fn tracebridge_update_tags() {
    process::update_tags();
}

/// Has all markers of the process go to a ring in memory. Returns whether the process has one.
#[unsafe(no_mangle)]
pub extern "C" fn tracebridge_use_ring(else_trace_marker: bool) -> bool {
    use_ring(if else_trace_marker { WithoutRecorder::TraceMarker } else { WithoutRecorder::Nowhere })
}

/// Begins a slice on the calling thread.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_begin(tags: u64, name: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    is_on(tags) && TRACER.begin_bytes(unsafe { bytes(name) })
}

/// Ends the newest open slice of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn tracebridge_end(tags: u64) -> bool {
    is_on(tags) && TRACER.end()
}

/// Marks a moment on the calling thread.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_instant(tags: u64, name: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    is_on(tags) && TRACER.instant_bytes(unsafe { bytes(name) })
}

/// Marks a moment on a named track of the process.
///
/// # Safety
/// `track` and `name` are each null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_track_instant(
    tags: u64,
    track: *const c_char,
    name: *const c_char,
) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let (track, name) = unsafe { (bytes(track), bytes(name)) };
    TRACER.mark(|pid| Marker::TrackInstant { pid, track, name })
}

/// Sets a counter of the process.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_counter(tags: u64, name: *const c_char, value: i64) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let name = unsafe { bytes(name) };
    TRACER.mark(|pid| Marker::Counter { pid, name, value, category: None })
}

/// Begins an async slice of the process.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_async_begin(tags: u64, name: *const c_char, cookie: i32) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let name = unsafe { bytes(name) };
    let cookie = i64::from(cookie);
    TRACER.mark(|pid| Marker::AsyncBegin { pid, name, cookie })
}

/// Ends an async slice of the process.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_async_end(tags: u64, name: *const c_char, cookie: i32) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let name = unsafe { bytes(name) };
    let cookie = i64::from(cookie);
    TRACER.mark(|pid| Marker::AsyncEnd { pid, name, cookie })
}

/// Begins a slice on a named track of the process.
///
/// # Safety
/// `track` and `name` are each null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_track_begin(
    tags: u64,
    track: *const c_char,
    name: *const c_char,
    cookie: i32,
) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let (track, name) = unsafe { (bytes(track), bytes(name)) };
    let cookie = i64::from(cookie);
    TRACER.mark(|pid| Marker::TrackBegin { pid, track, name, cookie })
}

/// Ends a slice on a named track of the process.
///
/// # Safety
/// `track` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracebridge_track_end(tags: u64, track: *const c_char, cookie: i32) -> bool {
    if !is_on(tags) {
        return false;
    }
    // SAFETY: as the caller promises.
    let track = unsafe { bytes(track) };
    let cookie = i64::from(cookie);
    TRACER.mark(|pid| Marker::TrackEnd { pid, track, name: None, cookie })
}

// The calls of the NDK's android/trace.h, by their names there.

/// Returns whether the tag `app` is on.
#[unsafe(no_mangle)]
pub extern "C" fn ATrace_isEnabled() -> bool {
    is_on(APP)
}

/// [`tracebridge_begin`] with the tag `app`.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ATrace_beginSection(name: *const c_char) {
    // SAFETY: as the caller promises.
    unsafe { tracebridge_begin(APP, name) };
}

/// [`tracebridge_end`] with the tag `app`.
#[unsafe(no_mangle)]
pub extern "C" fn ATrace_endSection() {
    tracebridge_end(APP);
}

/// [`tracebridge_async_begin`] with the tag `app`.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ATrace_beginAsyncSection(name: *const c_char, cookie: i32) {
    // SAFETY: as the caller promises.
    unsafe { tracebridge_async_begin(APP, name, cookie) };
}

/// [`tracebridge_async_end`] with the tag `app`.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ATrace_endAsyncSection(name: *const c_char, cookie: i32) {
    // SAFETY: as the caller promises.
    unsafe { tracebridge_async_end(APP, name, cookie) };
}

/// [`tracebridge_counter`] with the tag `app`.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ATrace_setCounter(name: *const c_char, value: i64) {
    // SAFETY: as the caller promises.
    unsafe { tracebridge_counter(APP, name, value) };
}
