//! Journeys on an Android device or the emulated one (`TRACEBRIDGE_SERIAL` names it).

#[path = "../support/mod.rs"]
mod support;
