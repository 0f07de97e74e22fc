"""Another model for a conversation: what a caller of the control API may choose, and what is its
owner's alone."""

# pyright: reportUnknownParameterType=false, reportMissingTypeArgument=false
# LiveKit leaves the event types of its models open.

from __future__ import annotations

from typing import Final

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.control.messages import ModelReport, ModelRequest
from caal_node.core.errors import ConfigError, NotAllowed
from caal_node.core.model_ref import CLOUD, ModelReference
from caal_node.models.backends.cloud import load_plugin
from caal_node.models.backends.factory import api_of
from caal_node.models.llm import LLM

_UNLISTED: Final = (
    "base_url: no setting of the agent names this address; its owner lists those that may be "
    "named as CAAL_MODEL_SERVERS, or model_servers in caal.toml."
)
_NAMES_CODE: Final = (
    "This agent's model is a plugin's, whose name is code to be run, or a file of this machine; "
    "send an api: ollama, openai, completions, anthropic or google."
)


async def change_model(settings: Settings, request: ModelRequest, model: llm.LLM) -> ModelReport:
    """Have `model` ask another one from the next reply on, as `request` wants.

    Raises:
        NotAllowed: the request names what the settings do not list; the old model stays.
        ModelError, ConfigError: the model cannot be used, and the old one stays.
    """
    if not isinstance(model, LLM):
        raise ConfigError("only a caal_node.LLM can be changed; this agent has another kind")
    chosen = chosen_model(settings, request, in_use=model.provider)
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    if chosen.api in CLOUD:
        await load_plugin(chosen.api)
    await model.switch(chosen.model, chosen.api, chosen.model_address, key)
    return ModelReport(model=model.model, api=model.provider)


def chosen_model(settings: Settings, request: ModelRequest, *, in_use: str) -> Settings:
    """Return the settings of the model that is asked for. `in_use` is the wire format by now.

    The address is one of the owner's, as the owner wrote it; theirs is the key, which goes to its
    own server alone.

    Raises:
        NotAllowed: the request names an address that is not listed, or code.
        ConfigError: the wire format is none.
    """
    no_name = in_use in ("livekit", "embedded")
    api = api_of(request.api or (None if no_name else in_use))
    if api is None:
        raise NotAllowed(_NAMES_CODE)
    address = None
    if request.base_url is not None:
        try:
            address = settings.listed_server(request.base_url)
        except ValueError as error:
            raise NotAllowed(f"base_url: {error}.") from None
        if address is None:
            raise NotAllowed(_UNLISTED)
    return settings.with_model(ModelReference(request.model, api, address))
