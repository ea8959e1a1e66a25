"""Headings of tables, each with its meaning: the same in every report and on the page."""

from collections.abc import Mapping
from typing import Final

ACCURACY: Final = "accuracy (95 % CI)"
ANSWERED: Final = "accuracy when it answered"
LOST: Final = "no usable reply (lost)"
BEST_CASE: Final = "best case (lost counted right)"
RIGHT_90: Final = "90 % right up to"
RIGHT_50: Final = "50 % right up to"
PER_CORRECT: Final = "cost per correct answer"
PER_1000_CORRECT: Final = "cost per 1,000 correct"
EXACT_MATCH: Final = "exact match (95 % CI)"
MEAN_SCORE: Final = "mean score (95 % CI)"
SCORED_ONLY: Final = (
    "No reply is correct, but scores are above 0: read the mean score. A score alone is correct only at 1. A "
    "grader may return `correct` beside it."
)
FORMAT: Final = "follows format"
COST_KNOWN: Final = "cost known"
MEDIAN_TTFT, P95_TTFT = "median TTFT", "p95 TTFT"
MEDIAN_LATENCY, P95_LATENCY = "median latency", "p95 latency"
PASS_AT_K, MAJORITY_AT_K, PASS_HAT_K = "pass@k (95 % CI)", "majority@k (95 % CI)", "pass^k (95 % CI)"
BOUND_BY: Final = "limited by"
KEPT_SLO: Final = "kept the SLO"
PER_1000_ANSWERS: Final = "cost per 1,000 answers"
BESIDE_BEST, BEST_ACCURACY = "beside the best (95 % CI)", "its accuracy (95 % CI)"
BESIDE_PLAIN, BESIDE_NONE = "beside plain (95 % CI)", "beside none (95 % CI)"
BESIDE_CHAT, FOLLOWED = "beside chat (95 % CI)", "no wrong line (95 % CI)"
FIRST_LINES: Final = {  # heading → the first and the last executed line; None: all that follow
    "line 1": (1, 1),
    "lines 2-5": (2, 5),
    "lines 6-10": (6, 10),
    "lines 11-20": (11, 20),
    "lines 21-50": (21, 50),
    "from line 51": (51, None),
}
BY_REMAINDER: Final = tuple(f"length % 3 = {rest} (95 % CI)" for rest in range(3))
TOKENS_BY_REMAINDER: Final = tuple(f"tokens per digit at {rest}" for rest in range(3))
BY_PAIR: Final = ("9.11 < 9.9 (95 % CI)", "9.1 < 9.23 (95 % CI)", "8.5 < 9.1 (95 % CI)")
BESIDE_LIGHTEST: Final = "beside the lightest (95 % CI)"

