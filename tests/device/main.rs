//! Tests on an Android device or the emulated device, which `TRACEBRIDGE_SERIAL` names, through the real adb
//! and with the static binaries of scripts/build-android. The device's kernel has one trace buffer, so one
//! test at a time uses the device.

#[path = "../support/capture.rs"]
mod capture;
#[path = "../support/mod.rs"]
mod support;

mod adb;
mod atrace;
mod boot;
mod doctor;
mod fake_android;
mod journey;
mod launch;
mod locked_down;
mod perfetto;
mod recording;
mod settings;
mod tags;
