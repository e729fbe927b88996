"""TLS on loopback: a certificate that is trusted, and one that is not."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.http_client import HttpClient

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl program")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(3)
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b'{"ok":1}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  (a refused handshake is expected)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}", cert
    server.shutdown()
    server.server_close()


def test_a_trusted_certificate(secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    url, cert = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    wire = HttpClient()
    assert wire.send("GET", url, service="server").json() == {"ok": 1}
    began = time.monotonic()
    with pytest.raises(AgentTimeout):
        wire.send("GET", url + "/slow", service="server", deadline=time.monotonic() + 0.5)
    assert time.monotonic() - began < 1
    wire.close()


def test_a_certificate_that_is_not_trusted_is_asked_once(secure: tuple[str, Path]) -> None:
    wire = HttpClient()
    with pytest.raises(AgentFailed, match=r"its TLS certificate is not trusted: .*self-signed") as caught:
        wire.send("GET", secure[0], service="server")
    assert len(caught.value.answer.wire_attempts) == 1
    wire.close()
