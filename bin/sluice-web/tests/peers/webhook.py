"""A webhook: webhook.py CERTIFICATE KEY SECRET FOLDER. Prints its port. Writes the number of each event that came with a right signature
as a line of FOLDER/got. Answers 500 while FOLDER/refuse is there, and nothing while FOLDER/hang is there."""

import hashlib
import hmac
import http.server
import json
import os
import ssl
import sys
import time

certificate, key, secret, folder = sys.argv[1:]
secret = open(secret, "rb").read().strip()


def there(name):
    return os.path.exists(os.path.join(folder, name))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed, signature = self.headers["Sluice-Signature"].split(",")
        at = signed.removeprefix("t=")
        right = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature, "v1=" + right) or abs(time.time() - int(at)) > 60:
            return self.answer(403)
        if there("refuse"):
            return self.answer(500)
        while there("hang"):
            time.sleep(0.1)
        with open(os.path.join(folder, "got"), "a") as got:
            for event in json.loads(body)["events"]:
                got.write(f"{event['number']}\n")
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
server.socket = tls.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
