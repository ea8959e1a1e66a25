"""Checks before anything is spent: keys, problem sets, limits and open files."""

import resource
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil
from pathlib import Path
from string import ascii_uppercase

from asyncbench.config.entry import suggestion
from asyncbench.config.questions import ProblemSource, condition_complaint
from asyncbench.config.sweep import Sweep
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.errors import ConfigError, ProblemSetError, StoreError
from asyncbench.files import found_input, input_path
from asyncbench.planning.belonging import copy_of_lost, generated_set
from asyncbench.planning.trials import TrialSource, conditions_of, sources_by_model
from asyncbench.problems.custom import Custom, unread_choices
from asyncbench.problems.hub import remote_address
from asyncbench.problems.making import copy_into
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.recorded import run_called, runs_said
from asyncbench.problems.sorted_files import limit_note
from asyncbench.providers.credentials import Credentials, credentials_of
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.environment import OF_LIBRARIES, check_certificates, proxy_of
from asyncbench.providers.params import ignored
from asyncbench.records import MOST_IN_FLIGHT, Condition, Model, Reply
from asyncbench.store.checksums import check, stamp
from asyncbench.store.manifest import is_results_folder, planned, planned_aliases, read_manifest
from asyncbench.store.names import check_apart
from asyncbench.suites.chats import chat_in
from asyncbench.suites.numbers import rewritten
from asyncbench.suites.requests import characters_before_question, most_characters
from asyncbench.suites.table import SUITES, graded

LEAST_IN_FLIGHT = 8  # calls of a lane that sets no `concurrency`, however few files there may be
HUB = "hub"  # in a manifest: address of a file on the Hub → the same with its commit and file
SPARE_FILES = 200  # open files beside the connections: parts, journals, the interpreter's own


def chosen_models(sweep: Sweep, aliases: Sequence[str] | None) -> tuple[Model, ...]:
    """Return the sweep's models, or those with these aliases.

    Raises:
        ConfigError: an alias that no model of the sweep bears, `params` that nobody would do or keep, or
            two models that a disk may take for one.
    """
    models = {model.alias: model for model in sweep.models}
    named = tuple(dict.fromkeys(aliases or ()))  # each once: two lanes would ask and pay twice
    for alias in named:
        if alias not in models:
            choices = ", ".join(models)
            raise ConfigError(f"sweep {sweep.name!r} has no model {alias!r}. Its models: {choices}.")
    chosen = tuple(models[alias] for alias in named) or sweep.models

    # Refused here, not when a sweep is read: the folder of an older one may hold them.
    params = {model.alias: model.params for model in chosen}
    params |= {f"condition {condition.name!r}": condition.params for condition in sweep.conditions}
    for name, values in params.items():
        if fault := ignored(values):
            raise ConfigError(f"{sweep.file or sweep.name}: {name}: {fault}.")

    # The folders of two models or limits may be one, also with what the results folder holds.
    taken = set[str]()
    with suppress(StoreError):  # a damaged folder is left to the run, which says what is to be done
        if is_results_folder(sweep.out):
            taken = planned_aliases(read_manifest(sweep.out))
    names = {name for model in sweep.models for name in (model.alias, model.limits.group) if name}
    check_apart(
        names,
        taken,
        place=str(sweep.file or sweep.name),
        way_out="Give one of them another `alias` or `group`",
    )
    return chosen


def secret_variables(sweep: Sweep) -> set[str | None]:
    """Return the variables in which a sweep has its secrets, also of models that are not asked this time."""
    webhook = None if sweep.notify is None else sweep.notify.webhook_env
    return {webhook, *(name for model in sweep.models for name in model.variables)}


def keys_for(models: Iterable[Model], env: Mapping[str, str]) -> dict[str, Credentials]:
    """Return each model's API key, and what else its server asks for, by alias.

    Raises:
        ConfigError: variables are not set; names each once, with its models.
    """
    keys, missing = dict[str, Credentials](), dict[tuple[str, str], list[str]]()
    for model in models:
        keys[model.alias] = credentials_of(model, env)
        for variable in model.variables.items():
            if not env.get(variable[0], "").strip():
                missing.setdefault(variable, []).append(model.alias)
    if missing:
        unset = "; ".join(
            f"{name} is not set ({purpose} of {', '.join(aliases)})"
            for (name, purpose), aliases in missing.items()
        )
        only_keys = all(purpose == "API key" for _, purpose in missing)
        another = "another variable with `key_env`" if only_keys else "another variable at the model"
        raise ConfigError(
            f"the environment variable {unset}. Export it, put it into a file for `--env-file`, or name "
            f"{another}."
        )
    return keys


