"""A server that gives every call the same answer at once, so that whoever calls is the bound, not it.

    python -m benchmarks.quick_server [contents]

With `contents` it answers as Gemini does. It prints its address. It ends when its standard input does.
"""

import asyncio
import sys

import orjson

ANSWER = orjson.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "quick",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22},
    }
)
CONTENT = orjson.dumps(
    {
        "candidates": [{"content": {"parts": [{"text": "42"}], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 2, "totalTokenCount": 22},
        "modelVersion": "quick",
    }
)
SAID = CONTENT if sys.argv[1:] == ["contents"] else ANSWER
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(SAID),
    SAID,
)
LENGTH = b"content-length: "


class Answering(asyncio.Protocol):
    """Answers each request of a connection as soon as it is whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._unread = transport, b""

    def data_received(self, data: bytes) -> None:
        unread = self._unread + data
        while (end := unread.find(b"\r\n\r\n")) >= 0:
            head = unread[:end].lower()
            at = head.find(LENGTH)
            length = int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(unread) < end + 4 + length:
                break
            unread = unread[end + 4 + length :]
            self._transport.write(REPLY)
        self._unread = unread


async def main() -> None:
    """Serve until standard input ends."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
