//! The PTX that programs carry is what the compiler makes of the kernels. A program of its own: it starts itself again.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "support/nvrtc.rs"]
mod nvrtc;

use std::fs;
use std::process::Command;

/// Set for the process that compiles.
const CHILD: &str = "SEALWAY_TEST_COMPILES_PTX";

/// True if what is not there is a failure. There is a compiler to install for x86-64 only.
fn required() -> bool {
    cfg!(target_arch = "x86_64") && std::env::var_os("SEALWAY_REQUIRE_PEERS").is_some_and(|value| value == "1")
}

/// Every entry is in the PTX that is kept, and it asks for no newer driver than it says.
#[test]
fn what_is_kept_has_every_kernel() {
    let ptx = fs::read_to_string(nvrtc::kept()).unwrap();
    assert!(
        ptx.contains(".version 8.0\n"),
        "drivers from CUDA 12.0 on read version 8.0"
    );
    assert!(ptx.contains(".target sm_75\n"));
    let entries: Vec<_> = ptx
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".visible .entry ")?.strip_suffix('('))
        .collect();
    let source = nvrtc::source(nvrtc::KERNELS);
    for name in ["lanes1", "parts", "ends", "set_keys", "spread", "join"] {
        assert!(source.contains(&format!("sealway_{name}(")));
        assert!(
            entries.contains(&format!("sealway_{name}").as_str()),
            "{name} of {entries:?}"
        );
    }
    for lanes in [4, 8, 16, 32] {
        assert!(source.contains(&format!("SEALWAY_LANES({lanes})")));
        assert!(
            entries.contains(&format!("sealway_lanes{lanes}").as_str()),
            "{lanes} of {entries:?}"
        );
    }
    assert_eq!(entries.len(), 10);
    // An array that is not indexed by constants would lie in memory of its own. (Registers are given out later, for each device.)
    assert!(!ptx.contains(".local "), "a kernel keeps something in local memory");
}

/// The compiler may put an input of an assembly block where an output goes, since it takes inputs to be read first. A chain of
/// instructions reads on after it has written, so what it reads must be another register than those written before.
#[test]
fn no_chain_reads_what_it_has_overwritten() {
    let ptx = fs::read_to_string(nvrtc::kept()).unwrap();
    let mut chains = 0;
    for block in ptx.split("// begin inline asm\n").skip(1) {
        let (block, _) = block.split_once("// end inline asm").unwrap();
        let mut written: Vec<&str> = Vec::new();
        for instruction in block.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (_, operands) = instruction.trim_end_matches(';').split_once(' ').unwrap();
            let operands: Vec<_> = operands.split(',').map(str::trim).collect();
            let read = operands.iter().skip(1).find(|operand| written.contains(operand));
            assert_eq!(read, None, "read after it was written, in\n{block}");
            written.push(operands[0]);
        }
        chains += usize::from(block.contains("addc.cc"));
    }
    assert!(chains > 50, "{chains} chains");
}

#[test]
fn what_is_kept_is_what_the_compiler_makes() {
    let kept = fs::read_to_string(nvrtc::kept()).unwrap();
    if std::env::var_os(CHILD).is_some() {
        let made = nvrtc::compile(nvrtc::KERNELS).unwrap_or_else(|log| panic!("the kernels do not compile:\n{log}"));
        if nvrtc::made_by(&made) != nvrtc::made_by(&kept) {
            assert!(
                !required(),
                "SEALWAY_REQUIRE_PEERS=1, and the NVRTC found is not that of scripts/install-peers"
            );
            println!(
                "SKIPPED the comparison: this compiler is another ({:?}); it compiles the kernels",
                nvrtc::made_by(&made)
            );
            return;
        }
        assert!(made == kept, "the kernels have changed: run scripts/make-ptx");
        return;
    }
    let Some(folder) = nvrtc::folder() else {
        assert!(
            !required(),
            "SEALWAY_REQUIRE_PEERS=1, and there is no NVRTC: scripts/install-peers gets it, or set SEALWAY_NVRTC to its folder"
        );
        println!("SKIPPED: there is no NVRTC; whether the PTX is current was NOT checked");
        return;
    };
    // The loader reads its path when a process starts, so another one compiles.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_is_kept_is_what_the_compiler_makes", "--nocapture"])
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!(
        "{}",
        said.lines().filter(|line| line.contains("SKIPPED")).collect::<String>()
    );
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
