"""The servers under the generators, one fresh for each run, which count the requests they get.

In clear it is `weir origin`. With TLS it is nginx, because weir terminates none; its counts come
from its own stub_status page, on a port of its own, in clear. Sessions can be resumed by nobody there:
nginx is told to keep no cache and to issue no tickets, so what a tool would do is not a question.
(`ssl_session_tickets off` alone leaves TLS 1.3 with tickets that stand for a place in the cache.)
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .process import Failed, Process, Usage

# How long a server may take to be there.
START_S = 10
# Modules whose folder for temporary files would otherwise be the system's, the flag that an nginx
# without them was built with, and their directive.
TEMPORARY = (
    ("", "client_body_temp_path"),
    ("--without-http_proxy_module", "proxy_temp_path"),
    ("--without-http_fastcgi_module", "fastcgi_temp_path"),
    ("--without-http_uwsgi_module", "uwsgi_temp_path"),
    ("--without-http_scgi_module", "scgi_temp_path"),
)
# One suite and one group, which every tool offers: the tool differs, not what it negotiated.
CONFIGURATION = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr notice;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    default_type text/plain;
    keepalive_requests 1000000000;
    {temporary}
    server {{
        listen 127.0.0.1:{port}{ssl} backlog=4096;
        {tls}
        location / {{ return 200 "{content}"; }}
    }}
    server {{
        listen 127.0.0.1:{status};
        location / {{ stub_status; }}
    }}
}}
"""
# What a listener with TLS has besides.
TLS = """ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_ecdh_curve X25519;
        ssl_session_tickets off;
        ssl_conf_command NumTickets 0;
        ssl_session_cache off;
"""


class Origin:
    """`weir origin` on one CPU and a port that the kernel chose."""

    def __init__(self, weir: Path, cpu: int, content: int, limit_s: float, folder: Path):
        # --duration: it ends by itself even if this program is killed.
        argv = [str(weir), "origin", "--listen", "127.0.0.1:0", "--size", str(content)]
        argv += ["--cpus", str(cpu), "--duration", f"{limit_s:.0f}"]
        self.process = Process(argv, folder)
        try:
            self.url = self.process.expect(r"serving on (http://\S+)", START_S).group(1)
        except BaseException:
            self.process.__exit__()
            raise

    def stop(self) -> tuple[int, int, Usage]:
        """(requests, connections, usage), counted by the server."""
        usage = self.process.stop()
        said = self.process.out.read_text()
        counts = re.search(r"(\d+) requests on (\d+) connections", said)
        if counts is None:
            raise Failed(f"the origin server printed no counts: {self.process.last_words()}")
        return int(counts.group(1)), int(counts.group(2)), usage


@dataclass(frozen=True)
class Certificate:
    """RSA-2048, signed by itself, for loopback."""

    certificate: Path
    key: Path

    @staticmethod
    def make(folder: Path) -> Certificate:
        """By the openssl command."""
        made = Certificate(folder / "certificate.pem", folder / "key.pem")
        argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        argv += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        argv += ["-keyout", str(made.key), "-out", str(made.certificate)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)
        if done.returncode != 0:
            raise Failed(f"openssl made no certificate: {done.stderr.strip()[-200:]}")
        return made


@dataclass(frozen=True)
class NginxProgram:
    """An nginx that is there, and the folders it must be told."""

    program: Path
    temporary: tuple[str, ...]

    @staticmethod
    def find() -> NginxProgram | None:
        """On PATH, or where Debian keeps it. None also when it lacks a module that is needed."""
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        program = shutil.which("nginx", path=path)
        if program is None:
            return None
        built = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=10).stderr
        if not all(f"--with-http_{name}_module" in built for name in ("ssl", "stub_status")):
            return None
        folders = (name for flag, name in TEMPORARY if not flag or flag not in built)
        return NginxProgram(Path(program), tuple(folders))


class Nginx:
    """nginx with one worker on one CPU and a response of that many bytes: by TLS 1.3 with a
    certificate, else in clear."""

    def __init__(self, nginx: NginxProgram, cpu: int, content: int, limit_s: float, folder: Path,
                 certificate: Certificate | None):
        port, self.status = free_ports()
        tls = ""
        if certificate is not None:
            tls = TLS.format(certificate=certificate.certificate, key=certificate.key)
        text = CONFIGURATION.format(
            temporary=" ".join(f"{name} {name};" for name in nginx.temporary),
            port=port,
            ssl=" ssl" if certificate else "",
            tls=tls,
            status=self.status,
            content="x" * content,
        )
        configuration = folder / "nginx.conf"
        configuration.write_text(text)
        # timeout: it ends by itself even if this program is killed. It hands a SIGTERM on.
        argv = ["timeout", f"{limit_s:.0f}", "taskset", "-c", str(cpu), str(nginx.program)]
        argv += ["-e", "stderr", "-p", str(folder), "-c", str(configuration)]
        self.process = Process(argv, folder)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{port}/"
        try:
            # Its master says so when it listens already.
            self.process.expect(r"start worker process \d+", START_S)
            self.before = self._counts()
        except BaseException:
            self.process.__exit__()
            raise

    def stop(self) -> tuple[int, int, Usage]:
        """(requests, connections, usage), counted by the server, without the looks at it."""
        now = self._counts()
        # A look sees itself and all before it.
        requests, connections = (n - b - 1 for n, b in zip(now, self.before, strict=True))
        return requests, connections, self.process.stop()

    def _counts(self) -> tuple[int, int]:
        connection = http.client.HTTPConnection("127.0.0.1", self.status, timeout=START_S)
        try:
            connection.request("GET", "/", headers={"Connection": "close"})
            said = connection.getresponse().read().decode()
        except OSError as error:
            raise Failed(f"nginx does not say what it counted: {error}") from error
        finally:
            connection.close()
        accepted, _, requests = map(int, said.split("requests\n")[1].split()[:3])
        return requests, accepted


def free_ports() -> tuple[int, int]:
    """Two that nobody listens on; nginx cannot say which one the kernel would have chosen."""
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
