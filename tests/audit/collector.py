"""An OTLP/HTTP receiver: collector.py FOLDER ANSWERS http|https. Gives the answers in order, then ends.

Each body is parsed into the protocol's own message, by its published Python package. In the JSON encoding
of OTLP ids are hexadecimal; protobuf's own JSON has base64 there, so they are converted first."""
import base64
import http.server
import json
import os
import pathlib
import re
import ssl
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

folder, answers, scheme = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
answers = [int(answer) for answer in answers]
problems = []


def ids(value):
    """Hexadecimal ids to base64; anything else that is called an id is an error."""
    for key, length in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
        if key in value:
            assert re.fullmatch(f"[0-9a-f]{{{length}}}", value[key]), f"{key} {value[key]}"
            assert set(value[key]) != {"0"}, f"{key} is zero"
            value[key] = base64.b64encode(bytes.fromhex(value[key])).decode()


def strings_for_64_bits(span):
    for key in ("startTimeUnixNano", "endTimeUnixNano"):
        assert isinstance(span[key], str), key
    assert isinstance(span["kind"], int) and isinstance(span["status"]["code"], int)
    for event in span["events"]:
        assert isinstance(event["timeUnixNano"], str)


def understand(body):
    converted = json.loads(body)
    for resource in converted["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                strings_for_64_bits(span)
                ids(span)
    message = json_format.Parse(json.dumps(converted), ExportTraceServiceRequest(), ignore_unknown_fields=False)
    found = []
    for resource in message.resource_spans:
        names = {a.key: a.value.string_value for a in resource.resource.attributes}
        assert names["service.name"] == "skillcell", names
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8
                assert span.end_time_unix_nano >= span.start_time_unix_nano > 0
                found.append({
                    "trace": span.trace_id.hex(),
                    "name": span.name,
                    "nanos": span.end_time_unix_nano - span.start_time_unix_nano,
                    "events": [event.name for event in span.events],
                })
    known = {(s.trace_id, s.span_id) for r in message.resource_spans for c in r.scope_spans for s in c.spans}
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                parent = (span.trace_id, span.parent_span_id)
                assert not span.parent_span_id or parent in known, span.name
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = {
            "path": self.path,
            "content_type": self.headers["Content-Type"],
            "api_key": self.headers.get("X-Api-Key"),
            "body": json.loads(body),
        }
        try:
            request["spans"] = understand(body)
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        with (folder / "requests.jsonl").open("a") as out:
            out.write(json.dumps(request) + "\n")
        answer = answers.pop(0)
        reply = b"{}"
        self.send_response(answer)
        if answer == 307:
            self.send_header("Location", "http://127.0.0.1:1/v1/traces")
        if answer == 503:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


class Server(http.server.HTTPServer):
    def handle_error(self, request, address):
        pass  # a client that does not trust the certificate


server = Server(("127.0.0.1", 0), Handler)
server.timeout = 30
if scheme == "https":
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
(folder / "port.new").write_text(str(server.server_address[1]))
os.rename(folder / "port.new", folder / "port")
tries = 0
while answers and tries < 10:
    server.handle_request()
    tries += 1
if problems or answers:
    sys.exit("\n".join(problems) or "not all requests came")
