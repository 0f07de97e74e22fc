"""Tools found for strangers' requests: `python -m tests.bench.slurp_tools FILE`.

FILE is dataset/slurp/test.jsonl of SLURP (https://github.com/pswietojanski/slurp, CC BY 4.0), which
people wrote who know nothing of these tools: Bastianelli et al., "SLURP: A Spoken Language
Understanding Resource Package". Each of its intents has a tool here, described in a line as a
server would, without examples. Greetings and remarks have none, and are left out. `told` is the
share of requests whose tool is told with them, and how many tools that takes; recall is that of a
search with the person's own words. Every second request of the development set was
used to choose the weight of the table of words; the test set was not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from caal_node.tools.tool_search import VOCABULARY, caution_of
from mcp_bridge import ToolInfo
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.semantic_index import SemanticQuery
from tests.bench.semantic_discovery import by_meaning
from tests.bench.table import print_table

TOOLS: Final[Mapping[str, tuple[str, str, str]]] = {
    "calendar_set": (
        "create_event",
        "Create an event or reminder in the calendar.",
        "title start end attendees",
    ),
    "calendar_query": (
        "list_events",
        "List events of the calendar in a range of dates.",
        "start end query",
    ),
    "calendar_remove": ("delete_event", "Delete an event from the calendar.", "event"),
    "play_music": (
        "play_music",
        "Play a song, an artist, an album or a playlist.",
        "artist song playlist",
    ),
    "play_radio": ("play_radio", "Play a radio station.", "station"),
    "play_podcasts": ("play_podcast", "Play an episode of a podcast.", "podcast episode"),
    "play_audiobook": ("play_audiobook", "Start or resume an audiobook.", "title"),
    "play_game": ("start_game", "Start a game.", "game"),
    "weather_query": ("get_weather", "Get the weather forecast for a place.", "location date"),
    "news_query": ("get_news", "Get the latest headlines.", "topic source"),
    "email_query": ("search_emails", "Search the inbox for messages.", "sender query unread"),
    "email_sendemail": ("send_email", "Send an email.", "to subject body"),
    "email_querycontact": (
        "find_contact",
        "Look up a contact: phone number, address.",
        "name field",
    ),
    "email_addcontact": ("add_contact", "Add a contact to the address book.", "name email phone"),
    "datetime_query": ("get_time", "Get the current date and time in a timezone.", "timezone"),
    "datetime_convert": (
        "convert_time",
        "Convert a time from one timezone to another.",
        "time from to",
    ),
    "social_post": ("post_status", "Post a message to a social network.", "network text"),
    "social_query": (
        "get_feed",
        "Get recent posts and notifications from a social network.",
        "network",
    ),
    "cooking_recipe": (
        "search_recipes",
        "Search recipes by dish or ingredients.",
        "dish ingredients",
    ),
    "lists_remove": (
        "remove_from_list",
        "Remove an item from a list, or delete a list.",
        "list item",
    ),
    "lists_query": ("get_list", "Return the items of a list.", "list"),
    "lists_createoradd": ("add_to_list", "Add an item to a list, or create a list.", "list item"),
    "transport_query": (
        "get_directions",
        "Get directions and timetables for trains, buses or by car.",
        "origin destination mode",
    ),
    "transport_ticket": ("book_ticket", "Book a train ticket.", "origin destination date"),
    "transport_taxi": ("order_taxi", "Order a taxi.", "pickup destination time"),
    "transport_traffic": ("get_traffic", "Get the traffic on a route.", "route"),
    "iot_hue_lightoff": ("light_off", "Turn a light off.", "room"),
    "iot_hue_lighton": ("light_on", "Turn a light on.", "room"),
    "iot_hue_lightchange": ("set_light_color", "Set the colour of a light.", "room color"),
    "iot_hue_lightup": ("increase_brightness", "Increase the brightness of a light.", "room"),
    "iot_hue_lightdim": ("decrease_brightness", "Decrease the brightness of a light.", "room"),
    "iot_coffee": ("make_coffee", "Start the coffee machine.", "type time"),
    "iot_cleaning": ("start_vacuum", "Start the robot vacuum cleaner.", "room"),
    "iot_wemo_on": ("plug_on", "Turn a smart plug on.", "device"),
    "iot_wemo_off": ("plug_off", "Turn a smart plug off.", "device"),
    "recommendation_events": (
        "find_events",
        "Find concerts and events near a place.",
        "location date category",
    ),
    "recommendation_locations": (
        "find_places",
        "Find restaurants, shops and other places nearby.",
        "location category",
    ),
    "recommendation_movies": ("find_movies", "Find films in cinemas.", "location genre"),
    "qa_currency": ("convert_currency", "Convert an amount between currencies.", "amount from to"),
    "qa_stock": ("get_stock_price", "Get the price of a share.", "symbol"),
    "qa_maths": ("calculate", "Evaluate a mathematical expression.", "expression"),
    "qa_definition": ("define_word", "Look up the definition of a word.", "word"),
    "qa_factoid": ("web_search", "Search the web.", "query"),
    "music_likeness": ("like_song", "Save a song to the favourites.", "song"),
    "music_dislikeness": ("dislike_song", "Mark a song as disliked.", "song"),
    "music_query": ("now_playing", "Tell which song is playing, its artist and album.", ""),
    "music_settings": ("set_playback", "Set shuffle and repeat.", "shuffle repeat"),
    "takeaway_query": (
        "find_takeaway",
        "Find restaurants that deliver or offer takeaway.",
        "cuisine location",
    ),
    "takeaway_order": ("order_food", "Order food for delivery.", "restaurant dish"),
    "alarm_set": ("set_alarm", "Set an alarm.", "time"),
    "alarm_query": ("list_alarms", "List the alarms.", ""),
    "alarm_remove": ("cancel_alarm", "Cancel an alarm.", "time"),
    "audio_volume_mute": ("mute", "Mute the sound.", ""),
    "audio_volume_up": ("volume_up", "Increase the volume.", ""),
    "audio_volume_down": ("volume_down", "Decrease the volume.", ""),
    "audio_volume_other": ("set_volume", "Set the volume of the speaker.", "level"),
    "general_joke": ("tell_joke", "Tell a joke.", ""),
}
"""For each intent of SLURP: a tool's name, its description and its parameters."""
ALSO: Final[Mapping[str, tuple[str, ...]]] = {
    "audio_volume_up": ("set_volume",),
    "audio_volume_down": ("set_volume",),
    "audio_volume_other": ("volume_up", "volume_down", "mute"),
    "takeaway_query": ("find_places",),
    "recommendation_locations": ("find_takeaway",),
}
"""The tools that would do as well."""
DEPTHS: Final = (1, 5)


