"""A service with three HTTP endpoints, which `stores/http_store.py` puts under test. It imports nothing of the harness.

    python http_service.py HOST:PORT LOG [HOST:PORT of the node that keeps the values]

| POST | with | answers |
|---|---|---|
| /read | {"key"} | 200 {"value"} |
| /write | {"key", "value"} | 200 {} |
| /cas | {"key", "old", "value"} | 200 {}, or 409 {"value"}: what was there |

One node keeps the values, in a log that it syncs. The other nodes pass each request on. 502: they did not reach it, so
nothing happened; 503: the outcome is unknown.
"""

import json
import os
import sys
import threading
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LISTEN, LOG, *KEEPER = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
VALUES = {}
LOCK = threading.Lock()


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, answer = self.handed_on(body) if KEEPER else self.done(json.loads(body))
        except (OSError, HTTPException):
            status, answer = 503, {}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def done(self, asked):
        key = asked["key"]
        with LOCK:
            now = VALUES.get(key)
            if self.path == "/read":
                return 200, {"value": now}
            if self.path == "/cas" and now != asked["old"]:
                return 409, {"value": now}
            FILE.write(json.dumps([key, asked["value"]]) + "\n")
            FILE.flush()
            os.fsync(FILE.fileno())
            VALUES[key] = asked["value"]
            return 200, {}

    def handed_on(self, body):
        keeper = HTTPConnection(KEEPER[0], timeout=1)
        try:
            keeper.connect()
        except OSError:
            return 502, {}
        try:
            keeper.request("POST", self.path, body)
            answer = keeper.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            keeper.close()

    def log_message(self, *words):
        pass


LOG.touch()
whole = LOG.read_bytes().rpartition(b"\n")  # a last line without its end was never acknowledged
os.truncate(LOG, len(whole[0] + whole[1]))
VALUES.update(json.loads(line) for line in whole[0].splitlines())
FILE = LOG.open("a")
HOST, _, PORT = LISTEN.partition(":")
ThreadingHTTPServer((HOST, int(PORT)), Service).serve_forever()
