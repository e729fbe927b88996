"""A judge for examples: a server that speaks OpenAI's chat completions and compares words.

It grades C when at least half of the telling words and all numbers of what is expected occur in the
answer or in the tool calls, else D; a rule gets the share of its words that occur. A model does this
far better: this one only needs no network.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def words(text: str) -> set[str]:
    """Telling words: numbers, and words of five letters or more, without their endings."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?|[a-z]{5,}", text.lower())
    return {word.replace(",", "") if word[0].isdigit() else word[:6] for word in found}


def reply(sent: dict[str, Any]) -> dict[str, Any]:
    """The judgement on what the plugin sends: a letter, or a score."""
    answer = sent["answer"]
    if "rule" in sent:
        wanted, told = words(sent["rule"]), words(answer)
        return {"rationale": "share of the rule's words", "score": len(wanted & told) / max(1, len(wanted))}
    if "expected" not in sent:
        asks = answer.strip().endswith("?")
        declines = re.search(r"\b(can't|cannot)\b", answer) is not None
        return {"rationale": "by its form", "letter": "Q" if asks else "R" if declines else "A"}
    wanted = words(sent["expected"])
    told = words(answer + json.dumps(sent["tool_calls"]))
    numbers = {word for word in wanted if word[0].isdigit()}
    good = numbers <= told and 2 * len(wanted & told) >= len(wanted)
    missing = ", ".join(sorted(wanted - told)) or "nothing"
    return {"rationale": f"missing: {missing}", "letter": "C" if good else "D"}


class Handler(BaseHTTPRequestHandler):
    """One endpoint: POST .../chat/completions."""

    def do_POST(self) -> None:
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = next(message["content"] for message in body["messages"] if message["role"] == "user")
        message = {"role": "assistant", "content": json.dumps(reply(json.loads(user)))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {
            "prompt_tokens": len(user) // 4,
            "completion_tokens": 20,
            "total_tokens": len(user) // 4 + 20,
        }
        data = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep the terminal to pytest."""


def start() -> tuple[ThreadingHTTPServer, str]:
    """A running server on a free loopback port, and its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/v1"
