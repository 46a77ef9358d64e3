//! The program for the phone: everything is in the library's `main`.

use std::process::ExitCode;

#[cfg(any(target_os = "linux", target_os = "android"))]
fn main() -> ExitCode {
    tracebridge_device::main()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn main() -> ExitCode {
    eprintln!("tracebridge-device: only Linux and Android have a trace buffer to record");
    ExitCode::FAILURE
}
