//! Scripts in a network namespace of their own.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::peer_is_missing;

/// Runs a script of the tests in a network namespace of its own; none where there can be none.
pub fn in_namespace(script: &str, arguments: &[&Path]) -> Option<Output> {
    let unshare = || {
        let mut command = Command::new("unshare");
        // Whatever the script started ends with it.
        command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
    };
    if !unshare()
        .args(["ip", "link"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        peer_is_missing("there is no ip, or no namespace for it (scripts/install-peers)");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let mut command = unshare();
    command
        .args(["timeout", "--kill-after=5", "300", "bash"])
        .arg(script)
        .args(arguments);
    for name in ["SEALWAY_PIN", "SEALWAY_RELAY", "SEALWAY_CODE"] {
        command.env_remove(name);
    }
    Some(command.stdin(Stdio::null()).output().unwrap())
}

/// It ended well, if there was something to run.
pub fn succeeded(output: Option<Output>) {
    let Some(output) = output else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{:?}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}
