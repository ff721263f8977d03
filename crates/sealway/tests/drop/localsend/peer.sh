# localsendd at the other host. To be sourced by a script that runs in a network namespace of its own and knows $program, $peer and $work.
. "$(dirname "$0")/../../common/network.sh"

export SEALWAY_CONFIG_DIR=$work/config LOCALSENDD_SOCKET=$work/socket XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/xdg
mkdir -p "$work/theirs" "$work/ours" "$work/files"

# Starts it as $daemon, with a certificate of its own if it has none.
starts_peer() {
    rm -f "$work/socket"
    nsenter --target "$other" --net "$peer/localsendd" --alias peer --unattended --download-dir "$work/theirs" --socket "$work/socket" 2>>"$work/log" &
    daemon=$!
    wait_for test -S "$work/socket"
}
control() { there "$peer/localsendctl" "$@"; }

knows_us() { control devices --json | grep -q '"ours"'; }
# Receives one transfer as $receiving, with these options besides; what it says is in $work/received.
receives() {
    : >"$work/received"
    "$program" receive --localsend --yes --anyone --alias ours "$@" "$work/ours" --json >"$work/received" 2>"$work/errors" &
    receiving=$!
    wait_for grep -q listening "$work/received"
    wait_for knows_us
}
sends() { control send "$@" --to ours --wait >>"$work/log" 2>&1; }
said() { cat "$work"/{log,sent,received,errors} 2>/dev/null; }
