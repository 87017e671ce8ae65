"""A syslog server with TLS (RFC 5425): syslog_tls.py CERTIFICATE KEY FOLDER. Prints its port, and writes each message as a line of
FOLDER/got. A frame that is none ends its connection."""

import os
import re
import socket
import ssl
import sys
import threading

certificate, key, folder = sys.argv[1:]
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)


def receive(stream):
    try:
        frames = tls.wrap_socket(stream, server_side=True).makefile("rb")
    except ssl.SSLError:
        return
    while True:
        length = b""
        while (octet := frames.read(1)) not in (b" ", b""):
            length += octet
        if not length:
            return
        assert re.fullmatch(rb"[1-9][0-9]*", length), length
        message = frames.read(int(length))
        with open(os.path.join(folder, "got"), "ab") as got:
            got.write(message + b"\n")


while True:
    threading.Thread(target=receive, args=listener.accept()[:1], daemon=True).start()
