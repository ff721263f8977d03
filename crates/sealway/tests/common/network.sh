# Two hosts on one network: this one, and one that `there` runs commands on. Nothing of it is the machine's own network.
# To be sourced by a script that runs in a network namespace of its own.
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

ip link set lo up
unshare --net sleep 600 &
other=$!
wait_for is_elsewhere "$other"
there() { nsenter --target "$other" --net "$@"; }

ip link add v0 type veth peer name v1 netns "$other"
ip address add 10.77.0.1/24 dev v0
ip link set v0 up
there ip link set lo up
there ip address add 10.77.0.2/24 dev v1
there ip link set v1 up
there ip route add 224.0.0.0/4 dev v1
