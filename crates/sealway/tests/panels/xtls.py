"""Calls the management API by xtlsapi: a command a line from standard input, an answer in JSON a line.

  python xtls.py PORT
"""

import json
import sys

from xtlsapi import XrayClient
from xtlsapi.exceptions import XRayException

api = XrayClient("127.0.0.1", int(sys.argv[1]))


def add(protocol, tag, email, uuid):
    return api.add_client(tag, uuid, email, protocol=protocol)


def read(email):
    counted = {"up": api.get_client_upload_traffic(email), "down": api.get_client_download_traffic(email)}
    return {**counted, "online": api.stats_online(email)}


def users(_tag):
    return None  # It does not ask.


commands = {"add": add, "read": read, "remove": api.remove_client, "users": users}
for line in sys.stdin:
    command, *words = line.split()
    try:
        answer = commands[command](*words)
    except XRayException as error:
        answer = {"error": type(error).__name__}
    print(json.dumps(answer), flush=True)
