# Builds scripts/checks with rustc alone and prints the path of the program. Sourced by the check scripts.
# shellcheck shell=bash

checks_program() {
    local scripts=$1 folder stamp program
    folder=${CARGO_TARGET_DIR:-$scripts/../target}/checks
    # The name follows the sources and the compiler, so an old build is never used.
    stamp=$({ rustc --version && cat "$scripts"/checks/*.rs; } | cksum | tr ' ' '-')
    program=$folder/checks-$stamp
    if [ ! -x "$program" ]; then
        mkdir -p "$folder"
        # Built under a name of its own and moved into place: several scripts may start at the same time. No dot before the
        # number: rustc would take it for an extension and give all of them the same names for their object files.
        rustc --edition 2024 -C debuginfo=0 -o "$program-$$" "$scripts/checks/main.rs" >&2
        mv -f "$program-$$" "$program"
    fi
    printf '%s\n' "$program"
}
