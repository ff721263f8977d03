# Two hosts on one network: this one, and one that `there` runs commands on. Nothing of it is the machine's own network.
# To be sourced by a script that runs in a network namespace of its own.
. "$(dirname "${BASH_SOURCE[0]}")/namespaces.sh"

place other
there() { at other "$@"; }
other=${places[other]}

ip link add v0 type veth peer name v1 netns "$other"
ip address add 10.77.0.1/24 dev v0
ip link set v0 up
there ip address add 10.77.0.2/24 dev v1
there ip link set v1 up
there ip route add 224.0.0.0/4 dev v1