def check_environment(models: Iterable[Model]) -> None:
    """Check what the environment says of the way to the servers of models: proxies and certificates.

    Raises:
        ConfigError: a proxy or a file of certificates that cannot be used; names the variable.
    """
    check_certificates()
    for model in models:
        endpoint = known_endpoints()[model.provider]
        check_certificates(OF_LIBRARIES.get(endpoint.via, ()))
        address = model.base_url or endpoint.base_url
        if address is not None or not model.simulated:
            proxy_of(address or "https://elsewhere")  # the SDK's own address


def open_sources(sweep: Sweep, models: Iterable[Model]) -> dict[str, ProblemSet]:
    """Check every problem file that these models are asked; return them by their place in the sweep.

    A file of the Hub is asked at the commit at which the sweep's results folder asked it before.

    Raises:
        ProblemSetError: a file is missing or not what it should be.
    """
    opened = {}
    for source in sources_of(sweep, models):
        if source.own_suite is not None:  # another sweep of this process may have used its name since
            source.own_suite.use(place=source.place)
        if source.path is None:
            continue
        if (copy := copy_of_lost(source, sweep)) is not None:
            opened[source.place] = copy
            continue
        address, pinned = remote_address(source.path), None
        if address is not None and is_results_folder(sweep.out):
            pinned = read_manifest(sweep.out).get(HUB, {}).get(address)
        problems = open_set(
            address
            or found_input(
                source.path,
                sweep.file,
                place=source.place,
                way_out="Correct the path, or make the file with `asyncbench generate`",
                refuse=ProblemSetError,
            ),
            suite=source.suite,
            columns=source.columns or None,
            grader=source.grader,
            pattern=source.pattern,
            decimal=source.decimal,
            json_schema=source.json_schema,
            wording=source.wording,
            answer_form=source.answer_form,
            shuffle_choices=source.shuffle_choices,
            run=source.run,
            near=sweep.file,
            pinned=pinned,
        )
        opened[source.place] = replace(problems, sample=source.sample)
    return opened


def cautions_on(sets: Collection[ProblemSet], *, limit: int | None = None) -> Iterator[str]:
    """Yield cautions on files before they are asked: guessed columns, repetitions, changed datasets.

    Of a file that is sorted, also what a limit of problems leaves out; of several sets it takes a share each.
    """
    rows = sum(problems.rows for problems in sets)
    for problems in sets:
        if limit is not None and (note := limit_note(problems, ceil(limit * problems.rows / rows))):
            yield note
        if guessed := problems.guessed_columns:
            columns = ", ".join(f"{ours} is read from column {theirs!r}" for ours, theirs in guessed.items())
            yield f"{problems.place}: {columns}. To choose others, set `columns`."
        if problems.choices is not None and problems.choices.unsure:
            yield f"{problems.place}: {problems.choices.note}"
        if isinstance(problems.custom, Custom) and (note := _choices_note(problems, problems.custom)):
            yield note
        if problems.repeats is not None:
            yield from (f"{problems.place}: {note}" for note in problems.repeats.notes)
        if problems.hub is not None and problems.hub.now is not None:
            yield (
                f"{problems.place} has changed: it is at {problems.hub.now[:12]} now. This folder keeps "
                f"asking {problems.hub.pinned}. For the new one, set another folder with `out`."
            )


def _choices_note(problems: ProblemSet, custom: Custom) -> str | None:
    """Return a note on choices of a file that are not asked, and how to ask them, or None."""
    if custom.choices is not None:
        return None
    unread = unread_choices(problems.path, custom.columns)
    if unread is None or unread[1].shown:
        return None
    names, used = unread[0], {*custom.columns.values(), *custom.several["wording"]}
    columns = [names] if isinstance(names, str) else names
    if used.intersection(columns):
        return None
    named, last = (
        names if isinstance(names, str) else f"[{', '.join(names)}]",
        ascii_uppercase[unread[1].most - 1],
    )
    return (
        f"{problems.place}: no question shows the choices that {', '.join(map(repr, columns))} seems to "
        f"hold. To ask them as A-{last}, set `grader: choice` and `columns: {{choices: {named}}}`."
    )


