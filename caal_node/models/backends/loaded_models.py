"""What Ollama and LM Studio tell of their models, beside OpenAI's API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from caal_node.models.backends.tool_calls import Count


class _RunningModel(BaseModel):
    name: str
    context_length: Count = None


class RunningModels(BaseModel):
    """Ollama's `GET /api/ps`: what is loaded. Behind `/v1` it is loaded with the server's own
    context, and a prompt that is longer is cut without a word."""

    models: list[_RunningModel]

    def context_of(self, model: str) -> int | None:
        names = (model, f"{model}:latest")
        return next((m.context_length for m in self.models if m.name in names), None)


class ShownModel(BaseModel):
    """Ollama's `POST /api/show`: what a model is, whatever its name says."""

    model_info: dict[str, Any] = Field(default_factory=dict)

    @property
    def parameters(self) -> int | None:
        """How many weights the model has."""
        value = self.model_info.get("general.parameter_count")
        return value if isinstance(value, int) and value > 0 else None


class _InstanceConfig(BaseModel):
    context_length: Count = None


class _Instance(BaseModel):
    id: str
    config: _InstanceConfig = Field(default_factory=_InstanceConfig)


class _LMStudioModel(BaseModel):
    key: str
    loaded_instances: list[_Instance] = Field(default_factory=list[_Instance])


class LoadedModels(BaseModel):
    """LM Studio's `GET /api/v1/models` (since 0.4, lmstudio.ai/docs/developer/rest/list).

    A model's `max_context_length` is what it was made for, mostly far more than is loaded.
    """

    models: list[_LMStudioModel]

    def context_of(self, model: str) -> int | None:
        loaded = [(m.key, instance) for m in self.models for instance in m.loaded_instances]
        fits = [each.config.context_length for key, each in loaded if model in (key, each.id)]
        return min((size for size in fits if size), default=None)
