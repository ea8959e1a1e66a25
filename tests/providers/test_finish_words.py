"""How a reply ended, by the words of all vendors and of servers that people run. Add a word: one line."""

from collections.abc import Callable
from typing import Any

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.endpoints import Quirks, known_endpoints
from asyncbench.providers.finish_words import finish_word, judged
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.openai.wires import ChatWire, CompletionsWire, ResponsesWire
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Finish, Outcome, Reply, finish_of, outcome_of
from tests.rows import each_row

GEMINI = (
    "STOP | MAX_TOKENS CONTINUATION | SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII "
    "MODEL_ARMOR ESCALATION IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION | "
    "OTHER MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
    "MISSING_THOUGHT_SIGNATURE IMAGE_OTHER NO_IMAGE PUP_LIMITED_DISABLED"
)
CLAUDE = "end_turn stop_sequence tool_use | max_tokens pause_turn model_context_window_exceeded | refusal |"
# As OpenAI has them, and nearly all who imitate it.
GPT = "stop tool_calls function_call | length | content_filter |"
# Whose words → the ended | the truncated | the refused | the broken.
WORDS = {
    "openai": GPT,
    "openai responses": "completed | incomplete max_output_tokens max_messages steered | content_filter | "
    "failed cancelled queued in_progress",
    "azure": GPT,
    "azure-entra": GPT,
    "anthropic": CLAUDE,
    "vertex-anthropic": CLAUDE,
    "bedrock": CLAUDE,
    "bedrock converse": "end_turn stop_sequence tool_use | max_tokens model_context_window_exceeded | "
    "guardrail_intervened content_filtered | malformed_model_output malformed_tool_use",
    "bedrock titan": "FINISHED FINISH STOP_CRITERIA_MET | LENGTH | CONTENT_FILTERED |",
    "google": GEMINI,
    "vertex": GEMINI,
    "gemini": f"stop {GEMINI} ".replace(" | SAFETY", " length | SAFETY"),
    "gemini, blocked": "| | content_filter:SPII content_filter:PROHIBITED_CONTENT content_filter:Safety |",
    "cohere": "COMPLETE STOP_SEQUENCE TOOL_CALL | MAX_TOKENS ERROR_LIMIT | ERROR_TOXIC | "
    "ERROR USER_CANCEL TIMEOUT",
    "mistral": "stop tool_calls | length model_length | | error",
    "deepseek": "stop tool_calls | length | content_filter | insufficient_system_resource",
    "zai": "stop tool_calls | length model_context_window_exceeded | sensitive | network_error",
    "minimax": GPT,
    "moonshot": GPT,
    "dashscope": GPT,
    "hunyuan": "stop tool_calls | length | sensitive |",
    "baidu": "normal stop function_call | length | content_filter |",
    "gigachat": "stop function_call | length | blacklist | error",
    "xai": "stop end_turn REASON_STOP | length REASON_MAX_LEN REASON_MAX_CONTEXT REASON_TIME_LIMIT | |",
    "groq": GPT,
    "fireworks": f"{GPT} error",
    "together": "stop eos tool_calls function_call | length | |",
    "openrouter": f"{GPT} error",
    "perplexity": "stop | length | |",
    "cerebras": GPT,
    "sambanova": GPT,
    "huggingface": "stop eos_token stop_sequence | length | |",
    "watsonx": "EOS_TOKEN STOP_SEQUENCE | MAX_TOKENS TOKEN_LIMIT TIME_LIMIT NOT_FINISHED | | CANCELLED ERROR",
    "ai21": "stop endoftext | length | |",
    "aleph-alpha": "end_of_text stop_sequence_reached | maximum_tokens | |",
    "yandex": "ALTERNATIVE_STATUS_FINAL | ALTERNATIVE_STATUS_TRUNCATED_FINAL ALTERNATIVE_STATUS_PARTIAL | "
    "ALTERNATIVE_STATUS_CONTENT_FILTER |",
    "vllm": "stop tool_calls | length repetition | | abort error",
    "sglang": "stop tool_calls | length | | abort",
    "llamacpp": "stop tool_calls word eos | length limit | |",
    "ollama": "stop tool_calls | length | | load unload",
    "lmstudio": "stop tool_calls eosFound stopStringFound toolCalls | length maxPredictedTokensReached "
    "contextLengthReached | | userStopped modelUnloaded failed",
    "tgi": "eos_token stop_sequence | length | |",
    "tensorrt-llm": "stop end_id | length | | timeout cancelled",
    "deepinfra": GPT,
    "novita": GPT,
    "maritaca": GPT,
    "http": GPT,
    "simulated": GPT,
    "simulated-anthropic": CLAUDE,
    "simulated-http": GPT,
    "spellings": "Stop END_TURN end-turn EndTurn FinishReason.STOP FINISH_REASON_STOP ChatFinishReason.Stop "
    "| MAX-TOKENS maxTokens FinishReason.MAX_TOKENS finish_reason_max_tokens | Content-Filter ContentFilter "
    "| Abort ERROR error:upstream",
}
ALL = [
    pytest.param(word, finish, id=f"{vendor} {word}")
    for vendor, words in WORDS.items()
    for finish, column in zip(Finish, words.split("|"), strict=True)
    for word in column.split()
]


