//! Tests on an Android device or the emulated device, which `TRACEBRIDGE_SERIAL` names, and on the emulated
//! device that is dressed as a locked phone, which `TRACEBRIDGE_LOCKED_SERIAL` names, through the real adb
//! and with the static binaries of scripts/build-android. A device's kernel has one trace buffer, so one test
//! at a time uses it.

#[path = "../shared/capture.rs"]
mod capture;
#[path = "../shared/shown_samples.rs"]
mod shown_samples;

mod adb;
mod assistant;
mod atrace;
mod boot;
mod desk;
mod doctor;
mod documented;
mod fake_android;
mod journey;
mod launch;
mod live;
mod locked;
mod locked_doctor;
mod locked_recording;
mod locked_rules;
mod peers;
mod perfetto;
mod real_art;
mod recording;
mod settings;
mod tags;
