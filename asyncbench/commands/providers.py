"""Commands for providers: models, doctor, simulate."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from asyncbench.commands.terminal import EnvFile, Json, awaited, environment_of, show
from asyncbench.errors import ConfigError


def models(
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="List the models of this provider.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the providers, or the models of one with prices.

    asyncbench models

    asyncbench models openai

    A sweep can also ask models that are not in the list. Then set their `price` to use a budget.

    The column `batches` shows whose batches `mode: batch` can use. `proven`: checked with recordings.
    `unproven`: built by the provider's documents. `own form`: not spoken. With --json, `batch_ways` says how
    they differ from OpenAI's, and `batch_part` the part of the usual price that they cost.
    """
    from datetime import UTC, datetime

    from asyncbench.providers import listing

    now = datetime.now(UTC)
    if provider is None:
        rows = listing.endpoint_rows(os.environ, moment=now)
        typer.echo(listing.endpoints_as_json(rows) if as_json else listing.endpoints_as_text(rows))
        return
    listed = listing.models_of(provider, moment=now)
    typer.echo(listing.models_as_json(listed) if as_json else listing.models_as_text(listed))


def doctor(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SWEEP|PROVIDER/MODEL", help="Check the models of this sweep file, or these models."
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Call this server. Default: the provider's own.")
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Read the key from this variable. Default: the provider's usual one."
        ),
    ] = None,
    env_file: EnvFile = None,
    latency: Annotated[
        bool, typer.Option("--latency", help="Also measure the latency that this client adds.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check keys, models and limits with two tiny calls each.

    asyncbench doctor openai/gpt-5-mini anthropic/claude-haiku-4-5

    asyncbench doctor configs/overnight.yaml

    asyncbench doctor --latency

    Each model gets one plain and one streamed call. For every problem, doctor says how to fix it. It shows
    what the calls cost, and never shows a key. A model in batches gets the plain call, as a test of its
    parameters, and a free look at its list of batches.

    The exit code is 3 if a sweep would fail. Only the kind of call that the sweep makes counts, plain or
    streamed.
    """
    from asyncbench.run.checkup import examine, models_from, noise_floor
    from asyncbench.run.findings import DoctorReport

    chosen = models_from(what or [], base_url=base_url, key_env=key_env, or_nothing=latency)
    checkups = awaited(examine(chosen, env=environment_of(env_file, chosen)))
    noise = awaited(noise_floor()) if latency else ()
    report = DoctorReport(models=checkups, noise=noise)
    show(report, as_json=as_json)
    raise typer.Exit(0 if all(checkup.fine for checkup in checkups) else 3)


_Given = dict[str, Any]  # Any: each as its option says


Files = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Answer the problems of this file. Repeatable."),
]
Replays = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER",
        help="Repeat the replies of this results folder or file of recorded answers. Repeatable.",
    ),
]
Rpm = Annotated[
    float | None, typer.Option(metavar="N", help="Allow N requests per minute and model. Default: any.")
]
Tpm = Annotated[
    float | None, typer.Option(metavar="N", help="Allow N tokens per minute and model. Default: any.")
]
InputTpm = Annotated[
    float | None, typer.Option(metavar="N", help="Allow N input tokens per minute and model. Default: any.")
]
OutputTpm = Annotated[
    float | None, typer.Option(metavar="N", help="Allow N output tokens per minute and model. Default: any.")
]
LimitModel = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Enforce limits like this: token_bucket, gcra, fixed_window, sliding_window or quanta.",
    ),
]
Burst = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Let a bucket hold the limit of this time. Default: 1."),
]
TokensCounted = Annotated[
    str, typer.Option(metavar="used|demanded", help="Count these tokens against --tpm.")
]
Latency = Annotated[float, typer.Option(metavar="SECONDS", help="Answer after this time (the median).")]
LatencySigma = Annotated[
    float, typer.Option(metavar="SIGMA", help="Spread latencies (lognormal). 0: always the median.")
]
Service = Annotated[
    str | None,
    typer.Option(
        metavar="fixed|exponential|lognormal",
        help="Spread latencies like this. --latency is then their mean.",
    ),
]
ServedSlots = Annotated[
    int | None,
    typer.Option(
        "--slots", metavar="N", help="Answer N calls of a model at a time. Others wait in line. Default: any."
    ),
]
FreezeAt = Annotated[
    float, typer.Option(metavar="SECONDS", help="Begin --freeze so long after the first call of a model.")
]
FreezeFor = Annotated[
    float, typer.Option("--freeze", metavar="SECONDS", help="Stand still for this time, once.")
]
WorseAbove = Annotated[
    float | None,
    typer.Option(
        metavar="RATE", help="Give worse answers while more calls than this came in the last second."
    ),
]
WorseInFlight = Annotated[
    int | None, typer.Option(metavar="N", help="Give worse answers while more than N calls are in flight.")
]
Worse = Annotated[
    float, typer.Option("--worse", metavar="SHARE", help="Spoil this share of the answers then.")
]
Ttft = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Stream the first token after this time (median).")
]
Chunks = Annotated[int | None, typer.Option(metavar="N", help="Stream a reply in at most N pieces.")]
Like = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER",
        help="Behave like this provider: mistral, vllm … A model `mistral:noisy` does so for a call.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND=RATE[@MODEL]",
        help="Let this share of the calls fail so. Repeatable. Kinds: 429, 500, 529, stall, reset, cut, "
        "invalid_json, dead_key, no_quota, error_200, stale; for streams: cut_stream, no_terminator, "
        "stream_error, silent.",
    ),
]
Batch = Annotated[
    str,
    typer.Option(
        metavar="JSON",
        help='Let batches go like this: \'{"speedup": 3600, "faults": ["expires=0.1"]}\'. '
        "An unknown key or fault is answered with all that are known.",
    ),
]
Keys = Annotated[
    list[str] | None, typer.Option(metavar="KEY", help="Accept only this API key. Repeatable. Default: any.")
]


def simulate(
    problems: Files = None,
    replay: Replays = None,
    port: Annotated[int, typer.Option(metavar="N", help="Listen on this port. 0: any free one.")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed answers, latencies and faults.")] = 0,
    rpm: Rpm = None,
    tpm: Tpm = None,
    input_tpm: InputTpm = None,
    output_tpm: OutputTpm = None,
    limit_model: LimitModel = "token_bucket",
    burst: Burst = None,
    tokens_counted: TokensCounted = "used",
    latency: Latency = 0.0,
    latency_sigma: LatencySigma = 0.0,
    service: Service = None,
    slots: ServedSlots = None,
    freeze_at: FreezeAt = 0.0,
    freeze: FreezeFor = 0.0,
    worse_above: WorseAbove = None,
    worse_in_flight: WorseInFlight = None,
    worse: Worse = 0.2,
    ttft: Ttft = None,
    chunks: Chunks = None,
    like: Like = None,
    fault: Faults = None,
    batch: Batch = "{}",
    key: Keys = None,
) -> None:
    """Run a local server with simulated models.

    asyncbench simulate --problems my.parquet --latency 0.5 --fault 429=0.05

    asyncbench simulate --replay results/published

    The server runs until Ctrl-C and is reachable from this machine only. It speaks the wire formats of OpenAI
    and Anthropic: plain calls, streams and batches. GET /stats shows its calls, /stats/seconds its limits,
    /stats/arrivals when each call came and was answered, /stats/batches its batches. A key such as `k@lab`
    has files and batches of its own.
    Under /azure/v1 or /groq/v1, batches are as those vendors have them.
    Models: `oracle` is always right. `noisy`, `noisy-2` and so on make mistakes. With --replay, every run and
    model of the folder is a model, too.
    """
    from asyncbench.simulator.batches.settings import parse_batch
    from asyncbench.simulator.serving import serve
    from asyncbench.simulator.settings import Settings, parse_fault

    if not problems and not replay:
        raise ConfigError("nothing to serve. Give --problems with a file, or --replay with a results folder")
    limits: _Given = {"rpm": rpm, "tpm": tpm, "limit_model": limit_model, "burst_s": burst}
    limits |= {"input_tpm": input_tpm, "output_tpm": output_tpm, "tokens_counted": tokens_counted}
    pace: _Given = {"latency_s": latency, "latency_sigma": latency_sigma, "ttft_s": ttft, "chunks": chunks}
    pace |= {"service": service, "slots": slots, "freeze_at_s": freeze_at, "freeze_s": freeze}
    pace |= {"worse_above_rate": worse_above, "worse_in_flight": worse_in_flight, "worse_share": worse}
    files: _Given = {"problems": tuple(problems or ()), "replay": tuple(replay or ())}
    keys, faults = tuple(key or ()), tuple(map(parse_fault, fault or ()))
    more: _Given = {"like": like, "faults": faults, "batch": parse_batch(batch)}
    settings = Settings(port=port, seed=seed, keys=keys, **files, **limits, **pace, **more)
    awaited(serve(settings))
