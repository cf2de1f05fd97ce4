"""nginx as a server that counts: a real one, with TLS, where there is one."""

import http.client
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest
from pathlib import Path

from sidebyside import process, servers
from sidebyside.servers import Certificate, Nginx, NginxProgram

PROGRAM = NginxProgram.find()


@unittest.skipUnless(PROGRAM and shutil.which("openssl"), "takes nginx and openssl")
class NginxCounts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        process.prepare()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.certificate = Certificate.make(Path(folder.name))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, content):
        cpu = min(os.sched_getaffinity(0))
        server = Nginx(PROGRAM, cpu, content, 30, self.folder, self.certificate)
        self.addCleanup(server.process.__exit__)
        self.address = server.url.removeprefix("https://").rstrip("/")
        return server

    def connect(self):
        # As a generator does: the certificate is nobody's.
        anybody = ssl.create_default_context()
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(self.address, context=anybody, timeout=10)
        connection.connect()
        self.addCleanup(connection.close)
        return connection

    def get(self, connection):
        connection.request("GET", "/")
        return connection.getresponse().read()

    def test_counts_are_those_of_the_clients_alone(self):
        server = self.start(content=1024)
        for requests in (3, 2):
            connection = self.connect()
            for _ in range(requests):
                self.assertEqual(self.get(connection), b"x" * 1024)
        requests, connections, usage = server.stop()
        self.assertEqual((requests, connections), (5, 2))
        # The worker's time is in its master's account.
        self.assertGreater(usage.cpu_s, 0)

    def test_nobody_is_no_request(self):
        self.assertEqual(self.start(content=0).stop()[:2], (0, 0))

    def test_without_a_certificate_it_is_asked_in_clear(self):
        cpu = min(os.sched_getaffinity(0))
        server = Nginx(PROGRAM, cpu, 7, 30, self.folder, None)
        self.addCleanup(server.process.__exit__)
        address = server.url.removeprefix("http://").rstrip("/")
        connection = http.client.HTTPConnection(address, timeout=10)
        self.addCleanup(connection.close)
        self.assertEqual(self.get(connection), b"x" * 7)
        self.assertEqual(server.stop()[:2], (1, 1))

    def test_an_empty_response_is_empty(self):
        self.start(content=0)
        self.assertEqual(self.get(self.connect()), b"")

    def test_all_speak_the_same_suite(self):
        self.start(content=0)
        sock = self.connect().sock
        self.assertEqual((sock.version(), sock.cipher()[0]), ("TLSv1.3", "TLS_AES_128_GCM_SHA256"))

    def test_no_session_can_be_resumed(self):
        self.start(content=0)
        # In TLS 1.3 the way to resume is a ticket, which comes after the handshake.
        request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        said = subprocess.run(
            ["openssl", "s_client", "-connect", self.address, "-ign_eof"],
            input=request, capture_output=True, text=True, timeout=10,
        ).stdout
        self.assertIn("HTTP/1.1 200", said)
        self.assertNotIn("New Session Ticket arrived", said)

    def test_its_certificate_has_an_rsa_key_of_2048_bits(self):
        said = subprocess.run(
            ["openssl", "x509", "-in", str(self.certificate.certificate), "-noout", "-text"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout
        self.assertRegex(said, r"Public-Key: \(2048 bit\)")

    def test_one_that_cannot_listen_is_a_failure_in_its_words(self):
        first = self.start(content=0)
        taken = int(self.address.rpartition(":")[2])
        whole, servers.free_ports = servers.free_ports, lambda: (taken, first.status)
        self.addCleanup(setattr, servers, "free_ports", whole)
        folder = self.folder / "second"
        folder.mkdir()
        with self.assertRaises(process.Failed):
            Nginx(PROGRAM, min(os.sched_getaffinity(0)), 0, 30, folder, self.certificate)

    def test_it_ends_with_its_process_and_leaves_nothing(self):
        self.start(content=0).stop()
        self.assertFalse(process.left_over())


class Ports(unittest.TestCase):
    def test_two_ports_are_two(self):
        one, other = servers.free_ports()
        self.assertNotEqual(one, other)


if __name__ == "__main__":
    unittest.main()
