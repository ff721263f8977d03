# Files to and from localsendd, which finds us and is found by multicast.
program=$1 peer=$2 work=$3
. "$(dirname "$0")/peer.sh"
mkdir "$work/files/文件夹"
head -c 3000000 /dev/urandom >"$work/files/文件夹/big 🎉.bin"
echo small >"$work/files/small.txt"

starts_peer
lists_peer() { "$program" localsend devices --json | grep -q '"alias":"peer"'; }
wait_for lists_peer

# It keeps the last part of a name alone.
"$program" send --localsend peer "$work/files" --json >"$work/sent" || fail "send: $(cat "$work/sent" "$work/log")"
grep -q '"event":"done","failed":0,"files":2' "$work/sent" || fail "$(cat "$work/sent")"
cmp "$work/files/文件夹/big 🎉.bin" "$work/theirs/big 🎉.bin"
cmp "$work/files/small.txt" "$work/theirs/small.txt"

# A PIN on its side, from the environment; and none where nobody can be asked.
control pin 4711 >/dev/null
code=0; "$program" send --localsend 10.77.0.2 "$work/files/small.txt" --json >"$work/sent" </dev/null || code=$?
[ "$code" = 9 ] || fail "without a PIN: $code, $(cat "$work/sent")"
SEALWAY_PIN=4711 "$program" send --localsend 10.77.0.2 "$work/files/small.txt" --json >"$work/sent" || fail "$(cat "$work/sent")"
cmp "$work/files/small.txt" "$work/theirs/small (1).txt" || fail "$(ls "$work/theirs")"

# It is remembered by its certificate, and found again by its name.
"$program" localsend remember 10.77.0.2 --as "my peer"
SEALWAY_PIN=4711 "$program" send --localsend "My Peer" "$work/files/small.txt" --json >"$work/sent" || fail "$(cat "$work/sent")"
grep -q '"remembered":"my peer"' "$work/sent" || fail "$(cat "$work/sent")"

# The other way, with a PIN and without.
for pin in "" 123456; do
    receives ${pin:+--pin=$pin}
    sends "$work/files/文件夹/big 🎉.bin" "$work/files/small.txt" ${pin:+--pin $pin} || fail "$(said)"
    wait "$receiving" || fail "receive: $?, $(said)"
    cmp "$work/files/文件夹/big 🎉.bin" "$work/ours/big 🎉.bin"
    cmp "$work/files/small.txt" "$work/ours/small.txt"
    rm "$work/ours/"*
done
grep -q '"authenticated":true' "$work/received" || fail "$(cat "$work/received")"
