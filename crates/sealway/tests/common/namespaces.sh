# Namespaces for the network of scripts. To be sourced by one that runs in a network namespace of its own.
set -eu

fail() { echo "failed: $*" >&2; exit 1; }

# Waits for a condition, for a minute at most.
wait_for() {
    local _
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    fail "waited for: $*"
}

namespace() { readlink "/proc/$1/ns/net"; }
is_elsewhere() { [ "$(namespace "$1")" != "$(namespace $$)" ]; }

# A namespace called so: `at NAME command…` runs there.
declare -A places
place() { # name
    unshare --net sleep 600 &
    places[$1]=$!
    wait_for is_elsewhere "${places[$1]}"
    at "$1" ip link set lo up
}
at() { # name, command…
    local where=${places[$1]}
    shift
    nsenter --target "$where" --net "$@"
}

ip link set lo up
