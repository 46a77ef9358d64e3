//! Journeys through the real binary that need nothing but files the tests make themselves.

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod markers;
