"""Calls gNMI with Google's gRPC for Python, which knows nothing of Sluice but the .proto files.

peer.py PROTO-FOLDER ADDRESS CERTIFICATE; reads a JSON list of calls and prints a JSON list of what came of each. A call has

  call      capabilities, get, set, subscribe, or silent: a set whose request never comes
  as        metadata: {"authorization": "Bearer TOKEN"} or {"username": NAME, "password": PASSWORD}
  request   the request as protobuf writes it in JSON, with paths as texts such as /state/ports[name=core0], and values as {"json": VALUE}
  seconds   of a set: how long its answer is waited for
  until     of a subscribe: how many messages are read
  then      of a subscribe: calls that are made after the sync, while it goes on
  polls     of a subscribe: how often it polls
"""

import base64
import importlib
import json
import re
import subprocess
import sys
import tempfile
import threading

import grpc
from google.protobuf import json_format

SECONDS = 20
STEP = re.compile(r"/([^/\[]+)((?:\[[^\]]*\])*)")
PATHS = {"path", "delete", "prefix"}


def modules(protos):
    """The messages, by Debian's protoc."""
    files = ["gnmi/gnmi.proto", "gnmi/gnmi_ext.proto"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", "-I", protos, "--python_out", folder, *files], check=True, cwd=protos)
        sys.path.insert(0, folder)
        return importlib.import_module("gnmi.gnmi_pb2")


def path(text):
    """A path of its text."""
    steps = STEP.findall(text)
    keys = [re.findall(r"\[([^=\]]+)=([^\]]*)\]", keys) for _, keys in steps]
    return {"elem": [{"name": name, "key": dict(own)} for (name, _), own in zip(steps, keys)]}


def with_paths(value, is_path=False):
    """A request of one whose paths are texts."""
    if isinstance(value, dict) and set(value) == {"json"}:
        return {"json_ietf_val": base64.b64encode(json.dumps(value["json"]).encode()).decode()}
    if isinstance(value, str) and is_path:
        return path(value)
    if isinstance(value, list):
        return [with_paths(one, is_path) for one in value]
    if isinstance(value, dict):
        return {name: with_paths(one, name in PATHS) for name, one in value.items()}
    return value


def text(sent):
    """The text of a path."""
    keys = lambda e: "".join(f"[{key}={value}]" for key, value in sorted(e.key.items()))
    return "".join("/" + e.name + keys(e) for e in sent.elem)


def value(sent):
    """The value of an update."""
    return json.loads(getattr(sent, sent.WhichOneof("value")))


def told(notification):
    """What a notification says: values by their paths, and deleted paths."""
    begin = text(notification.prefix)
    return {
        "update": {begin + text(u.path): value(u.val) for u in notification.update},
        "delete": [begin + text(gone) for gone in notification.delete],
        "target": notification.prefix.target,
    }


class Client:
    def __init__(self, gnmi, channel):
        self.gnmi, self.channel = gnmi, channel

    def method(self, name, request, answer, kind="unary_unary"):
        make = getattr(self.channel, kind)
        return make("/gnmi.gNMI/" + name, request.SerializeToString, answer.FromString)

    def call(self, order):
        """What comes of a call."""
        metadata = [(name, value) for name, value in order.get("as", {}).items()]
        ways = {"capabilities": self.capabilities, "get": self.get, "set": self.set, "subscribe": self.subscribe,
                "silent": self.silent}
        try:
            return ways[order["call"]](order, metadata)
        except grpc.RpcError as error:
            return {"error": error.code().name, "detail": error.details()}

    def request(self, kind, order):
        return json_format.ParseDict(with_paths(order.get("request", {})), kind())

    def capabilities(self, order, metadata):
        gnmi = self.gnmi
        ask = self.method("Capabilities", gnmi.CapabilityRequest, gnmi.CapabilityResponse)
        return json_format.MessageToDict(ask(self.request(gnmi.CapabilityRequest, order), SECONDS, metadata))

    def get(self, order, metadata):
        gnmi = self.gnmi
        ask = self.method("Get", gnmi.GetRequest, gnmi.GetResponse)
        answer = ask(self.request(gnmi.GetRequest, order), SECONDS, metadata)
        return [told(notification) for notification in answer.notification]

    def set(self, order, metadata):
        gnmi = self.gnmi
        ask = self.method("Set", gnmi.SetRequest, gnmi.SetResponse)
        answer = ask(self.request(gnmi.SetRequest, order), order.get("seconds", SECONDS), metadata)
        return [[gnmi.UpdateResult.Operation.Name(r.op), text(r.path)] for r in answer.response]

    def silent(self, order, metadata):
        gnmi, answered = self.gnmi, threading.Event()
        ask = self.method("Set", gnmi.SetRequest, gnmi.SetResponse, "stream_unary")
        try:
            ask(iter(answered.wait, True), SECONDS, metadata)
        finally:
            answered.set()

    def subscribe(self, order, metadata):
        gnmi = self.gnmi
        ask = self.method("Subscribe", gnmi.SubscribeRequest, gnmi.SubscribeResponse, "stream_stream")
        first = gnmi.SubscribeRequest(subscribe=self.request(gnmi.SubscriptionList, order))
        polls = [gnmi.SubscribeRequest(poll=gnmi.Poll())] * order.get("polls", 0)
        answers = ask(iter([first, *polls]), SECONDS, metadata)
        heard = []
        for answer in answers:
            if answer.sync_response:
                heard.append("sync")
                heard.extend({"then": self.call(then)} for then in order.get("then", []))
            else:
                heard.append(told(answer.update))
            if len(heard) >= order.get("until", 10_000):
                answers.cancel()
                break
        return heard


def main(protos, address, certificate):
    gnmi = modules(protos)
    with open(certificate, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    with grpc.secure_channel(address, credentials) as channel:
        client = Client(gnmi, channel)
        print(json.dumps([client.call(order) for order in json.load(sys.stdin)]))


main(*sys.argv[1:])
