"""What guards every test, in whichever process it runs: the world is out of reach, a warning is an error."""

import asyncio
import socket
import warnings
from pathlib import Path

import pytest
from huggingface_hub import constants, get_token

from tests.commands import asyncbench, asyncbench_here


def test_a_socket_to_another_machine_is_refused():
    with socket.socket() as anywhere, pytest.raises(RuntimeError, match="only loopback"):
        anywhere.connect(("192.0.2.1", 80))


async def test_the_event_loop_cannot_get_round_it():
    with pytest.raises(RuntimeError, match="only loopback"):
        await asyncio.open_connection("192.0.2.1", 80)


async def test_loopback_is_open():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("run", [asyncbench_here, asyncbench])
def test_the_hub_is_out_of_reach_and_no_token_is_known(run):
    done = run("problems", "inspect", "hf://datasets/openai/gsm8k")

    assert (done.returncode, "the Hub cannot be reached (ConnectError)" in done.stderr) == (2, True), done
    assert (constants.ENDPOINT, constants.HF_HUB_DISABLE_XET) == ("http://127.0.0.1:9", True)
    assert (get_token(), Path(constants.HF_HOME).exists()) == (None, False)


def test_a_warning_is_an_error():
    with pytest.raises(UserWarning, match="heed this"):
        warnings.warn("heed this", UserWarning, stacklevel=1)
