//! A stand-in for NVIDIA's driver, and tests that run in a process where it is found.
//!
//! The loader of programs reads its path when a process starts, so a test starts its own program again, for itself alone.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;

use crate::support::emulator::compiler;

/// Names the file that tells the stand-in what to be; set in the processes that it is for.
const CONTROL: &str = "SEALWAY_STAND_IN";

/// What the stand-in is made of, for a name that is another when they change.
const SOURCES: [&str; 6] = ["driver.cpp", "context.h", "launch.h", "memory.h", "state.h", "work.h"];

/// No warning is an error: what another compiler dislikes is no failed test.
const FLAGS: [&str; 6] = ["-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"];

/// Tells the stand-in what to be.
pub struct StandIn {
    control: PathBuf,
    is: String,
    fired: Cell<bool>,
}

impl StandIn {
    /// What it is from now on: words as `driver/state.h` lists them.
    pub fn is(&mut self, words: &str) {
        self.is = words.into();
        self.passes();
    }

    /// The call of this name fails with a code, so many calls of the name from now.
    pub fn fails(&self, call: &str, before: usize, code: u32) {
        self.write(&format!("{} fail={call},{},{code}", self.is, before + 1));
    }

    /// The same, but the call does what it should.
    pub fn fails_after(&self, call: &str, before: usize, code: u32) {
        self.write(&format!("{} fail={call},{},{code},after", self.is, before + 1));
    }

    /// The next calls of this name fail with a code, so many of them.
    pub fn fails_often(&self, call: &str, times: usize, code: u32) {
        self.write(&format!("{} fail={call},1,{code} times={times}", self.is));
    }

    /// No call fails.
    pub fn passes(&self) {
        self.write(&self.is);
    }

    /// True if the last call that was to fail has.
    pub fn fired(&self) -> bool {
        self.fired.get() || fs::read_to_string(&self.control).unwrap().contains("fired")
    }

    fn write(&self, words: &str) {
        self.fired.set(!words.contains("fail=") && self.fired());
        fs::write(&self.control, words).unwrap();
    }
}

/// Runs `test`, which is the test `name` of this program, in a process of its own in which the stand-in is the driver. Skipped with a
/// message where there is no C++ compiler.
pub fn with_driver(name: &str, test: impl FnOnce(&mut StandIn)) {
    if let Some(control) = std::env::var_os(CONTROL) {
        return test(&mut StandIn {
            control: control.into(),
            is: String::new(),
            fired: Cell::new(false),
        });
    }
    let Some(folder) = folder() else { return };
    again(name, folder);
}

/// Runs `test` as [`with_driver`] does, with what a C++ compiler makes of `source` as the driver; without any if there is none.
pub fn with_library(name: &str, source: Option<&str>, test: impl FnOnce()) {
    if std::env::var_os(CONTROL).is_some() {
        return test();
    }
    let folder = tempfile::tempdir().unwrap();
    if let Some(text) = source {
        let Some(compiler) = compiler() else { return };
        let file = folder.path().join("library.cpp");
        fs::write(&file, text).unwrap();
        compile(&compiler, &file, folder.path());
    }
    again(name, folder.path());
}

/// Runs a test of this program again, with libraries from a folder.
fn again(name: &str, folder: &Path) {
    let control = tempfile::NamedTempFile::new().unwrap();
    let before = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CONTROL, control.path())
        .env("RUST_BACKTRACE", "0")
        .env("LD_LIBRARY_PATH", format!("{}:{before}", folder.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for line in said.lines().filter(|line| line.starts_with("SKIPPED")) {
        println!("{line}");
    }
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{} with {}\n{said}\n{}",
        name,
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The folder with the stand-in, made once for as long as its sources stay what they are.
fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(make).as_deref()
}

fn make() -> Option<PathBuf> {
    let compiler = compiler()?;
    let (sources, kernels) = (cuda().join("tests/support/driver"), kernels());
    let mut files: Vec<PathBuf> = SOURCES.map(|file| sources.join(file)).into();
    files.extend(fs::read_dir(&kernels).unwrap().map(|entry| entry.unwrap().path()));
    files.sort();
    // Where the kernels lie is compiled in.
    let mut parts = vec![
        compiler.clone().into_bytes(),
        kernels.into_os_string().into_encoded_bytes(),
    ];
    parts.extend(FLAGS.map(|flag| flag.as_bytes().to_vec()));
    parts.extend(files.into_iter().map(|file| fs::read(file).unwrap()));
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.concat() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{hash:016x}"));
    if !made.exists() {
        // Another process may make it too: who is first puts it there.
        let own = made.with_extension(process::id().to_string());
        fs::create_dir_all(&own).unwrap();
        compile(&compiler, &sources.join("driver.cpp"), &own);
        if fs::rename(&own, &made).is_err() {
            assert!(made.exists(), "the stand-in cannot be put where it belongs");
            fs::remove_dir_all(&own).unwrap();
        }
    }
    Some(made)
}

/// The folder of the crate. Tests of other crates use the stand-in too.
fn cuda() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.join("../cuda").canonicalize().unwrap()
}

fn kernels() -> PathBuf {
    cuda().join("kernels")
}

/// Makes a library of the names under which a driver is looked for, the first and the one that there is.
fn compile(compiler: &str, source: &Path, folder: &Path) {
    let library = folder.join("libcuda.so.1");
    let output = Command::new(compiler)
        .args(FLAGS)
        .arg("-I")
        .arg(kernels())
        .arg(format!("-DSEALWAY_PTX=\"{}\"", kernels().join("sealway.ptx").display()))
        .arg("-o")
        .arg(&library)
        .arg(source)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the stand-in does not compile:\n{said}");
    fs::copy(&library, folder.join("libcuda.so")).unwrap();
}
