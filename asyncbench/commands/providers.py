"""Providers listed, examined and simulated: models, doctor, simulate."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from asyncbench.commands.terminal import EnvFile, Json, environment_of, show
from asyncbench.errors import ConfigError


def models(
    provider: Annotated[str | None, typer.Argument(help="Whose models; left out: the providers.")] = None,
    as_json: Json = False,
) -> None:
    """List the providers that a sweep may name, or one's models with their prices.

    asyncbench models

    asyncbench models openai
    """
    from datetime import UTC, datetime

    from asyncbench.providers import (
        endpoint_lines,
        endpoints_as_json,
        endpoints_as_text,
        models_as_json,
        models_as_text,
        models_of,
    )

    at = datetime.now(UTC)
    if provider is None:
        lines = endpoint_lines(os.environ, at=at)
        typer.echo(endpoints_as_json(lines) if as_json else endpoints_as_text(lines))
        return
    found = models_of(provider, at=at)
    typer.echo(models_as_json(found) if as_json else models_as_text(found))


def doctor(
    what: Annotated[list[str] | None, typer.Argument(help="provider/model …, or one sweep file.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the models are, instead of their own.")] = None,
    key_env: Annotated[str | None, typer.Option(help="The variable that holds the key.")] = None,
    env_file: EnvFile = None,
    latency: Annotated[bool, typer.Option("--latency", help="Measure what this client adds.")] = False,
    as_json: Json = False,
) -> None:
    """Make two tiny calls to each model, whole and streamed, and say what is wrong, with the way out.

    asyncbench doctor openai/gpt-5-mini anthropic/claude-haiku-4-5

    asyncbench doctor configs/overnight.yaml

    asyncbench doctor --latency

    Exit code 3 where a sweep would fail: only the kind of call that it makes, streamed or not, counts. What
    the calls cost is shown; keys never are.
    """
    from asyncbench import checkup as doctors

    asked = doctors.models_from(what or [], base_url=base_url, key_env=key_env, or_nothing=latency)
    checkups = asyncio.run(doctors.examine(asked, env=environment_of(env_file, asked)))
    noise = asyncio.run(doctors.noise_floor()) if latency else ()
    show(doctors.DoctorReport(models=checkups, noise=noise), as_json=as_json)
    raise typer.Exit(0 if all(checkup.fine for checkup in checkups) else 3)


LimitModel = Annotated[str, typer.Option(help="token_bucket, gcra, fixed_window, sliding_window or quanta.")]


def simulate(
    problems: Annotated[list[Path] | None, typer.Option(help="A problem set to answer; repeatable.")] = None,
    replay: Annotated[list[Path] | None, typer.Option(help="A results folder to repeat; repeatable.")] = None,
    port: Annotated[int, typer.Option(help="0: any free port.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the answers, latencies and faults.")] = 0,
    rpm: Annotated[float | None, typer.Option(help="Requests a minute, per model.")] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens a minute, per model.")] = None,
    input_tpm: Annotated[float | None, typer.Option(help="Input tokens a minute, per model.")] = None,
    output_tpm: Annotated[float | None, typer.Option(help="Output tokens a minute, per model.")] = None,
    limit_model: LimitModel = "token_bucket",
    burst: Annotated[float | None, typer.Option(help="Seconds' worth that a bucket holds. [1]")] = None,
    tokens_counted: Annotated[str, typer.Option(help="Against --tpm: used or demanded.")] = "used",
    latency: Annotated[float, typer.Option(help="Median seconds to an answer.")] = 0.0,
    latency_sigma: Annotated[float, typer.Option(help="Of a lognormal; 0: always the median.")] = 0.0,
    ttft: Annotated[float | None, typer.Option(help="Median seconds to a stream's first token.")] = None,
    chunks: Annotated[int | None, typer.Option(help="The most pieces that a stream has.")] = None,
    like: Annotated[str | None, typer.Option(help="The provider to play: mistral, vllm, azure ….")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="KIND=RATE or KIND=RATE@MODEL; repeatable.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="Accept only this API key; repeatable.")] = None,
) -> None:
    """Serve simulated models on the loopback interface until Ctrl-C.

    asyncbench simulate --problems data/llm_arithmetic.parquet --latency 0.5 --fault 429=0.05

    asyncbench simulate --replay results/published

    asyncbench simulate --problems data/llm_arithmetic.parquet --like deepseek --rpm 6000 --ttft 0.3

    It speaks OpenAI's and Anthropic's wire formats, streamed or not, as models oracle, noisy, noisy-2 and so
    on, and as every run and model that a --replay folder holds; what it saw is at /stats, what its limits did
    in each second at /stats/seconds. Other providers' ways are played with --like, or for one call by the
    model's name: mistral:noisy. Kinds of faults: 429, 500, 529, stall, reset, cut, invalid_json, dead_key,
    no_quota, error_200, stale, and of streams cut_stream, no_terminator, stream_error, silent.
    """
    from asyncbench.simulator import Settings, parse_fault, serve

    if not problems and not replay:
        raise ConfigError("nothing to serve: give --problems a problem set, or --replay a results folder")
    settings = Settings(
        port=port,
        seed=seed,
        problems=tuple(problems or ()),
        replay=tuple(replay or ()),
        keys=tuple(key or ()),
        rpm=rpm,
        tpm=tpm,
        input_tpm=input_tpm,
        output_tpm=output_tpm,
        limit_model=limit_model,
        burst_s=burst,
        tokens_counted=tokens_counted,
        latency_s=latency,
        latency_sigma=latency_sigma,
        ttft_s=ttft,
        chunks=chunks,
        like=like,
        faults=tuple(map(parse_fault, fault or ())),
    )
    asyncio.run(serve(settings))
