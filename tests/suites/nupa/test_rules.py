"""The rules are right: carried out as they stand, they answer every problem that they are for."""

from itertools import islice

from asyncbench.suites.nupa.suite import CALLS, ROUTINES, RULES, question_of_rule, rule, rule_prompt
from asyncbench.suites.nupa.tasks import TASKS, NupaTask
from tests.rows import each_row
from tests.suites.nupa.drafts import drafts_of

COVERED = [task for task in TASKS.values() if (task.task, task.representation) in RULES]


def test_as_many_rules_and_tasks_are_covered_as_in_the_paper():
    assert (len(RULES), len(COVERED)) == (22, 31)
    assert {name for named in RULES.values() for name in ROUTINES if name in rule_calls(named)} == set(
        ROUTINES
    )


def rule_calls(name: str) -> set[str]:
    return {name}.union(*(rule_calls(called) for called in CALLS.get(name, ())))


@each_row("task", COVERED)
def test_carrying_a_rule_out_gives_the_answer(task: NupaTask):
    named: dict[str, object] = {}
    exec(rule(task.task, task.representation), named)  # noqa: S102  it is our own, and short
    follow = named[RULES[task.task, task.representation]]
    for length in task.lengths[:: max(1, len(task.lengths) // 6)]:
        problems = list(islice(drafts_of(task, length, seed=2), 3))
        assert problems
        for problem in problems:
            assert follow(*problem.operands) == problem.expected, problem.operands  # type: ignore[operator]  # `named` may hold anything


@each_row("name", [task.name for task in COVERED])
def test_the_question_stands_in_the_prompt_without_its_equals_sign_and_is_found_again(name):
    task = TASKS[name]
    problem = next(drafts_of(task, 5, seed=1))
    asked = rule_prompt(problem.question, task=task.task, representation=task.representation)
    assert asked.startswith("Follow the given rule to solve the question.\n")
    assert f"\nQ: {problem.question.removesuffix(' =')}\n\n## Response:\n" in asked
    assert rule(task.task, task.representation) in asked
    assert question_of_rule(asked) == problem.question
    assert question_of_rule(problem.question) is None
