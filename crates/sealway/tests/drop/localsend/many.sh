# A thousand files in folders to localsendd, and from there.
program=$1 peer=$2 work=$3
. "$(dirname "$0")/peer.sh"

# It takes an empty file for one that did not come.
"$peer/python3" - "$work/files" <<'MAKE'
import os, pathlib, sys
for at in range(1000):
    folder = pathlib.Path(sys.argv[1], f"第{at % 30}天 👩‍👩‍👧")
    folder.mkdir(exist_ok=True)
    (folder / f"图片 {at}.jpg").write_bytes(os.urandom(at * 7 + 1))
MAKE
find "$work/files" -type f -exec touch -d @1577934245.678 {} +
# It knows no folders: it keeps the last part of a name, and sends it.
mkdir "$work/flat"
find "$work/files" -type f -exec cp -t "$work/flat" {} +

starts_peer
"$program" send --localsend peer "$work/files" --json >"$work/sent" || fail "send: $?, $(said)"
grep -q '"event":"done","failed":0,"files":1000' "$work/sent" || fail "$(said)"
diff -r "$work/flat" "$work/theirs" || fail "what came there is not what was sent"
[ "$(stat -c %Y "$work/theirs/"* | sort -u)" = 1577934245 ] || fail "files have other times there"

receives
sends "$work/flat/"* || fail "$(said)"
wait "$receiving" || fail "receive: $?, $(said)"
grep -q '"event":"done","failed":0,"files":1000' "$work/received" || fail "$(said)"
diff -r "$work/flat" "$work/ours" || fail "what came here is not what was sent"
