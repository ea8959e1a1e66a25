"""Cautions before the first call of a run, which its user should know and which refuse nothing."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asyncbench.config.sweep import all_sources
from asyncbench.files import quoted
from asyncbench.lanes.batches.ledger import Step
from asyncbench.planning.belonging import cautions_on_copy
from asyncbench.planning.modes import batch_price_warning, has_mode_auto, why_in_real_time
from asyncbench.planning.outdated import corrected, outgraded_notes
from asyncbench.planning.preflight import cautions_on
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.functions import PYTHON, is_of_session
from asyncbench.providers.prices import is_moving_alias, rates_of
from asyncbench.records import AUTO, BATCH, REALTIME
from asyncbench.run.lanes import cautions_of_load
from asyncbench.run.state import Run
from asyncbench.suites.handed_functions import SESSION, session_name


def cautions(run: Run) -> Iterator[str]:
    """Yield a sentence for each caution, in the order in which they are said."""
    # What the folder has lost, and what that means for this run.
    for damage in run.store.damaged:
        what = "damaged, left out; the rest is kept" if damage.size else damage.message
        yield f"journal/{damage.segment.name}, line {damage.line}: {what}"
    if run.copy is not None and (lost := run.copy.lost) is not None:
        yield f"the journal of {lost} is taken for lost: what it held of calls is asked, and paid, again"
    for path in run.store.lost:
        yield f"{path}: accepted as lost; the cost of its calls still counts"
    if any(path.startswith("grades/") for path in run.store.lost):
        again = f"asyncbench regrade {quoted(run.sweep.out)} --write"
        yield f"some grades are lost. To make them again: `{again}`"

    in_batches = sum(len(leftover.out) for leftover in run.batches.left_open.values())
    yield from cautions_on_copy(run.sweep, in_batches)
    every_set = [source.problems for sources in run.questions.sets.values() for source in sources]
    for problems in {(problems.name, problems.sample): problems for problems in every_set}.values():
        if problems.sample is not None:
            yield f"{problems.name}: {problems.sample.text(problems.rows)}"
    yield from cautions_on(run.problems.values(), limit=run.options.limit)
    if run.sweep.load is not None:
        yield from cautions_of_load(run.sweep.load, run.models, run.sweep.models)

    # Models of which no price is known, or none of their batches.
    now, tiers = time.time(), {BATCH: BATCH, REALTIME: None}
    priced_by = [model for model in run.models if model.provider != PYTHON]  # a function tells what it costs
    if unpriced := [model.alias for model in priced_by if rates_of(model)(tiers[model.mode], now) is None]:
        outside = ", and no budget holds them" if run.money.caps else ""
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost stays unknown{outside}. "
            "Set price: {input: ..., output: ...} in the sweep (USD per million tokens)."
        )
    if full_price := batch_price_warning(run.models):
        yield full_price

    yield from _functions(run)
    yield from _batches(run)
    for model in run.models:
        if not model.simulated and (why := is_moving_alias(model.model_id)):
            yield f"{why}. The report shows which model answered."
    yield from _finished_trials(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFunctions:
    """What a run uses that no file holds: only this session of Python knows it."""

    models: Sequence[str]
    suites: Sequence[str]
    graders: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.models or self.suites or self.graders)


def session_functions(run: Run) -> SessionFunctions:
    """Return the functions that only this session has, and a run uses, by name."""
    graders = {name for problems in run.problems.values() for name in problems.graders}
    return SessionFunctions(
        models=[model.alias for model in run.models if is_of_session(model)],
        suites=sorted(
            source.name
            for source in all_sources(run.sweep)
            if source.own_suite is not None and source.own_suite.source is None
        ),
        graders=sorted(session_name(name) for name in graders if name.startswith(SESSION)),
    )


def _functions(run: Run) -> Iterator[str]:
    """Yield functions that nobody can tell from others, and those that worker processes do not call."""
    of_session = session_functions(run)
    if of_session.models:
        yield (
            f"{', '.join(of_session.models)}: a lambda, a closure or a function of a notebook. Another "
            "session cannot tell whether it is the same, and asks everything again. A function "
            "of a file is resumed."
        )
    if of_session.suites:
        yield (
            f"suite {', '.join(of_session.suites)}: no file holds it with its `grade`. Only this session can "
            "make and grade its problems again. A suite of a file is resumed."
        )
    if of_session.graders:
        yield (
            f"grader {', '.join(of_session.graders)}: a lambda, a closure or a function of a notebook. "
            "Only this session can grade with it again. A function of a file "
            "can be used by `asyncbench regrade`, too."
        )
    functions = [model.alias for model in run.models if model.provider == PYTHON]
    if functions and run.sweep.workers:
        yield f"{', '.join(functions)}: this process calls it. `workers` make the calls of other models only."


def _batches(run: Run) -> Iterator[str]:
    """Yield batches that were never tried, are not used, or hold trials that are asked in no other way."""
    in_batches = [model for model in run.models if model.mode == BATCH]
    untried = [m for m in in_batches if not known_endpoints()[m.provider].batches_proven_at(m.base_url)]
    for name in dict.fromkeys(model.provider for model in untried):
        yield f"batches of {name} are built by documents and were never tried. Begin with --limit 10."
    aliases = {model.alias for model in run.models}
    for model in run.sweep.models:
        if model.alias in aliases and model.mode == AUTO and (why := why_in_real_time(run.sweep, model)):
            yield f"{model.alias}: `mode: auto` asks it in real time: {why}."
    for batch_part in run.batches.ledger.parts.values():
        if batch_part.step is Step.ABANDONED:
            yield (
                f"{batch_part.alias}: {batch_part.requests:,} trials of part {batch_part.key} were abandoned "
                f"and are not asked. To ask them: --resubmit {batch_part.key}. If its batch exists, they are "
                "paid twice."
            )
    if run.options.detach and any(has_mode_auto(run.sweep, model.alias) for model in run.models):
        yield (
            "`mode: auto` leaves batches for real time only while a run goes on. You detach: run again well "
            "before the deadline."
        )
    in_sweep = {model.alias for model in run.sweep.models}
    for alias, leftover in run.batches.left_open.items():
        if leftover.out and alias not in in_sweep:
            yield (
                f"{len(leftover.out):,} trials are in batches of {alias}, which is not in the sweep any "
                f"more. They are asked in no other way. To collect them, put {alias} back and run again."
            )


def _finished_trials(run: Run) -> Iterator[str]:
    """Yield finished trials that today's graders would grade differently: they need no new answers."""
    sources = (source for sources in run.questions.sets.values() for source in sources)
    used = dict.fromkeys(source.problems.path for source in sources)
    if changed := corrected(run.store.folder, list(used)):
        yield (
            f"the expected answers of {changed:,} finished trials have changed. To see what changes: "
            f"`asyncbench regrade {quoted(run.sweep.out)}`; to keep it: add --write. Nothing is asked again."
        )
    yield from outgraded_notes(run.store.folder)
    room = run.questions.room
    if room.had_it:
        yield (
            f"{room.had_it:,} trials were cut off at {room.max_tokens:,} tokens or more already: "
            "they are not asked again"
        )