def sources_of(sweep: Sweep, models: Iterable[Model]) -> tuple[ProblemSource, ...]:
    """Return where these models' problems come from, each once, in order."""
    return tuple({source.place: source for model in models for source in sweep.problems_of(model)}.values())


def sets_in_folder(
    sweep: Sweep, models: Sequence[Model], opened: Mapping[str, ProblemSet], folder: Path
) -> dict[str, tuple[TrialSource, ...]]:
    """Copy or generate every problem set into a results folder; return what each model is asked, by alias.

    With these copies the folder stands alone. `opened` are the sets that are files, by place in the sweep.
    """
    out = folder / "problems"
    placed = {
        source.place: copy_into(opened[source.place], out, seal=stamp, is_sound=_is_sound)
        if source.place in opened
        else generated_set(source, out)
        for source in sources_of(sweep, models)
    }
    return sources_by_model(sweep, models, placed)


def _is_sound(copy: Path) -> bool:
    try:
        return check(copy)
    except (FileNotFoundError, StoreError):
        return False


def check_conditions(sweep: Sweep, models: Iterable[Model], opened: Mapping[str, ProblemSet]) -> None:
    """Refuse conditions under which a problem of the sweep cannot be asked, or that ask none.

    `opened` are the problem sets that are files, by their place in the sweep.

    Raises:
        ConfigError: names the condition, the suite and the way out.
    """
    models = tuple(models)

    # conditions that ask nothing, or what they cannot ask
    for condition in sweep.conditions:
        matching = [model for model in models if condition.asks(model.alias)]
        if not matching:
            continue
        suites = _suites_of(sources_of(sweep, matching), opened)
        own_suites = {suite for suite in suites if condition.is_for(suite)}
        if not own_suites:
            raise ConfigError(
                f"condition {condition.name!r} is for {', '.join(sorted(condition.suites or ()))}, but the "
                f"problem sets hold only {', '.join(sorted(suites))}. Remove it, or change its `suites`."
            )
        for fault in filter(None, (condition_complaint(condition, suite) for suite in sorted(own_suites))):
            raise ConfigError(
                f"condition {condition.name!r}: {fault}. Change the condition, or limit it to other suites: "
                "`suites: […]`."
            )

    # problems that no condition is for, and requests with two system prompts
    suites_by_model = [(model, _suites_of(sweep.problems_of(model), opened)) for model in models]
    for model, suite in ((model, suite) for model, suites in suites_by_model for suite in sorted(suites)):
        conditions = conditions_of(sweep, model.alias, suite)
        if not conditions:
            raise ConfigError(
                f"{model.alias} has problems of {suite}, but no condition is for them. Add one, such as "
                f"{{name: plain, suites: [{suite}]}}, or remove the problems."
            )
        for condition in conditions:
            if model.system is not None and condition.system is not None:
                raise ConfigError(
                    f"{model.alias} and condition {condition.name!r} both set `system`, and a request has "
                    "room for one. Remove one of them, or write a condition for each wording."
                )


def _suites_of(sources: Iterable[ProblemSource], opened: Mapping[str, ProblemSet]) -> set[str]:
    return {
        suite
        for source in sources
        for suite in (opened[source.place].suites if source.place in opened else (str(source.suite),))
    }


