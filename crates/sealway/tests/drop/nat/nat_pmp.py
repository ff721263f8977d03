"""A router that opens ports by NAT-PMP (RFC 6886) and knows no PCP: nat_pmp.py ITS-ADDRESS-OUTSIDE. Says what it opens and closes."""
import socket
import struct
import subprocess
import sys

UNSUPPORTED_VERSION = 1
ADDRESS, TCP, ANSWER = 0, 2, 128


def nft(command):
    subprocess.run(["nft", command], check=True)


def answer(request, client):
    version, call = request[:2]
    if version != 0:
        return struct.pack("!BBHI", 0, ANSWER, UNSUPPORTED_VERSION, 0)
    if call == ADDRESS:
        return struct.pack("!BBHI4s", 0, ANSWER + ADDRESS, 0, 0, socket.inet_aton(sys.argv[1]))
    port, outside, lifetime = struct.unpack("!HHI", request[4:12])
    if lifetime:
        outside = outside or port
        nft(f"add rule ip opened ports iifname outside tcp dport {outside} dnat to {client[0]}:{port}")
        print("opened", outside, flush=True)
    else:
        outside = 0
        nft("flush chain ip opened ports")
        print("closed", port, flush=True)
    return struct.pack("!BBHIHHI", 0, ANSWER + TCP, 0, 0, port, outside, lifetime)


nft("add table ip opened; add chain ip opened ports { type nat hook prerouting priority -100; }")
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 5351))
print("listening", flush=True)
while True:
    request, client = server.recvfrom(1100)
    server.sendto(answer(request, client), client)
