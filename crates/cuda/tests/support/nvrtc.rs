//! Makes the PTX of the kernels with NVIDIA's run-time compiler (NVRTC).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};

/// The oldest instruction set that it is for: Turing. A driver translates it for what is newer.
pub const TARGET: &str = "compute_75";

/// Where `scripts/install-peers` puts the compiler, below the folder of the user's data.
const INSTALLED: &str = "sealway-peers/nvrtc";

/// Where the PTX is kept.
pub fn kept() -> PathBuf {
    kernels().join("sealway.ptx")
}

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// The kernels as one text: the compiler sees no files.
pub fn source() -> String {
    let mut text = String::new();
    append("kernels.cu", &mut HashSet::new(), &mut text);
    text
}

fn append(name: &str, seen: &mut HashSet<String>, text: &mut String) {
    if !seen.insert(name.to_owned()) {
        return;
    }
    for line in fs::read_to_string(kernels().join(name)).unwrap().lines() {
        if let Some(included) = line.strip_prefix("#include \"") {
            append(included.trim_end_matches('"'), seen, text);
        } else if line != "#pragma once" {
            text.push_str(line);
            text.push('\n');
        }
    }
}

/// The folder with the compiler's libraries, if there is one.
pub fn folder() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let named = std::env::var_os("SEALWAY_NVRTC").map(PathBuf::from);
    let usual = ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    named
        .into_iter()
        .chain(data.map(|data| data.join(INSTALLED)))
        .chain(usual)
        .find(|folder| folder.join("libnvrtc.so.12").exists())
}

/// Compiles the kernels. The libraries must be where the loader of programs looks, so in `LD_LIBRARY_PATH`.
pub fn compile() -> Result<String, String> {
    let options = CompileOptions {
        arch: Some(TARGET),
        options: vec!["--std=c++17".into()],
        ..CompileOptions::default()
    };
    match compile_ptx_with_opts(source(), options) {
        Ok(ptx) => Ok(ptx.to_src()),
        Err(CompileError::CompileError { log, .. }) => Err(log.to_string_lossy().into_owned()),
        Err(other) => Err(format!("{other:?}")),
    }
}

/// The line that names the compiler.
pub fn made_by(ptx: &str) -> Option<&str> {
    ptx.lines().find(|line| line.starts_with("// Cuda compilation tools"))
}
