# Two of ours, and curl, on a network without anybody else.
program=$1 curl=$2 work=$3
. "$(dirname "$0")/../../common/network.sh"

mkdir -p "$work/out" "$work/files/sub"
echo hello >"$work/files/sub/a"
head -c 2000000 /dev/urandom >"$work/files/big"
here() { SEALWAY_CONFIG_DIR=$work/here "$program" "$@"; }
away() { SEALWAY_CONFIG_DIR=$work/away there "$program" "$@"; }

# A standing receiver there; remembered devices alone are let in without a question.
SEALWAY_CONFIG_DIR=$work/away nsenter --target "$other" --net "$program" localsend --output "$work/out" --yes --alias standing --json >"$work/heard" 2>"$work/errors" &
standing=$!
wait_for grep -q listening "$work/heard"
found() { here localsend devices --json | grep -q '"alias":"standing"'; }
wait_for found
here localsend devices | grep -q '^standing  ' || fail "devices"
# Where no multicast comes through, by asking every address.
if command -v nft >/dev/null; then
    lost="ip daddr 224.0.0.0/4 drop; ip6 daddr ff12::/16 drop;"
    there nft "table inet deaf { chain in { type filter hook input priority 0; $lost }; chain out { type filter hook output priority 0; $lost }; }"
    here localsend devices --scan --json | grep -q '"alias":"standing"' || fail "it was not found by its address"
    there nft delete table inet deaf
else
    [ "${SEALWAY_REQUIRE_PEERS:-}" != 1 ] || fail "there is no nft (scripts/install-peers)"
fi
code=0; here send --localsend standing "$work/files" --json >"$work/sent" || code=$?
[ "$code" = 7 ] && grep -q 'declined' "$work/sent" || fail "a stranger: $code, $(cat "$work/sent")"

# Both remember each other.
SEALWAY_CONFIG_DIR=$work/here "$program" localsend --output "$work" --yes --alias sender --json >"$work/own" &
own=$!
wait_for grep -q listening "$work/own"
away localsend remember sender --as "the sender" >/dev/null
kill -INT "$own"; wait "$own" || fail "it ends in good order: $?"
here localsend remember standing >/dev/null

here send --localsend standing "$work/files" --json >"$work/sent" || fail "$(cat "$work/sent" "$work/heard" "$work/errors")"
diff -r "$work/files" "$work/out/files"
here send --localsend standing "$work/files" --json >"$work/sent" || fail "$(cat "$work/sent")"
grep -q '"bytes":0,' "$work/sent" || fail "what is there is not sent again: $(cat "$work/sent")"
here send --localsend 10.77.0.2 --text "hi there" --json >"$work/sent" || fail "$(cat "$work/sent")"
wait_for grep -q '"text":"hi there"' "$work/heard"
here send --localsend nobody "$work/files" 2>"$work/said" && fail "there is nobody" || grep -q 'no device called nobody' "$work/said"

# What is interrupted gives the slot back, and the same port takes the next.
truncate -s 20G "$work/huge"
# Progress of what was sent before is not this one's, and a signal that comes before its program waits for one is lost.
: >"$work/sent"
SEALWAY_CONFIG_DIR=$work/here "$program" send --localsend standing "$work/huge" --json >"$work/sent" &
sending=$!
wait_for grep -q '"event":"progress"' "$work/sent"
kill -INT "$sending"
code=0; wait "$sending" || code=$?
[ "$code" = 130 ] || fail "interrupted: $code, $(cat "$work/sent")"
here send --localsend standing "$work/files/big" --json >"$work/sent" || fail "$(cat "$work/sent")"
[ "$(ls "$work/out")" = "$(printf 'big\nfiles')" ] || fail "$(ls "$work/out")"

# An impostor in its place is refused.
kill -INT "$standing"; wait "$standing" || fail "it ends in good order: $?"
SEALWAY_CONFIG_DIR=$work/impostor nsenter --target "$other" --net "$program" localsend --output "$work/out" --yes --anyone --alias standing --json >"$work/heard" &
impostor=$!
wait_for grep -q listening "$work/heard"
code=0; here send --localsend standing "$work/files" --json >"$work/sent" || code=$?
[ "$code" = 9 ] && grep -q 'should have the certificate' "$work/sent" || fail "an impostor: $code, $(cat "$work/sent")"
here localsend forget standing
here localsend forget standing 2>/dev/null && fail "it was forgotten"

# curl, with a certificate and without.
[ -n "$curl" ] || exit 0
openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=LocalSend User" -keyout "$work/key" -out "$work/certificate" 2>/dev/null
url=https://10.77.0.2:53317/api/localsend/v2
for card in "" "--cert $work/certificate --key $work/key"; do
    rm -rf "$work/out/from-curl"
    ask() { "$curl" -sk --http1.1 --tlsv1.3 $card "$@"; }
    offer='{"info":{"alias":"curl","version":"2.1","fingerprint":"x","port":1,"protocol":"https"},"files":{"f":{"id":"f","fileName":"from-curl","size":6,"fileType":"text/plain"}}}'
    answer=$(ask -d "$offer" -H 'Content-Type: application/json' "$url/prepare-upload")
    session=$(expr "$answer" : '.*"sessionId":"\([0-9a-f]*\)"')
    token=$(expr "$answer" : '.*"f":"\([0-9a-f]*\)"')
    at="$url/upload?sessionId=$session&fileId=f&token=$token"
    if [ -n "$card" ]; then
        [ "$("$curl" -sk -o /dev/null -w '%{http_code}' -T - "$at" -X POST <"$work/files/sub/a")" = 403 ] || fail "without the certificate"
    fi
    [ "$(ask -o /dev/null -w '%{http_code}' -X POST -T - "$at" <"$work/files/sub/a")" = 200 ] || fail "curl: $answer"
    cmp "$work/files/sub/a" "$work/out/from-curl"
done
[ "$("$curl" -sk -o /dev/null -w '%{http_code}' "$url/../v1/info")" = 200 ] || fail "v1/info"
kill -INT "$impostor"; wait "$impostor" || fail "it ends in good order: $?"