def check_replays(sweep: Sweep, models: Iterable[Model]) -> None:
    """Refuse a simulated model that there is not, or whose folder or file of recorded answers lacks it.

    Raises:
        ConfigError: it is not a results folder, or holds no run or model of that name, or several.
        ProblemSetError: it is a file, but not of recorded answers.
        StoreError: its manifest cannot be read.
    """
    for model in models:
        if model.replay is None:
            # The simulator that the run starts must have the model. Other runs start sooner without it.
            if model.provider.startswith("simulated") and model.base_url is None:
                from asyncbench.simulator.answers import MODELS, answerer
                from asyncbench.simulator.vendors import split

                if answerer(split(model.model_id)[1]) is None:
                    hint = suggestion(model.model_id, [*MODELS, "noisy-2"], what=" simulated models")
                    raise ConfigError(f"{model.alias}: the simulator has no model {model.model_id!r}. {hint}")
            continue
        place = f"{model.alias}, replay"
        recording = found_input(model.replay, sweep.file, place=place, way_out="Correct the path")
        if recording.suffix == ".parquet":
            if run_called(recording, model.model_id) is None:
                raise ConfigError(
                    f"{model.alias}: {recording} holds no run and no single model called {model.model_id!r}. "
                    f"{runs_said(recording)}"
                )
            continue
        recorded = {key[:2] for key in planned(read_manifest(recording))}
        # `mistral:name` plays what `name` recorded as another provider would
        named = {model.model_id, model.model_id.partition(":")[2]}
        runs, of_model = {run for run, _ in recorded}, sum(alias in named for _, alias in recorded)
        if not named & runs and of_model != 1:
            problem = "several runs have a model" if of_model else "no run and no model is"
            raise ConfigError(
                f"{place}: {problem} called {model.model_id!r} in {recording}. Name one of its runs: "
                f"{', '.join(sorted(runs)[:10])}{', …' if len(runs) > 10 else ''}."
            )


def recorded_by(sweep: Sweep, models: Iterable[Model]) -> list[dict[str, str]]:
    """Return the models that replay files of recorded answers, and the days of the answers.

    Raises:
        ProblemSetError: a file can no longer be read.
    """
    recordings = []
    for model in models:
        file = None if model.replay is None else input_path(model.replay, sweep.file)
        if file is not None and file.suffix == ".parquet" and (run := run_called(file, model.model_id)):
            days = {"first": run.first.isoformat(), "last": run.last.isoformat()}
            recordings.append({"alias": model.alias, "model": run.model, **days})
    return recordings


def check_sets(sweep: Sweep, models: Sequence[Model], sets: Mapping[str, Sequence[TrialSource]]) -> None:
    """Refuse problems that cannot be asked, and models whose tokens a minute do not suffice for them.

    Each model has the longest reply that it may give; `sets` are what it is asked, by alias.

    Raises:
        ConfigError: names the condition or model, and the way out.
        ProblemSetError: a set can no longer be read.
    """
    _check_wordings(sweep, models, sets)
    _check_chats(models, sets)
    for condition in sweep.conditions:
        if condition.digits:
            matching = (sets[model.alias] for model in models if condition.asks(model.alias))
            problems = {source.problems.path: source.problems for sources in matching for source in sources}
            _check_answers(condition, problems.values())
    for model in models:
        _check_tokens(model, sweep.conditions_of(model.alias), sets[model.alias])


def _check_wordings(sweep: Sweep, models: Sequence[Model], sets: Mapping[str, Sequence[TrialSource]]) -> None:
    """Refuse problems that their suite has no words for under a condition: a task may have no rule."""
    worded = {
        source.problems.path: source.problems
        for model in models
        for source in sets[model.alias]
        if any(SUITES[suite].asking is not None for suite in source.tasks)
    }
    kinds_in = {path: problems.kinds() for path, problems in worded.items()}
    for condition in sweep.conditions:
        kinds = {
            pair
            for model in models
            if condition.asks(model.alias)
            for source in sets[model.alias]
            for pair in kinds_in.get(source.problems.path, ())
        }
        complaints = {
            asking.complaint(kind, condition.style, condition.digits)
            for suite, kind in kinds
            if condition.is_for(suite) and (asking := SUITES[suite].asking)
        }
        if faults := sorted(filter(None, complaints)):
            more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
            raise ConfigError(
                f"condition {condition.name!r}: {'; '.join(faults[:3])}{more}. Remove these problems, or use "
                "a sweep of its own for those that work with this condition."
            )


