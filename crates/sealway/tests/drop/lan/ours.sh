# Two of ours that find each other on a network without anybody else.
program=$1 work=$2
. "$(dirname "$0")/../../common/network.sh"

mkdir -p "$work/files/sub"
echo hello >"$work/files/sub/a"
head -c 2000000 /dev/urandom >"$work/files/big"
export SEALWAY_CONFIG_DIR=$work/here
away() { SEALWAY_CONFIG_DIR=$work/away nsenter --target "$other" --net "$program" "$@"; }

# Sends with these options, as $sending; what it says is in $work/sent.
sends() {
    # What an earlier one said is not this one's.
    : >"$work/sent"
    "$program" send "$work/files" --json "$@" >"$work/sent" 2>"$work/errors" &
    sending=$!
    wait_for grep -q '"event":"\(code\|waiting\|listening\)"' "$work/sent"
}
code() { sed -n 's/.*"code":"\([^"]*\)".*/\1/p' "$work/sent"; }
receives() { rm -rf "$work/out"; mkdir "$work/out"; away receive --yes --json "$@" "$work/out" >"$work/received" 2>>"$work/errors"; }
said() { cat "$work/sent" "$work/received" "$work/errors"; }
arrived() { wait "$sending" || fail "$1, sender: $?, $(said)"; diff -r "$work/files" "$work/out/files" || fail "$1"; }

# By a code, and nothing else.
sends
grep -q '"near":"sealway receive"' "$work/sent" || fail "it says that this is enough: $(said)"
SEALWAY_CODE=$(code) receives || fail "by a code: $?, $(said)"
grep '"event":"found"' "$work/received" | grep -q '"address":"10.77.0.1:' || fail "it says where: $(said)"
arrived "by a code"

# The one that looks takes what reaches it: answers to itself where multicast does not, and multicast where answers do not.
if command -v nft >/dev/null; then
    for lost in "ip daddr 224.0.0.0/4 drop; ip6 daddr ff02::fb drop;" "udp sport 5353 fib daddr type unicast drop;"; do
        there nft "table inet lossy { chain in { type filter hook input priority 0; $lost }; }"
        sends
        SEALWAY_CODE=$(code) receives || fail "without $lost: $?, $(said)"
        arrived "without $lost"
        there nft delete table inet lossy
    done
else
    [ "${SEALWAY_REQUIRE_PEERS:-}" != 1 ] || fail "there is no nft (scripts/install-peers)"
fi

# A wrong word spends the one guess, and nothing comes.
sends
right=$(code)
result=0; SEALWAY_CODE=${right%-*}-zebra receives || result=$?
[ "${right##*-}" = zebra ] || [ "$result" != 0 ] || fail "a wrong code: $(said)"
kill -INT "$sending" 2>/dev/null || true; wait "$sending" && fail "it was spent: $(said)"
[ -z "$(ls "$work/out")" ] || fail "a wrong code brought something"

# By keys.
ours=$("$program" identity)
theirs=$(away identity)
sends --peer "$theirs"
receives --peer "$ours" || fail "by keys: $?, $(said)"
arrived "by keys"
# Who is not meant does not find it.
sends --peer "$ours"
result=0; receives --peer "$ours" || result=$?
[ "$result" = 7 ] && grep -q 'nobody on this network answers to the keys' "$work/received" || fail "others: $result, $(said)"
kill -INT "$sending"; wait "$sending" || true

# Two with one number: at most one of them is meant.
SEALWAY_CODE=7-castle-lemon-opera sends
first=$sending
SEALWAY_CODE=7-zebra-zebra-zebra sends
# Until both have been announced there is but one. It says that it listens once that is under way.
wait_for grep -q '"event":"listening"' "$work/sent"
sleep 1
result=0; SEALWAY_CODE=7-castle-lemon-opera receives || result=$?
[ "$result" = 7 ] && grep -q 'more than one on this network answers to the number 7' "$work/received" || fail "two: $result, $(said)"
kill -INT "$first" "$sending"; wait "$first" || true; wait "$sending" || true

# Nobody has that number, and nobody looks who was told not to. An end that was told not to is not found.
result=0; SEALWAY_CODE=8-castle-lemon-opera receives --no-lan || result=$?
[ "$result" = 2 ] && grep -q 'nothing says where the other end is' "$work/received" || fail "not looked for: $result, $(said)"
SEALWAY_CODE=8-castle-lemon-opera sends --no-lan
result=0; SEALWAY_CODE=8-castle-lemon-opera receives || result=$?
[ "$result" = 7 ] && grep -q 'nobody on this network answers to the number 8' "$work/received" || fail "not found: $result, $(said)"
kill -INT "$sending"; wait "$sending" || true

# With nothing but link-local addresses.
ip address flush dev v0 scope global
there ip address flush dev v1 scope global
sends
SEALWAY_CODE=$(code) receives || fail "link-local: $?, $(said)"
grep -q '\[fe80::' "$work/received" || fail "link-local: $(said)"
arrived "link-local"

# Where there is no network at all, an end still waits, and is found by its address.
ip link set v0 down
sends
port=$(sed -n 's/.*"address":"[^"]*:\([0-9]*\)".*/\1/p' "$work/sent" | head -n 1)
rm -rf "$work/out"; mkdir "$work/out"
SEALWAY_CODE=$(code) SEALWAY_CONFIG_DIR=$work/away "$program" receive --yes --json --code --connect "127.0.0.1:$port" "$work/out" >"$work/received" || fail "by an address: $?, $(said)"
arrived "by an address"

# Where there are several interfaces, of which one leads to the other end. What another one leads to has the same addresses at both, as the
# networks of containers have.
alone() { # how commands are run there
    "$@" ip link add alone type veth peer name nobody
    "$@" ip address add 172.17.0.1/16 dev alone
    "$@" ip link set alone up
    "$@" ip link set nobody up
}
alone
alone there
ip link add w0 type veth peer name w1 netns "$other"
ip address add 10.78.0.1/24 dev w0
ip link set w0 up
there ip address add 10.78.0.2/24 dev w1
there ip link set w1 up
sends
SEALWAY_CODE=$(code) receives || fail "several interfaces: $?, $(said)"
arrived "several interfaces"
