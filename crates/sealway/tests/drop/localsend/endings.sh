# Either end cancels, whoever of it and localsendd sends; and another device in the place of one that is remembered.
program=$1 peer=$2 work=$3
. "$(dirname "$0")/peer.sh"

# Far more than goes over within the moment that a cancel takes. localsendd reads all of what it sends before it offers it.
truncate -s 20G "$work/huge"
truncate -s 256M "$work/large"
echo small >"$work/small"
starts_peer

# Sends what takes long, as $sending.
begins() {
    : >"$work/sent"
    "$program" send --localsend peer "$work/huge" --json >"$work/sent" 2>"$work/errors" &
    sending=$!
    wait_for grep -q '"event":"progress"' "$work/sent"
}
nothing_there() { [ -z "$(ls -A "$work/theirs")" ]; }
nothing_here() { [ -z "$(ls -A "$work/ours")" ] || fail "$1: $(ls -A "$work/ours")"; }
says() { control status --json | grep -q "\"kind\": \"$1\""; }

# This end stops sending.
begins
kill -INT "$sending"
code=0; wait "$sending" || code=$?
[ "$code" = 130 ] || fail "stopped: $code, $(said)"
wait_for says recv_cancelled
wait_for nothing_there

# The other end stops receiving. What was under way is refused, or its connection ends.
begins
control cancel | grep -q recv || fail "there was nothing to cancel"
code=0; wait "$sending" || code=$?
case $code in 7 | 11) ;; *) fail "cancelled there: $code, $(said)" ;; esac
wait_for nothing_there

# Both are free again.
"$program" send --localsend peer "$work/small" --json >"$work/sent" || fail "afterwards: $?, $(said)"
cmp "$work/small" "$work/theirs/small"
rm "$work/theirs/small"

# The other end stops sending, and then this end receiving.
there tc qdisc add dev v1 root tbf rate 300mbit burst 256kb latency 50ms
for stops in there here; do
    receives
    sends "$work/large" &
    sending=$!
    wait_for grep -q '"event":"progress"' "$work/received"
    case $stops in
        there) control cancel | grep -q send || fail "there was nothing to cancel" ;;
        here) kill -INT "$receiving" ;;
    esac
    code=0; wait "$receiving" || code=$?
    case $stops in
        there) [ "$code" = 7 ] && grep -q 'the other device cancelled' "$work/received" || fail "cancelled there: $code, $(said)" ;;
        here) [ "$code" = 130 ] || fail "stopped: $code, $(said)" ;;
    esac
    wait "$sending" && fail "it was cancelled: $(said)"
    nothing_here "$stops"
done
says remote_cancelled || fail "it was not told: $(control status --json)"
there tc qdisc delete dev v1 root

# Another certificate under the name of one that is remembered: nothing goes there, and nothing is taken from there.
"$program" localsend remember peer >/dev/null
kill "$daemon"
wait "$daemon" || true
rm -r "$work/state"
starts_peer
code=0; "$program" send --localsend peer "$work/small" --json >"$work/sent" || code=$?
[ "$code" = 9 ] && grep -q 'peer should have the certificate' "$work/sent" || fail "another certificate: $code, $(said)"
nothing_there || fail "it was sent: $(said)"
receives
sends "$work/small" && fail "it was taken: $(said)"
grep -q 'peer should have the certificate' "$work/received" || fail "another certificate: $(said)"
kill -INT "$receiving"
wait "$receiving" || true
nothing_here "another certificate"
