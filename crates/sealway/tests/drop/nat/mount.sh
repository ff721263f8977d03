#!/usr/bin/env bash
# mount.sh PROGRAM FOLDER [OPTION]: a folder is read and changed through a mount whose ends met at a relay, while their direct path breaks. With
# an option of the mount that forbids one, they stay with the relay.
. "$(dirname "$0")/nats.sh"
program=$1 work=$2 option=${3:-}
export HOME=$work NO_COLOR=1

two_nats "" ""
"$program" relay --listen "$relay" 2> "$work/relay" &
wait_for grep -q . "$work/relay"

mkdir "$work/source" "$work/at"
head -c 20M /dev/urandom > "$work/source/large"
SEALWAY_CONFIG_DIR=$work/a at a "$program" share --relay "$relay" --json --writable "$work/source" > "$work/sent" 2>&1 &
sharer=$!
wait_for grep -q '"code"' "$work/sent"
# shellcheck disable=SC2086
SEALWAY_CODE=$(sed -n 's/.*"code":"\([^"]*\)".*/\1/p' "$work/sent") SEALWAY_CONFIG_DIR=$work/b \
    at b "$program" mount --relay "$relay" --json --writable $option "$work/at" > "$work/received" 2>&1 &
mounter=$!
wait_for grep -q '"ready"' "$work/received"

append() { head -c 10M /dev/urandom | tee -a "$work/expected" >> "$work/at/log"; }
if [ -z "$option" ]; then
    for broken in 1 2 3; do
        wait_for has_gone direct "$broken"
        append &
        appending=$!
        sleep "0.$broken"
        at b ss -KH dst 203.0.113.2 > /dev/null
        wait_for has_gone relay "$broken"
        wait "$appending" || shows "appending failed"
    done
else
    append
    # Far longer than a path takes to be found.
    sleep 2
fi
cmp "$work/source/large" "$work/at/large"
sync "$work/at/log"
cmp "$work/expected" "$work/source/log"
umount "$work/at"
wait "$mounter" || shows "mount: $?"
wait "$sharer" || shows "share: $?"
if grep -q '"lost"' "$work/sent" "$work/received"; then shows "the session was lost"; fi
if [ -n "$option" ] && [ "$(times direct sent)$(times direct received)" != 00 ]; then shows "it went directly"; fi
