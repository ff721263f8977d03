//! Writes the PTX of the kernels. `scripts/make-ptx` runs it with the libraries of the compiler where they are found.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../tests/support/nvrtc.rs"]
mod nvrtc;

use std::process::ExitCode;

fn main() -> ExitCode {
    match nvrtc::compile() {
        Ok(ptx) => {
            std::fs::write(nvrtc::kept(), &ptx).unwrap();
            println!("{}: {} bytes", nvrtc::kept().display(), ptx.len());
            println!("{}", nvrtc::made_by(&ptx).unwrap_or("by an unnamed compiler"));
            ExitCode::SUCCESS
        }
        Err(log) => {
            eprintln!("error: the kernels do not compile:\n{log}");
            ExitCode::FAILURE
        }
    }
}
