"""Command lines: what every row asks, and that all of it is filled in."""

import string
import unittest
from pathlib import Path

from sidebyside import tools
from sidebyside.loads import LOADS

ALL = (tools.WEIR, *tools.OTHERS)
VALUES = {
    "cpu": 0,
    "connections": 50,
    "seconds": 7,
    "url": "http://127.0.0.1:1/",
    "address": "127.0.0.1:1",
    "requests": 1000,
    "rate": 2000,
    "rate_each": 40,
}


def found(tool, **more):
    return tools.Found(tool, Path("/x") / tool.name, "1", tool.name, **more)


class Templates(unittest.TestCase):
    def test_every_question_is_told_the_load_in_words_that_are_filled_in(self):
        for tool in ALL:
            for load in LOADS:
                template = tool.template(load.question, load.name, load.tls)
                if template is None:
                    continue
                with self.subTest(tool=tool.name, section=load.name):
                    fields = {name for _, name, _, _ in string.Formatter().parse(template) if name}
                    self.assertLessEqual(fields, {*VALUES, "script"})
                    self.assertLessEqual({"connections", "seconds"}, fields)
                    self.assertTrue(fields & {"url", "address"})
                    if load.rate:
                        self.assertTrue(fields & {"rate", "rate_each"})
                    words = found(tool).command(template, **VALUES)
                    self.assertNotIn("{", "".join(words))

    def test_what_a_tool_takes_besides_reaches_its_command_line(self):
        for tool in ALL:
            for load in LOADS:
                template = tool.template(load.question, load.name, load.tls)
                besides = tool.more.get(load.name, "") + (tool.tls or "" if load.tls else "")
                if template is not None and besides:
                    self.assertIn(besides.split()[0], template, (tool.name, load.name))

    def test_every_aim_is_against_a_tool_that_can_do_it(self):
        rows = {tool.name: tool for tool in tools.OTHERS}
        for load in LOADS:
            able = rows[load.aim.tool].template(load.question, load.name, load.tls)
            self.assertIsNotNone(able, load.name)

    def test_weir_takes_part_in_everything(self):
        for load in LOADS:
            self.assertIsNotNone(tools.WEIR.template(load.question, load.name, load.tls))
        self.assertIsNotNone(tools.WEIR.hold)

    def test_a_tool_without_tls_has_no_words_for_it(self):
        tool = tools.Tool(name="x", keep_alive="{url}", tls=None)
        self.assertIsNone(tool.template("keep_alive", "https", True))
        self.assertEqual(tool.template("keep_alive", "closed", False), "{url}")

    def test_a_handshake_of_weir_resumes_nothing_and_trusts_anybody(self):
        template = tools.WEIR.template("per_request", "handshake", True)
        words = found(tools.WEIR, extra=("--io", "epoll")).command(template, **VALUES)
        for word in ("--insecure", "--resumption", "--connection"):
            self.assertIn(word, words)
        self.assertEqual(words[-2:], ["--io", "epoll"])

    def test_quoted_words_stay_whole(self):
        wrk = next(tool for tool in tools.OTHERS if tool.name == "wrk")
        self.assertIn("Connection: close", found(wrk).command(wrk.per_request, **VALUES))
        tcpkali = next(tool for tool in tools.OTHERS if tool.name == "tcpkali")
        request = r"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        self.assertIn(request, found(tcpkali).command(tcpkali.open, **VALUES))

    def test_the_script_for_k6_is_there(self):
        self.assertTrue(tools.K6_SCRIPT.is_file())


class Versions(unittest.TestCase):
    def test_a_program_that_cannot_be_asked_has_none(self):
        for tool in (tools.Tool("x"), tools.Tool("x", version=None)):
            self.assertEqual(tools.version_of(Path("/nonexistent/x"), tool), "?")

    def test_a_tool_that_is_nowhere_is_not_found(self):
        self.assertIsNone(tools.find(tools.Tool(name="no-such-load-generator"), [Path("/x")]))


if __name__ == "__main__":
    unittest.main()
