"""What servers of OpenAI's API refuse, in the words and the form of each.

A stand-in's `answer` asks the server of its name first: `STRICT["groq"](body)` is its refusal of a
request's body, or None. The words are those of public issues, named at each; where an issue shows
only a part, the rest has the form that the same server's other errors have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from tests.stand_ins.stand_in_model import Refuse

Body: TypeAlias = Mapping[str, Any]
Strict: TypeAlias = Callable[[Body], Refuse | None]

_OPENAI: Final = frozenset(
    {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "stop"}
    | {"max_completion_tokens", "temperature", "top_p", "seed", "logprobs", "top_logprobs", "user"}
    | {"response_format", "parallel_tool_calls", "frequency_penalty", "presence_penalty", "store"}
    | {"reasoning_effort"}
)


def _error(message: str, param: str | None = None, status: int = 400) -> Refuse:
    said = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return Refuse(status, body={"error": said})


def openai_chat(body: Body) -> Refuse | None:
    """api.openai.com with gpt-4o (TutteInstitute/toponymy#148, davidmigloz/langchain_dart#712)."""
    for name in [*(body.keys() - _OPENAI), *(body.keys() & {"reasoning_effort"})]:
        return _error(f"Unrecognized request argument supplied: {name}")
    return None


def openai_reasoning(body: Body) -> Refuse | None:
    """api.openai.com with o4-mini and gpt-5 (evalstate/fast-agent#279)."""
    for name in body.keys() - _OPENAI:
        return _error(f"Unrecognized request argument supplied: {name}")
    for name, fix in (("parallel_tool_calls", ""), ("max_tokens", "max_completion_tokens")):
        if name in body:
            use = f" Use '{fix}' instead." if fix else ""
            said = f"Unsupported parameter: '{name}' is not supported with this model.{use}"
            return _error(said, name)
    if body.get("reasoning_effort") == "none":
        values = "'minimal', 'low', 'medium', and 'high'"
        said = f"Unsupported value: 'none' is not supported with this model. Supported: {values}."
        return _error(f"'reasoning_effort': {said}", "reasoning_effort")
    if "temperature" in body:
        said = "Unsupported value: 'temperature' does not support 0.2 with this model."
        return _error(f"{said} Only the default (1) value is supported.", "temperature")
    return None


def mistral(body: Body) -> Refuse | None:
    """api.mistral.ai (dnakov/anon-kode#53, editor-code-assistant/eca#231)."""
    taken = _OPENAI - {"stream_options", "max_completion_tokens", "logprobs", "top_logprobs"}
    wrong = [
        {
            "type": "extra_forbidden",
            "loc": ["body", name, *(body[name] if isinstance(body[name], dict) else ())][:3],
            "msg": "Extra inputs are not permitted",
            "input": body[name],
        }
        for name in body.keys() - (taken - {"reasoning_effort"})
    ]
    said = {"object": "error", "message": {"detail": wrong}, "type": "invalid_request_error"}
    return Refuse(422, body={**said, "param": None, "code": None}) if wrong else None


def groq(body: Body) -> Refuse | None:
    """api.groq.com (immersive-translate/immersive-translate#3016, fanenr/chatbot#21)."""
    for name in sorted(body.keys() - _OPENAI):
        said = f"property '{name}' is unsupported, did you mean 'temperature'?"
        return Refuse(400, body={"error": {"message": said, "type": "invalid_request_error"}})
    if body.get("reasoning_effort") not in (None, "none", "default"):
        said = "`reasoning_effort` must be one of `none` or `default`"
        return Refuse(400, body={"error": {"message": said, "type": "invalid_request_error"}})
    if body.get("logprobs"):
        said = "`logprobs` is not supported with this model"
        return Refuse(400, body={"error": {"message": said, "type": "invalid_request_error"}})
    return None


def google(body: Body) -> Refuse | None:
    """generativelanguage.googleapis.com/v1beta/openai (HELPMEEADICE/doge-code#16)."""
    wrong = sorted(body.keys() - (_OPENAI - {"parallel_tool_calls", "seed"}))
    if not wrong:
        return None
    said = [
        f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        for name in wrong
    ]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": []}]
    error = {"code": 400, "message": "\n".join(said), "status": "INVALID_ARGUMENT"}
    return Refuse(400, body=[{"error": {**error, "details": details}}])


def xai(body: Body) -> Refuse | None:
    """api.x.ai with grok-4 (lobehub/lobehub#8389): camel case, and the error is a string."""
    for name, theirs in (("reasoning_effort", "reasoningEffort"), ("stop", "stop")):
        if name in body:
            said = f"Argument not supported on this model: {theirs}"
            return Refuse(400, body={"code": "Client specified an invalid argument", "error": said})
    return None


def vllm_old(body: Body) -> Refuse | None:
    """vLLM before 0.16 (llm-jp/llm-jp-judge#56): unknown fields are taken, "none" is no effort."""
    if body.get("reasoning_effort") not in (None, "low", "medium", "high"):
        wrong = {
            "type": "literal_error",
            "loc": ("body", "reasoning_effort"),
            "msg": "Input should be 'low', 'medium' or 'high'",
            "input": body["reasoning_effort"],
            "ctx": {"expected": "'low', 'medium' or 'high'"},
        }
        said = {"message": f"[{wrong}]", "type": "Bad Request", "param": None, "code": 400}
        return Refuse(400, body={"error": said})
    return None


def ollama(body: Body) -> Refuse | None:
    """Ollama's `/v1` with a model that has no levels (server/routes.go of 0.17.4)."""
    if body.get("reasoning_effort", "none") == "none":
        return None
    said = f'think value "{body["reasoning_effort"]}" is not supported for this model'
    return _error(said)


def deepseek(body: Body) -> Refuse | None:
    """api.deepseek.com, which has `json_object` and no schema."""
    if body.get("response_format", {}).get("type") == "json_schema":
        return _error("This response_format type is unavailable now")
    return None


def wordless(body: Body) -> Refuse | None:
    """A proxy that does not pass on why (lobehub/lobehub#18885)."""
    if body.keys() - _OPENAI:
        said = {"message": "Upstream error: 400", "type": "invalid_request_error", "param": ""}
        return Refuse(400, body={"error": {**said, "code": None}})
    return None


STRICT: Final[Mapping[str, Strict]] = {
    each.__name__: each
    for each in (
        openai_chat,
        openai_reasoning,
        mistral,
        groq,
        google,
        xai,
        vllm_old,
        ollama,
        deepseek,
        wordless,
    )
}