def tools() -> tuple[ToolInfo, ...]:
    return tuple(
        ToolInfo(f"s__{name}", "s", name, description, _schema(parameters))
        for name, description, parameters in TOOLS.values()
    )


def requests(file: Path) -> Mapping[str, frozenset[str]]:
    """Return for each sentence the exposed names of the tools that would do."""
    found: dict[str, frozenset[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        intent = f"{row['scenario']}_{row['action']}"
        if intent in TOOLS:
            names = (TOOLS[intent][0], *ALSO.get(intent, ()))
            found.setdefault(row["sentence"], frozenset(f"s__{name}" for name in names))
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    asked = requests(parser.parse_args().file)
    finder = ToolFinder(tools(), VOCABULARY)
    rows: list[list[object]] = [["by the table of words", *_measured(finder, asked, None)]]
    if not isinstance(meant := by_meaning(), str):
        space = await meant.space(tools())
        rows.insert(0, ["by words alone", *_measured(finder, asked, SemanticQuery(space, {}))])
        texts = {text for said in asked for text in (said, *finder.parts_of(said))}
        vectors = await meant.vectors(sorted(texts))
        rows.append(["with MiniLM", *_measured(finder, asked, SemanticQuery(space, vectors))])
    columns = ["", "told", "tools told", *(f"recall@{depth}" for depth in DEPTHS)]
    print_table(f"{len(TOOLS)} tools, {len(asked)} requests", columns, rows)


def _measured(
    finder: ToolFinder, asked: Mapping[str, frozenset[str]], meaning: SemanticQuery | None
) -> list[object]:
    right: list[bool] = []
    told: list[int] = []
    recalls: list[list[bool]] = []
    for said, names in asked.items():
        fitting = finder.fitting(finder.parts_of(said), meaning, caution=caution_of(said))
        right.append(_holds(fitting, names))
        told.append(len(fitting))
        found = finder.find(said, meaning)
        recalls.append([_holds(found[:depth], names) for depth in DEPTHS])
    shares = [100 * fmean(column) for column in zip(*recalls, strict=True)]
    return [100 * fmean(right), fmean(told), *shares]


def _holds(found: Sequence[ToolInfo], names: frozenset[str]) -> bool:
    return any(tool.name in names for tool in found)


def _schema(parameters: str) -> Mapping[str, object]:
    properties = {name: {"type": "string"} for name in parameters.split()}
    return {"type": "object", "properties": properties}


if __name__ == "__main__":
    asyncio.run(main())
