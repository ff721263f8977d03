//! Writes the PTX of the kernels, or of another file of their folder: `make_ptx [FILE OUTPUT]`.
//!
//! `scripts/make-ptx` and `scripts/count-gpu-instructions` run it with the libraries of the compiler where they are found.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../tests/support/nvrtc.rs"]
mod nvrtc;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| nvrtc::KERNELS.into());
    let output = args.next().map_or_else(nvrtc::kept, PathBuf::from);
    match nvrtc::compile(&file) {
        Ok(ptx) => {
            std::fs::write(&output, &ptx).unwrap();
            println!("{}: {} bytes", output.display(), ptx.len());
            println!("{}", nvrtc::made_by(&ptx).unwrap_or("by an unnamed compiler"));
            ExitCode::SUCCESS
        }
        Err(log) => {
            eprintln!("error: {file} does not compile:\n{log}");
            ExitCode::FAILURE
        }
    }
}
