//! The kernels as a program: their source compiled as plain C++, so that a machine without a GPU runs the same arithmetic.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// Buffers of a launch, in the order of the program.
pub const BUFFERS: usize = 10;
/// Those that a launch may change, in the order of the answer: outputs, keys, statuses, sums.
pub const WRITTEN: [usize; 4] = [2, 3, 5, 8];

const MAGIC: u32 = 0x5357_4b31;

/// A running emulator; ends when dropped.
pub struct Emulator {
    child: Child,
}

impl Emulator {
    /// Starts one, or says why there is none.
    ///
    /// # Panics
    /// If there is no C++ compiler although `SEALWAY_REQUIRE_PEERS=1` asks for all that tests use, or if the source does not compile.
    pub fn start() -> Option<Self> {
        let program = program()?;
        let child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Emulator { child })
    }

    /// Runs a kernel; `buffers` become what it left of them.
    pub fn launch(&mut self, kernel: u32, count: u32, buffers: &mut [Vec<u8>; BUFFERS]) {
        let mut request: Vec<u8> = [MAGIC, kernel, count]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        request.extend(buffers.iter().flat_map(|buffer| (buffer.len() as u32).to_le_bytes()));
        let mut stdin = self.child.stdin.take().unwrap();
        let stdout = self.child.stdout.as_mut().unwrap();
        let answers = thread::scope(|scope| {
            let input = &*buffers;
            let writing = scope.spawn(move || {
                stdin.write_all(&request).unwrap();
                input.iter().for_each(|buffer| stdin.write_all(buffer).unwrap());
                stdin.flush().unwrap();
                stdin
            });
            let answers = WRITTEN.map(|index| {
                let mut answer = vec![0; input[index].len()];
                stdout
                    .read_exact(&mut answer)
                    .expect("the emulator ended; what it found wrong stands above");
                answer
            });
            self.child.stdin = Some(writing.join().unwrap());
            answers
        });
        for (index, answer) in WRITTEN.into_iter().zip(answers) {
            buffers[index] = answer;
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        // A checker of addresses speaks up at the end too.
        assert!(
            status.success() || thread::panicking(),
            "the emulator ended with {status}"
        );
    }
}

/// Compiles the emulator, once a process.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref()
}

/// The C++ compiler, or `None` with a message where there is none.
///
/// # Panics
/// If there is none although `SEALWAY_REQUIRE_PEERS=1` asks for all that tests use.
pub fn compiler() -> Option<String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    if Command::new(&compiler).arg("--version").output().is_err() {
        assert!(
            std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
            "SEALWAY_REQUIRE_PEERS=1, and there is no C++ compiler `{compiler}`"
        );
        println!("SKIPPED: no C++ compiler `{compiler}`; what is in C++ was NOT tested");
        return None;
    }
    Some(compiler)
}

fn compile() -> Option<PathBuf> {
    let compiler = compiler()?;
    // Tests of other crates use it too.
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda/kernels");
    let folder = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let target = folder.join(format!("emulator-{}", std::process::id()));
    // With a checker of addresses and of undefined arithmetic where the compiler has one.
    let attempts: [&[&str]; 2] = [&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], &[]];
    let mut said = String::new();
    for checks in attempts {
        let output = Command::new(&compiler)
            .args(["-std=c++17", "-O2", "-Wall", "-Wextra"])
            .args(checks)
            .arg("-o")
            .arg(&target)
            .arg(kernels.join("emulate.cpp"))
            .output()
            .unwrap();
        if output.status.success() {
            return Some(target);
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("the kernels do not compile as C++:\n{said}");
}
