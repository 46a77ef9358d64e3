//! Journeys on an Android device or the emulated one (`TRACEBRIDGE_SERIAL` names it), driven through the real adb with
//! the static binaries of scripts/build-android. The device's kernel has one buffer: the tests take turns.

#[path = "../support/art_writer.rs"]
mod art_writer;
#[path = "../support/capture.rs"]
mod capture;
mod doctor;
#[path = "../support/mod.rs"]
mod support;

mod adb;
mod atrace;
mod bad_input;
mod boot;
mod journey;
mod launch;
mod locked_down;
mod perfetto;
mod recording;
mod settings;
mod stand_in;
mod tags;