@each_row(("word", "finish"), ALL)
def test_a_word_of_a_vendor_is_known(word, finish):
    assert finish_of(word) is finish


def test_every_endpoint_has_its_words():
    assert {name for name in known_endpoints() if name not in (*WORDS, "python")} == set()


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("stop", "stop"),
        (None, None),
        ("", None),
        ("null", None),
        ("None", None),
        ([], None),
        ({}, None),
        (["length"], "length"),
        ({"type": "length", "length": 64}, "length"),
        ({"type": "stop", "matched": 151645}, "stop"),
        ({"reason": "endoftext"}, "endoftext"),
        (2, "2"),
        (True, None),
    ],
    ids=str,
)
def test_a_finish_reason_is_read_however_it_is_written(written, word):
    assert finish_word(written) == word


def response():
    return Response(status=200, headers={}, body=b"")


# Wire → a whole body with a text and a finish reason; the events of a stream with both.
BODIES = {
    "chat": lambda text, word: {"choices": [{"message": {"content": text}, "finish_reason": word}]},
    "completions": lambda text, word: {"choices": [{"text": text, "finish_reason": word}]},
    "messages": lambda text, word: {"content": [{"type": "text", "text": text}], "stop_reason": word},
    "contents": lambda text, word: {
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": word}]
    },
    "responses": lambda text, word: {
        "status": "incomplete",
        "incomplete_details": {"reason": word},
        "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
    },
}
EVENTS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "chat": lambda text, word: [{"choices": [{"delta": {"content": text}, "finish_reason": word}]}],
    "completions": lambda text, word: [{"choices": [{"text": text, "finish_reason": word}]}],
    "messages": lambda text, word: [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": word}},
        {"type": "message_stop"},
    ],
    "contents": lambda text, word: [BODIES["contents"](text, word)],
    "responses": lambda text, word: [
        {"type": "response.incomplete", "response": BODIES["responses"](text, word)}
    ],
}
WIRES: dict[str, Wire] = {
    "chat": ChatWire(Quirks()),
    "completions": CompletionsWire(Quirks()),
    "messages": MessagesWire(),
    "contents": ContentsWire(),
    "responses": ResponsesWire(),
}


def read(api, text, word, told):
    return WIRES[api].reply(BODIES[api](text, word), told)


def read_stream(api, text, word, told):
    assembly = WIRES[api].stream(told)
    for event in EVENTS[api](text, word):
        assembly.feed(event)
    return assembly.complete()


ON_ALL_WIRES = [
    ("MAX_TOKENS", Outcome.TRUNCATED),
    ("max-tokens", Outcome.TRUNCATED),
    ({"type": "length", "length": 9}, Outcome.TRUNCATED),
    ("SAFETY", Outcome.REFUSED),
    ("PROHIBITED_CONTENT", Outcome.REFUSED),
    ("sensitive", Outcome.REFUSED),
    ("content_filter: RECITATION", Outcome.REFUSED),
    ("network_error", None),
    ("abort", None),
    ("OTHER", None),
]


@each_row("way", [read, read_stream])
@each_row("api", WIRES)
@each_row(("word", "outcome"), ON_ALL_WIRES)
def test_a_word_means_the_same_on_every_wire(api, way, word, outcome):
    """None of them is a wrong answer; where there is no outcome, the generation broke and is asked again."""
    if outcome is not None:
        reply = way(api, "Let me add 12", word, response())
        assert outcome_of(reply, answer="12", exact_match=False) is outcome
        return

    with pytest.raises(ProviderError) as caught:
        way(api, "Let me add 12", word, response())

    assert (caught.value.kind, caught.value.may_have_been_billed) == (ErrorKind.SERVER_ERROR, True)