HEADINGS: Final[Mapping[str, str]] = {
    # what is compared
    "rank": "models with the same rank are statistically tied with the best model of that rank",
    "sweep": "its folder, below the one that is listed",
    "models": "their aliases",
    "model": "its alias; with condition and run where the model has several",
    "suite": "the suite of the problems",
    "suite/task": "the task, after its suite",
    "task": "the task",
    "outcome": "what became of a trial: correct, wrong, no_answer, truncated, refused or failed",
    "status": "how an attempt ended",
    "variants": "ways in which the model was asked: its parameters crossed with the conditions",
    "best variant": "the variant with the highest accuracy, by what differs in it",
    "setting": "the parameter or condition that was varied",
    "value": "what the parameter of `--by` was set to, or the value of its expression",
    "format": "how the numbers are written: `digits` of the condition",
    "style": "`chat`: the plain question; `rules`: with a procedure to carry out line by line",
    "worked examples": "how many stand before the question: `shots` of the condition",
    "effort": "the reasoning effort that was asked for",
    # trials
    "planned": "trials of the whole sweep",
    "trials": "trials with a result",
    "done": "trials with a result, failed ones included",
    "open": "trials without a result that the next run asks",
    "skipped": "trials that `stop_when` made unnecessary",
    "failed": "trials without any reply",
    "in flight": "calls sent that have not ended; of a step, their mean",
    "problems": "problems that are counted: in a comparison, those that both models were asked",
    "question": "the question, as it was asked",
    "expected": "the right answer",
    "answer": "what the grader read in the reply",
    "operands": "the numbers of the question",
    "end of the reply": "the last characters of the reply",
    "trial": "its trial_id",
    "cell": "trials of one condition, task and length",
    "rule": "the part of `stop_when` that held",
    "accuracy when stopped (always-valid 95 % CI)": "valid although the rule was checked again and again",
    "position": "the letter of a choice, as it was asked",
    "part": "the part of a number: integer, decimals, numerator, denominator or exponent",
    "digits wrong": "digits that are wrong or missing, of all digits of the part in the right answers",
    "worst place": "the place with the most wrong digits: from the first decimal, else from the last digit",
    "wrong there (95 % CI)": "the share of wrong digits at that place, over all lengths",
    "right there": "trials in which this letter is right",
    "of trials": "their share of the trials that `choice` graded",
    "chosen": "trials whose answer is this letter, right or wrong",
    "of answers (95 % CI)": "their share of the trials with an answer",
    # right and wrong
    ACCURACY: "correct answers over all trials, lost ones included",
    ANSWERED: "correct answers over the trials in which the model gave an answer",
    LOST: "trials whose call failed (network error) or whose reply was cut off (truncated)",
    BEST_CASE: "the accuracy if every lost trial had been right",
    RIGHT_90: "the length at which accuracy drops to 90 %, in the model's hardest task",
    RIGHT_50: "the length at which accuracy drops to 50 %, in the model's hardest task",
    MEAN_SCORE: "mean of the scores from 0 to 1 that a grader of your own gave; no reply counts as 0",
    FORMAT: "replies in the format that the question asks for",
    "accuracy by model": "correct answers over all trials; of several models, the lowest and the highest",
    EXACT_MATCH: "answers that equal the right one; of a model over all tasks, the mean of the tasks",
    "k": "how many answers to each problem are looked at",
    PASS_AT_K: "chance that at least one of k answers to a problem is right",
    MAJORITY_AT_K: "chance that the most frequent of k answers to a problem is right",
    PASS_HAT_K: "chance that all of k answers to a problem are right",
    "A accuracy": "of model A on these problems",
    "B accuracy": "of model B on these problems",
    "both right": "trials that both models got right",
    "only A right": "trials that only A got right",
    "only B right": "trials that only B got right",
    "neither right": "trials that neither model got right",
    "A − B (95 % CI)": "difference in accuracy, in percentage points",
    "p": "chance of a difference this large if both models were equally good",
    "p (Holm)": "p, corrected for looking at several rows",
    "A − B": "difference in accuracy, in percentage points",
    "A trials": "all trials of model A",
    "B trials": "all trials of model B",
    BESIDE_BEST: "difference in accuracy to the best model, on the variants that both have, in points",
    BEST_ACCURACY: "the accuracy of the best variant",
    "beside the first (95 % CI)": "difference in accuracy to the first value, in percentage points",
    BESIDE_PLAIN: "difference in accuracy to plain digits, in percentage points, on the same problems",
    BESIDE_CHAT: "difference in accuracy to the plain question, in percentage points, on the same problems",
    BESIDE_NONE: "difference in accuracy to no worked examples, in percentage points, on the same problems",
    **{
        heading: f"accuracy where the length divided by 3 leaves {rest}; many tokens have three digits"
        for rest, heading in enumerate(BY_REMAINDER)
    },
    **{
        heading: f"input tokens of a digit of the operands where the length leaves {rest}; an estimate"
        for rest, heading in enumerate(TOKENS_BY_REMAINDER)
    },
    **dict(
        zip(
            BY_PAIR,
            (
                "accuracy where decimals are alike before the point, and the smaller looks larger behind it",
                "accuracy where decimals are alike before the point, and the larger looks larger behind it",
                "accuracy where decimals differ before the point",
            ),
            strict=True,
        )
    ),
    "p (unpaired)": "p of a test that does not use the common problems",
    "this model": "its own figure",
    "published model": "the figure that the document prints of the closest model",
    # grades
    "grader": "the grader",
    "version": "of the grader, stored → today",
    "grades": "replies that it graded",
    "changed": "how many differ from the stored ones",
    "correct before": "by the stored grades",
    "correct now": "by today's graders",
    "before": "the stored outcome",
    "now": "the outcome by today's graders",
    "before → now": "the stored outcome and today's",
    "answer before": "the answer in the stored grade",
    "answer now": "the answer that today's grader reads",
    # wrong answers
    "kind": "the kind of error",
    "meaning": "what the kind means",
    "example": "expected value → answer",
    "answers": "wrong answers of this kind; each answer counts once, for the first kind that matches",
    "share": "part of the examined answers",
    "most in": "the task with the most of them",
    "all matches": "answers that match this kind, also if an earlier kind matches them",
    "most frequent kinds": "with their share of the examined answers",
    "wrong": "trials with a wrong answer",
    "digits": "digits of the answer that are right, of those expected",
    "no answer": "trials with a reply in which no answer was found",
    "examined": "wrong answers that were sorted into kinds",
    "unclassified": "examined answers that match no kind",
    "too short": "wrong numbers with too few digits",
    "too long": "wrong numbers with too many digits",
    "compared": "wrong numbers laid beside the expected one, digit by digit",
    "unbeaten on cost": "no other model is as accurate for less, or more accurate for the same",
    "unbeaten on tokens": "the same for reasoning tokens",
    # rules that are carried out
    "rule replies": "replies to a question with a rule to carry out",
    FOLLOWED: "replies that have all values of the executed rule, in their order",
    "right of these": "part of the replies without a wrong line whose answer is right",
    "right of the others": "part of the replies with a wrong line whose answer is right all the same",
    "another value": "part of the replies whose first wrong line gives a variable another value",
    "another line": "part of the replies that first go on with another line of the rule, or another variable",
    "ended before": "part of the replies that end, or go on to their answer, before the rule does",
    "no line": "part of the replies that have no line of the rule and no value",
    "median line": "the place of the first wrong line among the lines that are executed, median",
    **dict.fromkeys(FIRST_LINES, "part of the replies whose first wrong line is here"),
    "routine": "the procedure that is carried out",
    "line": "a line of the rule",
    "of first wrong lines": "part of all first wrong lines",
    "executed": "what the line gives, in the reply where it is shortest",
    "found": "what that reply has instead",
    # time, tokens and money
    "input tokens": "as billed by the provider",
    "output tokens": "as billed by the provider, reasoning included",
    "reasoning tokens": "the part of the output that is reasoning",
    "reasoning tokens per trial": "mean of the trials that tell them",
    "input tokens per trial": "mean of the trials that tell them",
    "tokens per operand": "input tokens of a number of the question; an estimate",
    "output tokens per trial": "mean of the trials that tell them",
    "cost": "USD, without what has no known cost",
    COST_KNOWN: "how many of them have a known cost",
    "cost unknown": "attempts without a known cost",
    "share of cost": "part of all dollars",
    "input from cache": "part of the input tokens that was read from a cache",
    "spent on retries": "part of the dollars for attempts after a trial's first",
    "correct answers": "right answers asked for in this folder",
    PER_CORRECT: "USD for each right answer, wrong answers paid as well",
    PER_1000_CORRECT: "USD for a thousand right answers, wrong answers paid as well",
    "cost per 1,000 trials": "USD, of the trials with a known cost",
    "attempts": "calls made, retries included",
    MEDIAN_TTFT: "time to first token, in seconds",
    P95_TTFT: "95 % of the first tokens came within this time",
    MEDIAN_LATENCY: "seconds from sending a call to its last byte",
    P95_LATENCY: "95 % of the calls took no longer",
    "why": "why the cost is unknown",
    "worst case": "the most that they can have cost",
    "uncached input": "input tokens that were not read from a cache",
    "cached input": "input tokens that were read from a cache",
    "cache write (5 min)": "input tokens written to a cache for 5 minutes",
    "cache write (1 h)": "input tokens written to a cache for an hour",
    "output": "output tokens, reasoning included",
    "reasoning (part of output)": "the part of the output that is reasoning",
    "kind unknown": "cost that the provider did not split",
    "replies": "replies without a token count",
    "characters": "of these replies",
    "characters per token": "measured on the model's other replies, or assumed",
    "output tokens (estimate)": "characters divided by characters per token",
    "budget": "whose budget it is",
    "spent": "USD that calls of known cost took",
    "unknown cost": "the most that calls of unknown cost can have taken",
    "limit": "USD that may be spent",
    "used": "part of the limit; unknown costs count as their worst case",
    "reserved": "USD set aside for calls that have not ended",
    "measure": "what was forecast",
    "forecast": "the median of the forecast",
    "90 % range": "from the 5th to the 95th percentile of the forecast",
    "actual": "what came",
    "in range": "whether it came within the 90 % range",
    "other attempts": "attempts that gave no answer, with their cost",
    # providers
    "accuracy of answers (95 % CI)": "correct answers over the calls that were answered",
    "beside the best (95 % CI)": "difference in accuracy to the first model, in points, on the same problems",
    "declined": "replies in which the model refused to answer",
    "tokens/s of a call": "output tokens a second from the first one on, median of the calls",
    "age": "time since the last answer; of a batch, since it was begun",
    "connecting": "seconds that a new connection took, median",
    "calls": "calls in real time; those that warm up a load are left out",
    "availability (95 % CI)": "answers of all calls",
    "Retry-After": "seconds that refusals asked to wait, median",
    "went through after it": "first calls after that time that were not refused",
    "limit promised": "what the sweep says: `rpm`, `tpm`",
    "limit in force": "in the end: as promised, or as the provider's headers told, whichever is less",
    "limit found": "most answers a minute while some calls were refused",
    "most answered": "most answers a minute",
    "highest rate": "the highest rate that surely kept the SLO",
    "stopped by": "what kept the next rate from it",
    "served model": "who answered, as replies name it; of several, how many, and how often it changed",
    "fingerprint": "the deployment that answered; likewise",
    "upstream": "the provider behind a router; likewise",
    "fastest hour (95 % CI)": "the hour (UTC) of the least median latency",
    "slowest hour (95 % CI)": "the hour (UTC) of the greatest median latency",
    # rate limits
    "lane": "the models that share a rate limit",
    "at (UTC)": "when the minute or hour began",
    "time running": "how long the lane ran, as hours:minutes:seconds",
    "requests": "calls sent",
    "RPM used": "part of the requests per minute that the limit allows",
    "TPM used": "part of the tokens per minute that the limit allows",
    "input TPM used": "part of the input tokens per minute that the limit allows",
    "output TPM used": "part of the output tokens per minute that the limit allows",
    "refused": "calls that the server refused (429, 503 or 529)",
    "most in flight": "the most calls open at once",
    BOUND_BY: "what the lane waited for most",
    # workers
    "worker": "the process that made the calls",
    "calls made": "by the worker, those that warm up a load included",
    "calls per s": "calls a second: in a report while it worked, in `status` in the last ten seconds",
    "of all calls": "part of the calls that all workers made in the last ten seconds",
    "lost calls": "calls without an end, for their worker died",
    "busiest minute": "calls a second of the 60 seconds in which the worker made the most",
    "lag ms": "how late its event loop was at worst in the last ten seconds, in milliseconds",
    **{
        f"lag {name} ms": f"how late its event loop was during a call, in milliseconds; {meaning}"
        for name, meaning in (("p50", "median"), ("p99", "99 % were no later"), ("max", "the worst"))
    },
    "deaths": "how often its process died and another took its place",
    # load
    "step": "the rate that was asked for, with its pattern where they differ; all repeats together",
    "steps": "how often the rate was measured",
    "verdict": "whether the promised share of calls surely kept the SLO",
    "due per s": "calls a second that were due",
    "answered per s": "answers a second that came within the step",
    "goodput per s": "of these, answers that kept the SLO",
    "seconds": "how long the step lasted, without warm-up and drain",
    KEPT_SLO: "part of all calls that were due, with its 95 % interval",
    "unfinished": "calls without an end when the step was over",
    "dropped": "calls that were never sent, for too many were in flight",
    "tokens per s": "output tokens of the answers, a second",
    "tokens per s per user": "the same for each caller; at a rate, for each call in flight",
    "tokens per s per GPU": "the same for each GPU of the server, where `gpus` of the load tells them",
    PER_1000_ANSWERS: "USD of all calls, for a thousand answers",
    **{
        f"{name} {percentile}": f"{meaning}; {words} of the calls took no longer"
        for name, meaning in (
            ("TTFT", "seconds from the due time to the first token"),
            ("TPOT", "seconds for an output token after the first"),
            ("latency", "seconds from the due time to the end of the answer"),
        )
        for percentile, words in (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
    },
    "late p99": "seconds from the due time to the request, connecting apart; 99 % were no later",
    "graded answers": "answers that came, those of the warm-up left out",
    BESIDE_LIGHTEST: "difference in accuracy to the step of the lowest rate, in percentage points",
    "other texts": "answers at temperature 0 whose text is not that of the lightest step",
}
