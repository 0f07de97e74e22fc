"""Whether a prompt that Ollama wrote has its tools as Go prints structs.

The prompts are those that Ollama 0.17.4 renders for a template with the words in the key, and what
0.13 and older versions render.
"""

from __future__ import annotations

import pytest

from caal_node.models.backends.ollama import prints_structs

DUMPS = {
    "{{ .Function }}": (
        '{"type": "function", "function": {get_weather Current weather of a city. '
        '{object <nil> <nil> [city] {"city":{"type":"string"}}}}}'
    ),
    "{{ . }}": (
        "{function <nil> {get_weather Current weather of a city. "
        '{object <nil> <nil> [city] {"city":{"type":"string"}}}}}'
    ),
    "{{ .Function.Parameters }}": (
        '{"name": "get_weather", "parameters": '
        '{object <nil> <nil> [city] {"city":{"type":"string"}}}}'
    ),
    "{{ $property }}": "get_weather city: {[] string <nil>  [] <nil>}",
    "without $defs": "{get_weather Current weather of a city. {object [city] map[city:{string }]}}",
    "with a pointer": "{get_weather Current weather. {object [city] 0xc000123456}}",
}
READABLE = {
    "{{ .Tools }}": (
        '[{"type":"function","function":{"name":"get_weather","description":"Current weather of a '
        'city.","parameters":{"type":"object","required":["city"],'
        '"properties":{"city":{"type":"string"}}}}}]'
    ),
    "{{ json .Function }}": (
        '{"type": "function", "function": {"name":"get_weather","description":"Current weather.",'
        '"parameters":{"type":"object","required":["city"],'
        '"properties":{"city":{"type":"string"}}}}}'
    ),
    "{{ .Function.Parameters.Properties }}": (
        '{"name": "get_weather", "properties": {"city":{"type":"string"}}}'
    ),
    "fields": "get_weather city: string  [city]",
    "Command R": "def get_weather(city: string) -> List[Dict]:\n    pass",
    "gpt-oss": "type get_weather = (_: {\n// nil if unknown\ncity: string,\n}) => any;",
    "no tools": "<|im_start|>user\nWhat is a map?<|im_end|>",
}


@pytest.mark.parametrize("printed", DUMPS)
def test_structs_are_recognised(printed: str) -> None:
    assert prints_structs(f"<tools>\n{DUMPS[printed]}\n</tools>")


@pytest.mark.parametrize("printed", READABLE)
def test_what_a_model_can_read_is_left_to_it(printed: str) -> None:
    assert not prints_structs(f"<tools>\n{READABLE[printed]}\n</tools>")
