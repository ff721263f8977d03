#!/usr/bin/env bash
# breaks.sh PROGRAM FOLDER TIMES RATE MIB: the direct path is broken so often under load, and what arrives is what was sent.
. "$(dirname "$0")/nats.sh"
program=$1 work=$2 times=$3 rate=$4 mib=$5
export HOME=$work NO_COLOR=1

two_nats "" ""
"$program" relay --listen 203.0.113.1:26600 2> "$work/relay" &
wait_for grep -q . "$work/relay"
slow a "$rate"

mkdir "$work/out"
head -c "$mib"M /dev/urandom > "$work/out/large"
for number in $(seq 400); do head -c "$((number * 251))" /dev/urandom > "$work/out/$number"; done

# The connections between the two ends themselves end at one of them, which is told nothing.
break_by_reset() { at b ss -KH dst 203.0.113.2 > /dev/null; }
# Nothing gets through between the two NATs for a while.
break_by_silence() {
    nft -f - <<RULES
table bridge cut {
    chain cut { type filter hook forward priority 0; ip saddr 203.0.113.2 ip daddr 203.0.113.3 drop; }
}
RULES
}
mend() { nft delete table bridge cut; }

# All is hashed: then a group that was under way has to come again whole, which is more that can go wrong.
begin_transfer a b --hash all "$work/out"
for broken in $(seq "$times"); do
    wait_for has_gone direct "$broken"
    sleep "0.$((RANDOM % 9))"
    if [ "$((broken % 4))" = 0 ]; then
        break_by_silence
        wait_for has_gone relay "$broken"
        mend
    else
        break_by_reset
        wait_for has_gone relay "$broken"
    fi
done
wait_for has_gone direct "$((times + 1))"
end_transfer
diff -r "$work/out" "$work/in/out" >&2 || fail "what came is not what was sent"
[ "$(times relay sent)" = "$times" ] || shows "broken $times times"