@pytest.mark.parametrize("way", [read, read_stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", WIRES)
def test_an_unknown_word_is_noted(api, way):
    told = response()
    way(api, "42", "brand_new; reason", told)

    assert set(told.notes) == {"unknown finish reason 'brand_new, reason' was ignored"}


# A word that no document names, and what its parts tell.
PARTS = {
    "refused": "safety_filter content_moderation risk_control policy_violated answerBlocked",
    "broken": "upstream_error provider_error client_disconnect request_cancelled OUT_OF_MEMORY",
    "truncated": "kv_cache_full length_limit max_num_tokens maxTime context_overflow input_too_long",
}


@pytest.mark.parametrize(
    ("word", "finish"), [(word, finish) for finish, words in PARTS.items() for word in words.split()]
)
def test_the_parts_of_an_unknown_word_tell_its_meaning(word, finish):
    assert finish_of(word) == finish
    told = response()
    if finish != "broken":  # which says its word itself
        judged(word, told)
        assert told.notes == [f"unknown finish reason {word!r} was read as {finish}"]


def test_an_object_that_says_why_a_generation_broke_is_believed():
    cause = {
        "type": "abort",
        "message": "input is longer than the model's context length",
        "status_code": 400,
    }

    with pytest.raises(ProviderError, match="context length") as caught:
        judged(cause, response())

    assert caught.value.kind is ErrorKind.TOO_LONG


def test_an_error_beside_a_chunk_ends_its_stream_whatever_follows():
    """Groq tells it so, and then `[DONE]`."""
    assembly = WIRES["chat"].stream(response())
    assembly.feed({"choices": [{"delta": {"content": "4"}}]})

    with pytest.raises(ProviderError, match="over capacity"):
        assembly.feed({"choices": [], "x_groq": {"error": "over capacity"}})


BLOCKED_CHATS = [
    {"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]},
    {"choices": [{"index": 0, "message": None, "finish_reason": "SAFETY"}]},
    {"choices": [], "promptFeedback": {"blockReason": "OTHER"}},
    {"choices": None, "prompt_feedback": {"block_reason": "SAFETY"}},
    {"prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}], "choices": []},
    {"choices": [{"finish_reason": "stop", "native_finish_reason": "SAFETY", "message": {"content": ""}}]},
]


@pytest.mark.parametrize("body", BLOCKED_CHATS, ids=str)
def test_a_blocked_chat_is_refused_whole_and_streamed(body):
    whole = WIRES["chat"].reply(body, response())
    assembly = WIRES["chat"].stream(response())
    assembly.feed(body)

    for reply in (whole, assembly.complete()):
        assert outcome_of(reply, answer=None, exact_match=False) is Outcome.REFUSED


@pytest.mark.parametrize(
    ("told", "native", "kept"),
    [
        ("stop", "end_turn", "stop"),
        (None, "MAX_TOKENS", "MAX_TOKENS"),
        ("stop", "max_tokens", "max_tokens"),
        ("length", "stop", "length"),
        ("stop", "who_knows", "stop"),
        ("stop", None, "stop"),
    ],
)
def test_the_word_of_a_routers_server_counts_where_it_says_more(told, native, kept):
    choice = {"message": {"content": "4"}, "finish_reason": told, "native_finish_reason": native}

    assert WIRES["chat"].reply({"choices": [choice]}, response()).finish_reason == kept


# ── Responses: what is said on the way to the answer

MESSAGES = [("commentary", "I'll add 12 and 30."), ("final_answer", "42")]


def phased(phase, text):
    return {"type": "message", "phase": phase, "content": [{"type": "output_text", "text": text}]}


def test_commentary_is_no_part_of_an_answer():
    body = {"status": "completed", "output": [phased(*message) for message in MESSAGES]}
    reply = WIRES["responses"].reply(body, response())

    assert (reply.text, reply.reasoning) == ("42", "I'll add 12 and 30.")


@pytest.mark.parametrize("tells_all", [True, False], ids=["whole at the end", "in pieces alone"])
def test_streamed_commentary_is_no_part_of_an_answer(tells_all):
    assembly, answers = WIRES["responses"].stream(response()), []
    for index, (phase, text) in enumerate(MESSAGES):
        item = {"type": "message", "phase": phase, "content": []}
        added = {"type": "response.output_item.added", "output_index": index, "item": item}
        delta = {
            "type": "response.output_text.delta",
            "output_index": index,
            "content_index": 0,
            "delta": text,
        }
        assembly.feed(added)
        assembly.feed(delta)
        answers.append(assembly.answers)
    output = [phased(*message) for message in MESSAGES] if tells_all else []
    assembly.feed({"type": "response.completed", "response": {"status": "completed", "output": output}})
    reply = assembly.complete()

    assert (reply.text, reply.reasoning, answers) == ("42", "I'll add 12 and 30.", [False, True])


def test_a_recorded_reply_that_broke_off_counts_as_cut():
    reply = Reply(text="Let me add 12", finish_reason="network_error")

    assert outcome_of(reply, answer="12", exact_match=False) is Outcome.TRUNCATED