def _check_chats(models: Sequence[Model], sets: Mapping[str, Sequence[TrialSource]]) -> None:
    """Refuse questions that are chats for a model whose wire format has no roles."""
    for model in models:
        if model.api != "completions":
            continue
        for source in sets[model.alias]:
            if all(SUITES[suite].asking is not None for suite in source.tasks):
                continue  # no chats among their questions
            questions = (batch["question"] for batch in source.batches(["question"]))
            if any(chat_in(str(text)) for column in questions for text in column):
                raise ConfigError(
                    f"{model.alias}: questions of {source.problems.name} are chats, and `api: completions` "
                    "sends plain text, without roles. Use `api: chat`, or write each chat as one text."
                )


def _check_answers(condition: Condition, sets: Iterable[ProblemSet]) -> None:
    """Refuse an answer that would be graded wrong after its numbers were brought back to plain digits."""
    for problem in (problem for problems in sets for problem in problems.read()):
        if not condition.is_for(problem.suite):
            continue
        reply = Reply(text=rewritten(problem.expected, condition.digits))
        if graded(problem, reply, condition)[0].exact_match:
            continue
        if graded(problem, Reply(text=problem.expected), Condition(style=condition.style))[0].exact_match:
            raise ConfigError(
                f"condition {condition.name!r}: the answer {problem.expected!r:.60} of problem "
                f"{problem.problem_id} ({problem.suite}, {problem.task}) does not survive `digits: "
                f"{', '.join(condition.digits)}`. Use another form, or ask these problems in another sweep."
            )


def _check_tokens(model: Model, conditions: Sequence[Condition], sets: Sequence[TrialSource]) -> None:
    """Refuse a model whose largest request would never be admitted as its limits say."""
    limits, reply = model.limits, model.max_tokens or 0
    if (limits.tpm, limits.input_tpm) == (None, None):
        return
    characters = (
        characters_before_question(model, condition)
        + most_characters(condition, suite, source.problems.longest_question)
        for source in sets
        for suite in source.tasks
        for condition in conditions
        if condition.is_for(suite)
    )
    sent = max(characters, default=0) // CHARACTERS_PER_TOKEN
    together = max(sent, reply) if limits.counts == "demanded" else sent + reply
    # Of output tokens alone a call may leave a debt: Anthropic's injected max_tokens is never used up.
    for key, per_minute, worst in (("tpm", limits.tpm, together), ("input_tpm", limits.input_tpm, sent)):
        if per_minute is not None and worst > per_minute * limits.fraction:
            way_out = "use shorter questions" if key == "input_tpm" else "lower `max_tokens`"
            raise ConfigError(
                f"{model.alias}: one request may need {worst:,} tokens, but its `{key}` is "
                f"{per_minute * limits.fraction:,.0f} tokens per minute. Raise `{key}`, or {way_out}."
            )


def raise_file_limit(models: Sequence[Model], *, most_in_flight: int = MOST_IN_FLIGHT) -> tuple[Model, ...]:
    """Let this process open a connection for every call that may be in flight.

    Return the models. Those that set no `concurrency` share what the system allows beside the others: each
    lane gets at most `most_in_flight` calls.

    Raises:
        ConfigError: the system does not allow that many.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        concurrencies = dict[str, int | None]()
        for model in models:
            lane = model.turn or model.limits.group or model.alias
            concurrencies[lane] = max(
                filter(None, (concurrencies.get(lane), model.limits.concurrency)), default=None
            )
        unset = sum(concurrency is None for concurrency in concurrencies.values())
        remaining = hard - SPARE_FILES - sum(filter(None, concurrencies.values()))
        share = max(LEAST_IN_FLIGHT, min(most_in_flight, remaining // max(1, unset)))
        models = [replace(model, limits=replace(model.limits, most=share)) for model in models]
    lanes = Counter[str]()
    for model in models:
        lane = model.turn or model.limits.group or model.alias
        lanes[lane] = max(lanes[lane], model.limits.most_in_flight)
    open_files_for(sum(lanes.values()))
    return tuple(models)


def open_files_for(calls: int) -> None:
    """Let this process open a connection for each of so many calls; raises ConfigError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = calls + SPARE_FILES
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise ConfigError(
            f"this sweep may need {needed:,} open files and connections, but the system allows {hard:,}. "
            "Lower `concurrency`, or raise the hard limit (`ulimit -Hn`)."
        )
    if needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
