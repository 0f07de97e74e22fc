"""All settings with their types, bounds and defaults.

Settings come from the environment, from `caal.toml` in the working directory, and from `caal.toml`
in the user's folder for settings; the first that has one wins. A field is set by its variable
(`num_ctx` by CAAL_NUM_CTX, `n8n_url` by N8N_URL) or by its name in a file. Example utterances and
rules about tools, which are tables, are set in files alone:

    [examples]
    get_weather = [{say = "how warm is it in Oslo", arguments = {city = "Oslo"}}]
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    JsonValue,
    SecretStr,
    ValidationError,
)

from caal_node.config.file import GivenSetting, explained, from_environment, from_file
from caal_node.config.setting_tables import (
    Answers,
    AnswersSetting,
    Checks,
    ChecksSetting,
    Cues,
    CuesSetting,
    Fallbacks,
    FallbacksSetting,
    ToolCalls,
    ToolCallsSetting,
    ToolsetTable,
    TraceSetting,
    names,
    table_of,
    toolset_tables,
)
from caal_node.core.addresses import (
    CLOUD,
    LIVEKIT_PORT,
    Api,
    ModelReference,
    canonical_url,
    ollama_url,
    parse_reference,
    server_url,
)
from caal_node.core.given_table import json_object
from caal_node.core.paths import config_folder, from_home
from caal_node.core.tool_spec import Example
from caal_node.network.policy import NetworkPolicy, parse_policy
from caal_node.policy.places import Places
from caal_node.policy.policy import Policy
from caal_node.policy.reader import ToolsTable, read_policy
from caal_node.redaction.settings import Redactions, RedactionSettings

NAME: Final = "caal.toml"
MCP_SERVERS: Final = "mcp_servers.json"
Detection: TypeAlias = Literal["complete", "streamed"]
RoomSees: TypeAlias = Literal["names", "arguments", "everything"]
_DURATION: Final = re.compile(r"-?\d+|(-?\d+(\.\d+)?(ms|s|m|h))+")
_THINK: Final = ("on", "off", "true", "false", "yes", "no", "1", "0", "low", "medium", "high")
TOKEN_MIN_CHARS: Final = 16
"""64 bits, where they are random hexadecimal digits. `mcp-bridge serve` wants as many."""
PIN_MIN_DIGITS: Final = 4
"""10,000 PINs, of which at most 24 a day can be tried: see `caal_node.tools.pin`."""
PIN_MIN_LETTERS: Final = 6
"""Letters of a phrase: one short word, which nobody says by chance."""
PIN_MAX: Final = 64
"""Letters or digits. A longer phrase is not recognised from speech as a whole."""
EMBEDDED: Final = "embedded"
"""Stands for the address of the engine that this node runs itself."""
EMBEDDED_MODEL: Final = "qwen2.5-coder-0.5b-instruct-q4_k_m"
"""The default of `model` there: a weight of the catalogue, which answers in a second on two
cores."""
PINS_MAX: Final = 100
"""Globs of pinned tools. More tools than that are no few."""
_TOOL_GLOB: Final = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,200}")
"""What a tool's name may hold, and a glob's marks. Names have 64 characters at most."""
_OBJECT_REFERENCE: Final = re.compile(r"[\w.]+:\w+")


def _tool_globs(globs: tuple[str, ...]) -> tuple[str, ...]:
    for glob in globs:
        if not _TOOL_GLOB.fullmatch(glob):
            raise ValueError("write names of tools, or globs over them, such as house__light_*")
    return globs


def _embedding(value: Any) -> Any:
    if value is False:
        return "off"
    if not isinstance(value, str) or value in ("off", "minilm"):
        return value
    reference = parse_reference(value)
    if not (reference.api or reference.base_url) or reference.api not in (None, "ollama", "openai"):
        raise ValueError("write off, minilm, ollama:model or openai:model@url")
    return reference


def _speech_part(value: str) -> str:
    if value not in ("local", "none") and not _OBJECT_REFERENCE.fullmatch(value):
        raise ValueError("write local, none, or module:factory")
    return value


def _class_name(value: str) -> str:
    if not _OBJECT_REFERENCE.fullmatch(value):
        raise ValueError("write module:Class")
    return value


def _network(value: Any) -> Any:
    return value if isinstance(value, NetworkPolicy) else parse_policy(names(value))


def _think(value: Any) -> Any:
    if str(value).lower() not in _THINK:
        raise ValueError("write on, off, low, medium or high")
    return value


def _keep_alive(value: Any) -> int | str:
    # Ollama reads a JSON number as seconds and a JSON string as a duration with a unit.
    text = str(value).strip()
    if not _DURATION.fullmatch(text):
        raise ValueError("write a duration such as 30m, seconds, or -1 for always")
    return int(text) if text.lstrip("-").isdecimal() else text


def _secret(value: SecretStr) -> SecretStr:
    if not value.get_secret_value():
        raise ValueError("it is empty; write it, or take the setting away")
    if any(char.isspace() for char in value.get_secret_value()):
        raise ValueError("there is a space or a line break inside it; copy it again")
    return value


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value()
    if len(token) < TOKEN_MIN_CHARS:
        raise ValueError(
            f"it has fewer than {TOKEN_MIN_CHARS} characters, and can be guessed; "
            "make one with: openssl rand -hex 32"
        )
    if not token.isascii() or not token.isprintable():
        raise ValueError("a header cannot hold it; make one with: openssl rand -hex 32")
    return value


def _pin(value: SecretStr) -> SecretStr:
    letters = [char for char in value.get_secret_value() if char.isalnum()]
    fewest = PIN_MIN_DIGITS if all(char.isdigit() for char in letters) else PIN_MIN_LETTERS
    if not fewest <= len(letters) <= PIN_MAX:
        raise ValueError(
            f"write {PIN_MIN_DIGITS} to {PIN_MAX} digits, or a phrase of {PIN_MIN_LETTERS} to "
            f"{PIN_MAX} letters"
        )
    return value


def _examples(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError('write a list such as [{say = "...", arguments = {}}]')
    rows = map(_ExampleRow.model_validate, cast("list[object]", value))
    return tuple(Example(row.say, row.arguments) for row in rows)


def _policy(value: Any) -> Any:
    return value if isinstance(value, Policy) else read_policy(value, Places("tools"))


def _webhooks(value: Any) -> Any:
    return json_object(value, '{"garage": {"header": "X-Key", "value": "..."}}')


def _toolsets(value: Any) -> Any:
    return toolset_tables(value)


def _n8n_url(text: str) -> str:
    from n8n.core.http import instance_url  # 0.2 s, for those who have an n8n

    # What is n8n's is judged there; what is shown and logged has no user name in it.
    return server_url(instance_url(text), ("http", "https"))


class _ExampleRow(BaseModel):
    model_config = ConfigDict(extra="forbid")
    say: Annotated[str, Field(min_length=1, max_length=500)]
    arguments: dict[str, JsonValue] = {}


OllamaUrl: TypeAlias = Annotated[str, AfterValidator(ollama_url)]
HttpUrl: TypeAlias = Annotated[str, AfterValidator(lambda s: server_url(s, ("http", "https")))]
N8nUrl: TypeAlias = Annotated[str, AfterValidator(_n8n_url)]
RoomUrl: TypeAlias = Annotated[
    str, AfterValidator(lambda s: server_url(s, ("ws", "wss", "http", "https"), LIVEKIT_PORT))
]
Secret: TypeAlias = Annotated[SecretStr, AfterValidator(_secret)]
Token: TypeAlias = Annotated[Secret, AfterValidator(_token)]
"""A secret that others show to us: whoever guesses it is let in."""
WebhookSecrets: TypeAlias = Mapping[str, Mapping[str, SecretStr]]
Part: TypeAlias = Annotated[str, AfterValidator(_speech_part)]
"""It is `local` (this project's own), `none`, or `module:factory` of somebody's own."""
ClassName: TypeAlias = Annotated[str, AfterValidator(_class_name)]
Examples: TypeAlias = Annotated[
    tuple[Example, ...],
    BeforeValidator(_examples, json_schema_input_type=list[_ExampleRow]),
    Field(max_length=20),
]


PinnedGlobs: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(names, json_schema_input_type=str | list[str]),
    AfterValidator(_tool_globs),
]


class Settings(BaseModel):
    """The settings of a node. They are immutable, and their repr never shows a secret.

    Wrong values raise pydantic's ValidationError here; `load_settings` turns it into a ConfigError.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    # The model.
    ollama_host: OllamaUrl = "http://127.0.0.1:11434"
    """Ollama's address: host, host:port or a URL."""
    api: Api = "ollama"
    """How the model's server is asked; see docs/models.md."""
    model: str = Field(
        default_factory=lambda data: (
            EMBEDDED_MODEL if data.get("api") == "embedded" else "qwen3:8b"
        ),
        min_length=1,
    )
    """The model's name on its server; `module:factory` of a LiveKit plugin's model if `api` is
    livekit, and a GGUF file if it is embedded. The default is qwen3:8b."""
    base_url: HttpUrl | None = None
    """The address of the model's server if it is not `ollama_host`."""
    api_key: Secret | None = None
    """The key of the model's server. It is better kept in .env than here."""
    num_ctx: Annotated[int, Field(ge=512, le=1 << 20)] = 8192
    """Tokens of the context. 50 compact tool schemas and a conversation fit into it; Ollama's own
    default is often too small."""
    think: Annotated[
        bool | Literal["low", "medium", "high"],
        BeforeValidator(
            _think, json_schema_input_type=bool | Literal["on", "off", "low", "medium", "high"]
        ),
    ] = False
    """It is off because a spoken answer must not wait for reasoning that nobody hears."""
    keep_alive: Annotated[int | str, BeforeValidator(_keep_alive)] = "30m"
    """How long the server keeps the model loaded after a request. People pause for longer than
    Ollama's own 5 minutes."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.2
    """It is low so that the choice of a tool repeats, and above 0 as greedy decoding can loop."""

    read_ahead: bool = False
    """Whether a server of this network reads what a person says while they still speak. It takes
    the cores that speech recognition may need."""

    tool_calls: ToolCallsSetting = ToolCalls()
    """How the model calls tools, and the limits of a turn where it is asked by text."""
    checks: ChecksSetting = Checks()
    """Which checks of the model's calls and replies are on. See docs/small-models.md."""
    fallbacks: FallbacksSetting = Fallbacks()
    """The models that answer where `model` fails."""
    model_servers: Annotated[
        tuple[HttpUrl, ...],
        BeforeValidator(names, json_schema_input_type=str | list[str]),
        Field(max_length=16),
    ] = ()
    """Addresses to which a caller of the control API may move the conversation (`/model`), beside
    those of `model` and `fallbacks`."""

    # The conversation.
    detection: Detection = "complete"
    """complete: whether a tool is called is decided by one whole reply. streamed: text is spoken as
    it comes."""
    max_tool_rounds: Annotated[int, Field(ge=1, le=20)] = 4
    """Replies with calls in one turn. The next reply can only be speech."""
    agent: ClassName | None = None
    """`module:Class` of the CaalAgent that the command line runs; by default a plain CaalAgent."""
    instructions: Path | None = None
    """A text file that replaces the built-in system prompt."""
    examples: Annotated[Mapping[str, Examples], Field(max_length=500)] = {}
    """For each tool name, words that people say for it, with the call's arguments."""

    # The tools.
    tools: Annotated[
        InstanceOf[Policy], BeforeValidator(_policy, json_schema_input_type=ToolsTable)
    ] = Policy()
    """What may be called, and by whom; see docs/safety.md."""
    # A policy that cannot be read is one with faults, and no error: reading goes on with it.
    pin: Annotated[SecretStr, AfterValidator(_pin)] | None = None
    """The PIN, digits or a phrase, of the calls whose rule says `then = "pin"`. It is better kept
    in .env than here. See docs/safety.md."""
    mcp_servers: Path = Path(MCP_SERVERS)
    """The file of MCP servers; see docs/mcp.md."""
    mcp_path: Path | None = None
    """The folder that a room works in, for servers that need one (`with_path`)."""
    tool_tokens: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    """Tokens of the schemas of all tiers together. Where they are more, the prompt begins with few
    tools, and the others are told on demand. By default they are what the model's context holds
    beside twenty turns, and at most 6,000: two cores read 3,000 in 30 s."""
    pinned_tools: Annotated[PinnedGlobs, Field(max_length=PINS_MAX)] = ()
    """Names of tools, or globs over them, that stand at the beginning of every prompt although the
    others are told on demand. See docs/discovery.md."""
    embedding: Annotated[
        Literal["off", "minilm"] | ModelReference,
        BeforeValidator(_embedding, json_schema_input_type=str),
    ] = "off"
    """The embedding by which searches for tools compare meanings as well as words: `minilm` in this
    process, or a server's model, `[api:]model@url`. See docs/discovery.md."""
    tool_timeout: Annotated[float, Field(gt=0, le=600)] = 20
    """Seconds for one call. After longer silence people think that the line is broken."""
    dry_run: bool = False
    """Whether no tool runs, and people only hear what would have been done. See docs/safety.md."""
    toolsets: Annotated[
        Mapping[str, InstanceOf[ToolsetTable]],
        BeforeValidator(_toolsets, json_schema_input_type=dict[str, dict[str, JsonValue]]),
        Field(max_length=100),
    ] = {}
    """The toolsets that are on, with their options; see docs/toolsets.md."""
    n8n_url: N8nUrl | None = None
    """n8n's address: host, host:port or a URL."""
    n8n_mcp_token: Secret | None = None
    """The token of n8n's MCP server. It is better kept in .env than here."""
    n8n_api_key: Secret | None = None
    """The key of n8n's API. It is better kept in .env than here."""
    n8n_auth: Annotated[WebhookSecrets, BeforeValidator(_webhooks), Field(max_length=500)] = {}
    """Credentials of webhooks, by path, tool name or workflow id. docs/n8n.md shows the forms."""

    # Speech and sounds.
    stt: Part = "local"
    """Speech recognition: local, none, or `module:factory` of your own."""
    tts: Part = "local"
    """The voice: local, none, or `module:factory` of your own."""
    vad: Part = "local"
    """Detection of speech: local, none, or `module:factory` of your own."""
    answers: AnswersSetting = Answers()
    """What it answers of what it hears: always, addressed, names of its own, such as `Olly`, which
    may stand behind `addressed` as well, or what comes behind a wake word, such as
    `wake:hey_jarvis`. See docs/turn-taking.md."""
    cues: CuesSetting = Cues()
    """The sounds of a room: on, off, or a folder with WAV files of your own."""
    room_sees: RoomSees = "names"
    """What everyone in the room can read of calls: the tools' names, their arguments as well, or
    everything, as LiveKit's session host stays open. See docs/security.md."""

    # The network.
    network: Annotated[
        InstanceOf[NetworkPolicy],
        BeforeValidator(_network, json_schema_input_type=str | list[str]),
    ] = NetworkPolicy()
    """Where this process may connect to: `any`, `local`, `lan`, or ranges and names. See
    docs/security.md."""
    # What leaves the conversation.
    redaction: Redactions = RedactionSettings()
    """What is taken out of texts beside secrets: see docs/security.md."""
    trace: TraceSetting = None
    """A file to which LiveKit's spans and ours are written, without any words."""

    # The room.
    control_token: Token | None = None
    """The bearer token of the control API. It is better kept in .env than here."""
    livekit_url: RoomUrl | None = None
    """The address of the LiveKit server, such as ws://127.0.0.1:7880."""
    livekit_api_key: str | None = None
    """LiveKit's key. It is no secret: every participant's token names it as the issuer."""
    livekit_api_secret: Secret | None = None
    """The secret of that key. It is better kept in .env than here."""

    @property
    def model_address(self) -> str:
        """The URL of the model's server: `base_url`, else the service's own, else Ollama (its `/v1`
        for OpenAI's API).

        The embedded engine has none until it runs, and is `EMBEDDED`.
        """
        if self.api == "embedded":
            return EMBEDDED
        if self.base_url is not None:
            return self.base_url
        if self.api in CLOUD:
            return CLOUD[self.api]
        return self.ollama_host if self.api == "ollama" else f"{self.ollama_host}/v1"

    def with_given(self, place: str, given: Mapping[str, Any]) -> Settings:
        """Return these settings with the values of `given`, judged as those of a file are.

        Raises:
            ConfigError: One line names the wrong one, as `place(name)`, and what to write.
        """
        try:
            judged = Settings.model_validate(dict(given))
        except ValidationError as error:
            sources = {n: GivenSetting(v, f"{place}({n})", Path()) for n, v in given.items()}
            raise explained(error, sources, SECRETS) from None
        changed = set(given)
        if "api" in given and "model" not in self.model_fields_set:
            changed.add("model")  # nobody has named one, and its default is the API's
        return self.model_copy(update={name: getattr(judged, name) for name in changed})

    @property
    def asks_natively(self) -> bool | None:
        """Whether tools are asked for with the server's own calls; None finds it out."""
        return {"auto": None, "native": True, "server": True}.get(self.tool_calls.by, False)

    @property
    def text_form(self) -> Literal["auto", "jsonl", "xml", "markdown-json"]:
        """How calls are written where they are asked for by text."""
        form = self.tool_calls.by
        return "auto" if form in ("auto", "native", "server", "text") else form

    @property
    def server_runs_tools(self) -> bool:
        """Whether words behind a call on `/v1` are the answer of a server that has run it by
        itself, and says so nowhere. Else a model wrote them that did not wait, and nobody hears
        them."""
        return self.tool_calls.by == "server"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the keys and tokens that the settings name; `n8n_auth` has its own.

        The PIN is none of them: whoever sees which four digits become `***` would know it.
        """
        found = [getattr(self, name) for name in SECRETS - {"pin"}]
        return tuple(each.get_secret_value() for each in found if isinstance(each, SecretStr))

    @property
    def has_rooms(self) -> bool:
        """Whether this node is set up for a LiveKit server, in whole or in part."""
        return any((self.livekit_url, self.livekit_api_key, self.livekit_api_secret))

    def listed_server(self, address: str) -> str | None:
        """Return `address` as the owner has written it down for models; None where they have not.

        So a caller chooses among addresses, and what is asked is never the caller's own text.
        """
        models = (self, *map(self.with_model, self.fallbacks.models))
        addresses = (model.model_address for model in models if model.api != "embedded")
        own = (*addresses, self.ollama_host, *self.model_servers)
        # Ollama speaks OpenAI's API behind /v1.
        both = (url for each in own for url in (each, f"{each}/v1"))
        wanted = canonical_url(address)
        return next((url for url in both if canonical_url(url) == wanted), None)

    def with_model(self, reference: ModelReference) -> Settings:
        """Return these settings for another model.

        The API key belongs to one server, and is not sent to another.
        """
        api = reference.api or self.api
        same_protocol = api == self.api or {api, self.api} == {"openai", "completions"}
        base_url = reference.base_url or (self.base_url if same_protocol else None)
        model: dict[str, Any] = {"model": reference.model, "api": api, "base_url": base_url}
        other = self.model_copy(update=model)
        if urlsplit(other.model_address)[:2] == urlsplit(self.model_address)[:2]:
            return other
        return other.model_copy(update={"api_key": None})


_PATHS: Final = frozenset({"instructions", "mcp_servers", "mcp_path"})
_PATHS_IN_TABLES: Final = {"cues": "folder", "trace": "file"}
FIELDS: Final = tuple(Settings.model_fields)
"""What may be set, by its name."""
SECRETS: Final = frozenset(
    name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)
)


def settings_files(path: Path | None = None) -> tuple[Path, ...]:
    """Return the files that settings are read from, the last of which wins. They need not exist.

    They are `path` alone, or else `caal.toml` of the user's folder and of the working directory.
    """
    return (path,) if path is not None else (config_folder() / NAME, Path(NAME))


def load_settings(env: Mapping[str, str] = os.environ, path: Path | None = None) -> Settings:
    """Load settings from `settings_files(path)`, as far as they exist, and from `env`, which wins.

    A relative path in a file starts from the file's folder; in the environment, from the working
    directory.

    Raises:
        ConfigError: One line names the variable, or file, line and key, and what to write.
    """
    files = settings_files(path)
    given = _from_files(files) | from_environment(env, FIELDS)
    values = {name: _value(name, each) for name, each in given.items()}
    source = given["tools"].file if "tools" in given else files[-1]
    values["tools"] = replace(values.get("tools", Policy()), source=source)
    if path is None and "mcp_servers" not in given and not os.access(MCP_SERVERS, os.F_OK):
        servers = config_folder() / MCP_SERVERS
        if os.access(servers, os.F_OK):
            values["mcp_servers"] = servers
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise explained(error, given, SECRETS) from None


def _from_files(files: Sequence[Path]) -> dict[str, GivenSetting]:
    given: dict[str, GivenSetting] = {}
    for file in files:
        given |= from_file(file, FIELDS)
    return given


def hidden_lines(
    env: Mapping[str, str] = os.environ, path: Path | None = None
) -> Iterator[tuple[str, str]]:
    """Yield each variable that overrides a line of a file, and that line's place.

    Raises:
        ConfigError: A file cannot be read.
    """
    variables = from_environment(env, FIELDS)
    for name, line in _from_files(settings_files(path)).items():
        if name in variables:
            yield variables[name].where, line.where


def written_at(name: str, key: str) -> str:
    """Return where a key of a table was written: `caal.toml, line 3, n8n_auth, key`.

    Raises:
        ConfigError: A file cannot be read.
    """
    given = (_from_files(settings_files()) | from_environment(os.environ, FIELDS)).get(name)
    place = given.inside.get(key, given.where) if given else name
    return f"{place}, {key}"


def _value(name: str, given: GivenSetting) -> Any:
    if name in _PATHS and isinstance(given.value, str):
        return given.base / from_home(given.value, given.where)
    if key := _PATHS_IN_TABLES.get(name):
        with suppress(ValueError):  # the model says what is wrong
            table = table_of(name, given.value)
            if isinstance(table, dict):
                found = cast("dict[str, Any]", table)
                if isinstance(path := found.get(key), str):
                    return found | {key: given.base / from_home(path, given.where)}
    return given.value
