"""Measures connections and downloads, in a cell as a skill or outside as a program.

As a program it reads its parameters from stdin and prints its timings, in nanoseconds.
"""
import socket
import ssl
import time


class Client:
    def execute(self, params):
        return getattr(self, params["act"])(params)

    def connect(self, params):
        """Connect and get one byte back, again and again; a lookup, if asked for, counts."""
        target, timings = Target(params), []
        for number in range(params["count"]):
            start = time.perf_counter_ns()
            with target.open() as stream:
                # A zero is no beginning of any protocol, so nobody waits for more.
                stream.sendall(b"\0")
                if stream.recv(1) != b"\0":
                    raise OSError("no echo")
                timings.append(time.perf_counter_ns() - start)
            if number + 1 in params.get("checkpoints", ()):
                self.checkpoint(params)
        return {"ns": timings}

    def checkpoint(self, params):
        """Waits until the benchmark has looked at the supervisor."""
        with socket.create_connection((params["host"], params["checkpoint"])) as stream:
            stream.sendall(b"\0")
            stream.recv(1)

    def raw(self, params):
        return self.download(params, params["bytes"].to_bytes(8, "big"), params["bytes"])

    def http(self, params):
        request = f"GET /{params['bytes']} HTTP/1.1\r\nHost: {params['host']}\r\nConnection: close\r\n\r\n"
        return self.download(params, request.encode(), params["bytes"])

    def tls(self, params):
        return self.download(params, self.request(params), params["bytes"])

    def tls_connect(self, params):
        """Connect, shake hands and get a small answer, again and again."""
        target, timings, buffer = Target(params), [], bytearray(1 << 16)
        for _ in range(params["count"]):
            start, got = time.perf_counter_ns(), 0
            with target.open() as stream:
                stream.sendall(self.request(params))
                while length := stream.recv_into(buffer):
                    got += length
            if got < params["bytes"]:
                raise OSError("no answer")
            timings.append(time.perf_counter_ns() - start)
        return {"ns": timings}

    def request(self, params):
        return f"GET /{params['file']} HTTP/1.1\r\nHost: {params['host']}\r\nConnection: close\r\n\r\n".encode()

    def download(self, params, request, least):
        target, buffer, got = Target(params), bytearray(1 << 20), 0
        start = time.perf_counter_ns()
        with target.open() as stream:
            stream.sendall(request)
            while length := stream.recv_into(buffer):
                got += length
        elapsed = time.perf_counter_ns() - start
        # A head is a few hundred bytes, and chunks have a line each; less than what was asked for is a failure.
        if not least <= got < least + 4096 + least // 100:
            raise OSError(f"{got} bytes instead of {least}")
        return {"ns": [elapsed]}


class Target:
    def __init__(self, params):
        self.host, self.port = params["host"], params["port"]
        self.proxy, self.lookup = params.get("proxy"), params.get("lookup")
        self.address = socket.gethostbyname(self.host)
        self.context = None
        if params.get("tls"):
            # Whose certificate it is differs by the path; checking it would cost the same on all.
            self.context = ssl.create_default_context()
            self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def open(self):
        stream = socket.socket()
        if self.proxy:
            stream.connect(("127.0.0.1", self.proxy))
            to = f"{self.address}:{self.port}"
            stream.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                more = stream.recv(1)
                if not more:
                    raise OSError("the proxy left")
                head += more
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise OSError(f"the proxy said {head!r}")
        else:
            address = socket.gethostbyname(self.host) if self.lookup else self.address
            stream.connect((address, self.port))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(stream, server_hostname=self.host) if self.context else stream


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(Client().execute(json.load(sys.stdin))))
