#!/usr/bin/env bash
# ways.sh PROGRAM FOLDER CASE: two ends meet at a relay, and then find each other directly or not, by what lies between them.
program=$1 work=$2 case=$3
# miniupnpd opens nothing to an address that is not of the open network.
case $case in opened-*) open=11.0.0 ;; esac
. "$(dirname "$0")/nats.sh"
export HOME=$work NO_COLOR=1

sender_says=
case $case in
    # Each box at home gives a port the number that it has inside, if that is free.
    keeping) expected=direct; two_nats "" "" ;;
    # One end keeps its addresses to itself.
    unwanted) expected=relay; two_nats "" ""; sender_says=--no-direct ;;
    # The port that the relay sees is not the one that the other end would see.
    random) expected=relay; two_nats "random,fully-random" "random,fully-random" ;;
    half-random) expected=relay; two_nats "" "random,fully-random" ;;
    # Ports are random, and one of the boxes opens one for who asks.
    opened-*)
        expected=direct
        two_nats "random,fully-random" "random,fully-random"
        opens_ports nat_b "$open.3" inside "${case#opened-}"
        ;;
    # The box at home is behind one of its provider.
    nested)
        expected=direct
        place nat_a; place nat_b; place box; place a; place b
        open_to nat_a; open_to nat_b
        ip link add inside netns "${places[nat_a]}" type veth peer name outside netns "${places[box]}"
        ip link add inside netns "${places[box]}" type veth peer name eth0 netns "${places[a]}"
        ip link add inside netns "${places[nat_b]}" type veth peer name eth0 netns "${places[b]}"
        nat nat_a $open.2/24 $open.1 100.64.0.1/24 ""
        nat box 100.64.0.2/24 100.64.0.1 10.1.0.1/24 ""
        nat nat_b $open.3/24 $open.1 10.2.0.1/24 ""
        host a 10.1.0.2/24 10.1.0.1
        host b 10.2.0.2/24 10.2.0.1
        ;;
    # Both are at home, and their box does not lead them back to each other by its address outside.
    one-home)
        expected=direct
        place nat_a; place a; place b
        open_to nat_a
        at nat_a ip link add inside type bridge
        for one in a b; do
            ip link add "to_$one" netns "${places[nat_a]}" type veth peer name eth0 netns "${places[$one]}"
            at nat_a ip link set "to_$one" master inside
            at nat_a ip link set "to_$one" up
        done
        nat nat_a $open.2/24 $open.1 10.1.0.1/24 ""
        host a 10.1.0.2/24 10.1.0.1
        host b 10.1.0.3/24 10.1.0.1
        ;;
    # Two homes of one provider, whose box does not lead them back to each other, or does.
    no-way-back | led-back)
        case $case in led-back) expected=direct ;; *) expected=relay ;; esac
        place nat; place box_a; place box_b; place a; place b
        open_to nat
        at nat ip link add inside type bridge
        for one in a b; do
            ip link add "to_$one" netns "${places[nat]}" type veth peer name outside netns "${places[box_$one]}"
            at nat ip link set "to_$one" master inside
            at nat ip link set "to_$one" up
            ip link add inside netns "${places[box_$one]}" type veth peer name eth0 netns "${places[$one]}"
        done
        nat nat $open.2/24 $open.1 100.64.0.1/24 ""
        if [ "$case" = led-back ]; then leads_back nat $open.2; fi
        nat box_a 100.64.0.2/24 100.64.0.1 10.1.0.1/24 ""
        nat box_b 100.64.0.3/24 100.64.0.1 10.2.0.1/24 ""
        host a 10.1.0.2/24 10.1.0.1
        host b 10.2.0.2/24 10.2.0.1
        ;;
    # IPv6 alone: nobody's addresses are changed, and each end is guarded.
    firewalls)
        expected=direct
        relay='[2001:db8::1]:26600'
        place wall_a; place wall_b; place a; place b
        # Skip duplicate address detection: it takes a second or two.
        for one in wall_a wall_b a b; do
            at "$one" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
        done
        ip address add 2001:db8::1/64 dev open nodad
        for one in a b; do
            open_to "wall_$one"
            ip link add inside netns "${places[wall_$one]}" type veth peer name eth0 netns "${places[$one]}"
        done
        firewall wall_a 2001:db8::2/64 2001:db8::1 2001:db8:a::1/64
        firewall wall_b 2001:db8::3/64 2001:db8::1 2001:db8:b::1/64
        sysctl -qw net.ipv6.conf.all.forwarding=1
        ip route add 2001:db8:a::/64 via 2001:db8::2
        ip route add 2001:db8:b::/64 via 2001:db8::3
        host a 2001:db8:a::2/64 2001:db8:a::1
        host b 2001:db8:b::2/64 2001:db8:b::1
        ;;
    *) fail "no case is called $case" ;;
esac

"$program" relay --listen "$relay" 2> "$work/relay" &
wait_for grep -q . "$work/relay"
slow a 40mbit
head -c 20M /dev/urandom > "$work/file"
# shellcheck disable=SC2086
begin_transfer a b $sender_says "$work/file"
if [ -n "${TIMES:-}" ]; then
    # Milliseconds from the session to the direct path, for scripts/measure-direct.
    while ! grep -q '"connected"' "$work/sent"; do sleep 0.01; done
    began=$(date +%s%N)
    while ! has_gone direct 1; do sleep 0.01; done
    echo "$((($(date +%s%N) - began) / 1000000))" > "$work/took"
fi
end_transfer
cmp "$work/file" "$work/in/file"
# What was opened is closed again.
case $case in
    opened-pcp) wait_for grep -q "mapping removed" "$work/nat_b.log" ;;
    opened-upnp) wait_for grep -q "removing redirect rule" "$work/nat_b.log" ;;
    opened-nat-pmp) wait_for grep -q closed "$work/nat_b.log" ;;
esac
case $expected in
    direct) has_gone direct 1 || shows "it did not go directly" ;;
    relay) [ "$(times direct sent)$(times direct received)" = 00 ] || shows "it went directly" ;;
esac
