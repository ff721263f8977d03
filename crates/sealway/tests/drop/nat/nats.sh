# A relay in the open and two hosts behind NATs of their own. To be sourced by a script that runs in a network namespace of its own, which
# is the open network: the relay's address in it ends in 1.
. "$(dirname "${BASH_SOURCE[0]}")/../../common/namespaces.sh"

open=${open:-203.0.113}
relay=$open.1:26600

# A NAT called so between a network and the one that it hides: packets that nobody asked for are dropped, as boxes at home do.
# With `random` the ports that it gives have nothing to do with those behind it.
nat() { # name, its address outside, gateway outside, its address inside, how
    at "$1" sysctl -qw net.ipv4.ip_forward=1
    at "$1" nft -f - <<RULES
table ip nat {
    chain out { type nat hook postrouting priority 100; oifname "outside" masquerade $5; }
    chain in { type filter hook input priority 0; iifname "outside" ct state new drop; }
    chain through { type filter hook forward priority 0; iifname "outside" ct state new ct status & dnat == 0 drop; }
}
RULES
    at "$1" ip address add "$2" dev outside
    at "$1" ip link set outside up
    if [ -n "$3" ]; then at "$1" ip route add default via "$3"; fi
    at "$1" ip address add "$4" dev inside
    at "$1" ip link set inside up
}

# A NAT that keeps ports also leads those behind it back to each other by its address outside, each as the other would see it there
# (hairpinning, RFC 5382 REQ-8).
leads_back() { # name, its address outside
    at "$1" nft -f - <<RULES
table ip back {
    map taken { type inet_service : ipv4_addr; flags dynamic; size 1000; timeout 10m; }
    chain out { type filter hook postrouting priority 99; oifname "outside" meta l4proto tcp ct state new update @taken { tcp sport : ip saddr }; }
    chain back { type nat hook prerouting priority -100; iifname "inside" ip daddr $2 meta l4proto tcp dnat to tcp dport map @taken; }
    chain as_outside { type nat hook postrouting priority 100; oifname "inside" ct status dnat snat to $2; }
}
RULES
}

# A router between a network of IPv6 and one that it guards without changing addresses: what nobody inside asked for is dropped.
firewall() { # name, its address outside, gateway outside, its address inside
    at "$1" sysctl -qw net.ipv6.conf.all.forwarding=1
    at "$1" nft -f - <<'RULES'
table ip6 guard {
    chain through { type filter hook forward priority 0; iifname "outside" ct state new drop; }
}
RULES
    at "$1" ip address add "$2" dev outside nodad
    at "$1" ip link set outside up
    at "$1" ip route add default via "$3"
    at "$1" ip address add "$4" dev inside nodad
    at "$1" ip link set inside up
}

# A host behind a NAT or a firewall.
host() { # name, address, gateway
    case $2 in *:*) at "$1" ip address add "$2" dev eth0 nodad ;; *) at "$1" ip address add "$2" dev eth0 ;; esac
    at "$1" ip link set eth0 up
    at "$1" ip route add default via "$3"
}

ip link add open type bridge
ip address add $open.1/24 dev open
ip link set open up

# A cable from the open network.
open_to() { # namespace
    ip link add "to_$1" type veth peer name outside netns "${places[$1]}"
    ip link set "to_$1" master open
    ip link set "to_$1" up
}

# A NAT opens ports for those inside that ask: by PCP or UPnP (`miniupnpd` of Debian), or by NAT-PMP and nothing else.
opens_ports() { # name, its address outside, inside, pcp|upnp|nat-pmp
    local by_pcp=no by_upnp=no
    case $4 in
        pcp) by_pcp=yes ;;
        upnp) by_upnp=yes ;;
        nat-pmp)
            at "$1" python3 "$(dirname "$0")/nat_pmp.py" "$2" > "$work/$1.log" &
            wait_for grep -q listening "$work/$1.log"
            return
            ;;
    esac
    at "$1" nft -f - <<'RULES'
table inet miniupnpd {
    chain forward { type filter hook forward priority 0; jump miniupnpd; }
    chain miniupnpd { }
    chain prerouting { type nat hook prerouting priority -100; jump prerouting_miniupnpd; }
    chain postrouting { type nat hook postrouting priority 90; jump postrouting_miniupnpd; }
    chain prerouting_miniupnpd { }
    chain postrouting_miniupnpd { }
}
RULES
    cat > "$work/$1.conf" <<CONF
ext_ifname=outside
ext_ip=$2
listening_ip=$3
http_port=49152
enable_natpmp=$by_pcp
enable_upnp=$by_upnp
secure_mode=yes
upnp_table_name=miniupnpd
upnp_nat_table_name=miniupnpd
upnp_forward_chain=miniupnpd
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
uuid=7a1e1b1c-5b1a-4a63-9d2c-3f6d2f0b9c11
allow 1024-65535 0.0.0.0/0 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
CONF
    at "$1" miniupnpd -d -f "$work/$1.conf" -P "$work/$1.pid" > "$work/$1.log" 2>&1 &
    wait_for grep -q "listening on\|HTTP listening\|Listening for NAT-PMP" "$work/$1.log"
}

# Relay in the open, `a` and `b` behind NATs that keep ports or that do as is said.
two_nats() { # how that of a, how that of b
    place nat_a; place nat_b; place a; place b
    open_to nat_a; open_to nat_b
    ip link add inside netns "${places[nat_a]}" type veth peer name eth0 netns "${places[a]}"
    ip link add inside netns "${places[nat_b]}" type veth peer name eth0 netns "${places[b]}"
    nat nat_a $open.2/24 $open.1 10.1.0.1/24 "$1"
    nat nat_b $open.3/24 $open.1 10.2.0.1/24 "$2"
    host a 10.1.0.2/24 10.1.0.1
    host b 10.2.0.2/24 10.2.0.1
}

# A host sends no faster than this.
slow() { at "$1" tc qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms; }

# Sends what is named from one place to another through the relay; what both ends say is in $work/sent and $work/received.
begin_transfer() { # sender's place, receiver's place, sender's options and paths…
    local from=$1 to=$2
    shift 2
    rm -rf "$work/in"
    mkdir "$work/in"
    : > "$work/sent"; : > "$work/received"
    SEALWAY_CONFIG_DIR=$work/$from at "$from" "$program" send --relay "$relay" --json "$@" > "$work/sent" 2>&1 &
    sender=$!
    wait_for grep -q '"code"' "$work/sent"
    SEALWAY_CODE=$(sed -n 's/.*"code":"\([^"]*\)".*/\1/p' "$work/sent") SEALWAY_CONFIG_DIR=$work/$to \
        at "$to" "$program" receive --relay "$relay" --json --yes "$work/in" > "$work/received" 2>&1 &
    receiver=$!
}
end_transfer() {
    wait "$receiver" || shows "received: $?"
    wait "$sender" || shows "sent: $?"
}
shows() { grep -v '"progress"' "$work/sent" "$work/received" >&2; fail "$*"; }

# How often both ends have said that they go a way.
times() { grep -c "\"path\":\"$1\"" "$work/$2" || true; }
has_gone() { [ "$(times "$1" sent)" -ge "$2" ] && [ "$(times "$1" received)" -ge "$2" ]; }
