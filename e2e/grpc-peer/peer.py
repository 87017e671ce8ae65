"""Asks both daemons with Google's gRPC for Python, which knows nothing of Sluice but its .proto files.

peer.py PROTO-FOLDER CONTROL-PLANE-SOCKET USER-PLANE-SOCKET; prints what it heard as one JSON object.
"""

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc

SECONDS = 10


def modules(protos):
    """The messages of the .proto files, by Debian's protoc."""
    files = [str(file) for file in Path(protos).rglob("*.proto")]
    names = ["sluice.v1.common", "sluice.v1.control_plane", "sluice.mi.v1.mi"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", "-I", protos, "--python_out", folder, *files], check=True)
        sys.path.insert(0, folder)
        return [importlib.import_module(name + "_pb2") for name in names]


def asker(channel, service):
    """Calls by name."""

    def ask(method, request, answer, kind=channel.unary_unary):
        call = kind(service + method, type(request).SerializeToString, answer.FromString)
        return call(request, timeout=SECONDS)

    return ask


def main(protos, control_plane, user_plane):
    common, cp, mi = modules(protos)
    with grpc.insecure_channel("unix:" + control_plane) as channel:
        ask = asker(channel, "/sluice.v1.ControlPlane/")
        pages = ask("ListSessions", cp.ListSessionsRequest(), cp.ListSessionsResponse, channel.unary_stream)
        sessions = [session for page in pages for session in page.sessions]
        planes = ask("ListUserPlanes", cp.ListUserPlanesRequest(), cp.ListUserPlanesResponse)
        counters = ask("ListDrops", common.ListDropsRequest(), common.ListDropsResponse)
        ledger = ask("CheckLedger", common.CheckLedgerRequest(), common.CheckLedgerResponse)
        try:
            ask("GetSession", cp.GetSessionRequest(id="1"), cp.GetSessionResponse)
            refused = None
        except grpc.RpcError as error:
            refused = error.code().name
    heard = {
        "sessions": [
            [s.id, cp.SessionState.Name(s.state), s.user, s.ipv4, s.pppoe_session_id, s.c_tag]
            for s in sessions
        ],
        "user_planes": [[p.node_id, cp.UserPlaneState.Name(p.state)] for p in planes.user_planes],
        "control_plane_drops": len(counters.drops),
        "accounts": len(ledger.ledger.accounts),
        "refused": refused,
    }
    with grpc.insecure_channel("unix:" + user_plane) as channel:
        ask = asker(channel, "/sluice.mi.v1.Mi/")
        ports = ask("ListPorts", mi.ListPortsRequest(), mi.ListPortsResponse)
        counters = ask("ListDrops", common.ListDropsRequest(), common.ListDropsResponse)
    heard["ports"] = [[port.name, port.role, port.rx_packets > 0] for port in ports.ports]
    heard["user_plane_drops"] = len(counters.drops)
    print(json.dumps(heard))


main(*sys.argv[1:])
