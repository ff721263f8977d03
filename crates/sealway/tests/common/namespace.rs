//! Scripts in a network namespace of their own.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{peer_is_missing, ran};

/// A command that runs what its arguments go on with in a network namespace of its own. None where there can be none, or not this
/// program, which `probe` calls.
pub fn unshared(probe: &[&str]) -> Option<Command> {
    let unshare = || {
        let mut command = Command::new("unshare");
        // Whatever is started there ends with it.
        command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
    };
    if !unshare()
        .args(probe)
        .output()
        .is_ok_and(|output| output.status.success())
    {
        let program = probe[0];
        peer_is_missing(&format!(
            "there is no {program}, or no namespace for it (scripts/install-peers)"
        ));
        return None;
    }
    Some(unshare())
}

/// Runs a script of the tests in a network namespace of its own, if there can be one. It ends well.
pub fn in_namespace(script: &str, arguments: &[&Path]) {
    let Some(mut command) = unshared(&["ip", "link"]) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    command
        .args(["timeout", "--kill-after=5", "300", "bash"])
        .arg(script)
        .args(arguments);
    for name in ["SEALWAY_PIN", "SEALWAY_RELAY", "SEALWAY_CODE"] {
        command.env_remove(name);
    }
    ran(command.stdin(Stdio::null())).says(0, &[]);
}
