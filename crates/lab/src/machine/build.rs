//! What this program was built from and for.

use super::Tree;

pub(super) fn capture(tree: &mut Tree<'_>) {
    for (name, value) in build_facts() {
        tree.note(name, (!value.is_empty()).then_some(value));
    }
    let known = !env!("SEALWAY_BUILD_COMMIT").is_empty();
    tree.note("build.dirty", known.then_some(env!("SEALWAY_BUILD_DIRTY") == "true"));
    tree.note("build.debug_assertions", Some(cfg!(debug_assertions)));
    // Only our own switch, and only what such a list can hold; it is shown in reports.
    if tree.is_live()
        && let Ok(value) = std::env::var("SEALWAY_CPU_DISABLE")
    {
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ',' | '_' | '-' | '.' | ' ');
        tree.note(
            "build.cpu_disable",
            Some(value.chars().filter(plain).take(256).collect::<String>()),
        );
    }
}

/// Texts fixed at build time, by name; empty where the build could not tell.
fn build_facts() -> [(&'static str, &'static str); 8] {
    [
        ("build.version", env!("CARGO_PKG_VERSION")),
        ("build.commit", env!("SEALWAY_BUILD_COMMIT")),
        ("build.rustc", env!("SEALWAY_BUILD_RUSTC")),
        ("build.target", env!("SEALWAY_BUILD_TARGET")),
        ("build.target_features", env!("SEALWAY_BUILD_TARGET_FEATURES")),
        (
            "build.profile",
            concat!(
                env!("SEALWAY_BUILD_PROFILE"),
                ", opt-level ",
                env!("SEALWAY_BUILD_OPT_LEVEL")
            ),
        ),
        ("build.features", env!("SEALWAY_BUILD_FEATURES")),
        // The workspace sets no allocator of its own.
        ("build.allocator", "system"),
    ]
}
