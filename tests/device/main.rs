//! Journeys on an Android device or the emulated one (`TRACEBRIDGE_SERIAL` names it), driven through the real adb with
//! the static binaries of scripts/build-android. The device's kernel has one buffer: the tests take turns.

#[path = "../support/art_writer.rs"]
mod art_writer;
#[path = "../support/mod.rs"]
mod support;

mod adb;
mod bad_input;
mod capture;
mod journey;
mod launch;
mod perfetto;
mod recording;
