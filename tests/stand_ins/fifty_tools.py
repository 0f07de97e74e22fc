"""An MCP server with fifty tools of homes and offices: `python -m tests.stand_ins.fifty_tools`.

Half of them are described as Python servers do it (a doc string with Args and Returns, schemas
with titles, `anyOf` null and defaults), half as TypeScript servers do it (`$schema`, a description
at every property). Results are records as indented JSON text, as most servers give them, the same
for the same tool. About 9,000 tokens for a model, as they stand. With names as its arguments it has
those tools only.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

Schema: TypeAlias = dict[str, Any]

# group / "tool | what it does | parameters": `name:type description`, `!` for a required one,
# a|b for an enum.
_TABLE: Final = """
calendar
list_events | List the events of one or more calendars between two dates, in the order of their start. | day:str! First day to list, as an ISO 8601 date such as 2026-03-01 ; days:int How many days to list from that day on ; calendar_id:str Identifier of one calendar, or nothing for all of them ; include_declined:bool Whether invitations that were declined are listed too
create_event | Create a new event in a calendar and, if attendees are given, send them an invitation by mail. | title:str! Title of the event as it will be shown ; start:str! Start as an ISO 8601 date and time with a time zone ; minutes:int Length of the event in minutes ; attendees:list Mail addresses of the people to invite ; location:str Where the event takes place ; reminder_minutes:int Minutes before the start at which to remind
update_event | Change the title, the time or the place of an existing event. Fields that are not given stay as they are. | event_id:str! Identifier of the event, from list_events ; title:str New title ; start:str New start as an ISO 8601 date and time ; minutes:int New length in minutes ; notify_attendees:bool Whether attendees are told of the change
delete_event | Delete an event, or one occurrence of an event that repeats. This cannot be undone. | event_id:str! Identifier of the event, from list_events ; scope:this|following|all Which occurrences of a repeating event to delete ; notify_attendees:bool Whether attendees are told
find_free_time | Find free slots that are long enough for a meeting, within working hours, for all of the people given. | people:list! Mail addresses of the people who must be free ; minutes:int! Length of the meeting in minutes ; earliest:str Earliest day as an ISO 8601 date ; latest:str Latest day as an ISO 8601 date
mail
search_mail | Search the mailbox for messages by words, sender, folder or date, newest first, and return a summary of each. | query:str! Words to look for in subject and body ; sender:str Only messages from this address or name ; folder:inbox|sent|archive|spam Folder to search ; unread_only:bool Whether only unread messages are returned ; limit:int At most so many messages
read_mail | Return the whole text of one message with its headers and the names of its attachments. | message_id:str! Identifier of the message, from search_mail ; mark_as_read:bool Whether the message is marked as read ; include_quoted:bool Whether quoted earlier messages are part of the text
send_mail | Send a message to one or more people from the default account. The message is sent at once. | to:list! Mail addresses of the recipients ; subject:str! Subject line ; body:str! Text of the message, plain or Markdown ; cc:list Mail addresses of those who get a copy ; reply_to_id:str Identifier of the message that this one answers
draft_mail | Write a draft and keep it in the drafts folder, without sending anything. | to:list! Mail addresses of the recipients ; subject:str! Subject line ; body:str! Text of the draft ; tone:friendly|formal|short How the draft should sound
archive_mail | Move messages out of the inbox into the archive, where search still finds them. | message_ids:list! Identifiers of the messages to move ; label:str Label to put on them ; mark_as_read:bool Whether they are marked as read
home
set_light | Switch a light or a group of lights on or off and set brightness and colour. Names are matched loosely. | room:str! Room or group of lights, such as kitchen ; on:bool! Whether the lights are on afterwards ; brightness:int Brightness in per cent, from 1 to 100 ; colour:str Name of a colour, or a temperature such as 2700K ; fade_seconds:num Seconds over which the change is made
set_thermostat | Set the target temperature or the mode of a thermostat, for now or until a given time. | room:str! Room whose thermostat is set ; celsius:num Target temperature in degrees Celsius ; mode:heat|cool|auto|off Mode of the thermostat ; until:str Time at which the schedule takes over again, as HH:MM
move_blinds | Open or close the blinds of a room, or move them to a position. | room:str! Room whose blinds are moved ; position:int! Position in per cent, where 0 is closed and 100 is open ; tilt:int Angle of the slats in degrees ; only_facing:north|east|south|west Only windows that face this way
lock_door | Lock or unlock a door. Unlocking needs the code that was set up for voice control. | door:str! Name of the door, such as front door ; locked:bool! Whether the door is locked afterwards ; code:str Code for voice control, needed for unlocking
start_vacuum | Start, pause or send home a vacuum cleaner, for the whole floor or some rooms. | action:start|pause|dock! What the vacuum cleaner is to do ; rooms:list Rooms to clean, or nothing for the whole floor ; suction:quiet|normal|strong Strength of the suction ; repeat:int How often each room is cleaned
tasks
list_tasks | List the tasks of a list that are not done yet, ordered by due date and then by priority. | list_name:str Name of the list, or nothing for all lists ; due_before:str Only tasks that are due before this ISO 8601 date ; label:str Only tasks with this label ; include_done:bool Whether finished tasks are listed too ; limit:int At most so many tasks
add_task | Add a task to a list, with a due date, a priority and labels if they are given. | title:str! What is to be done ; list_name:str List that the task goes to ; due:str Due date as an ISO 8601 date ; priority:low|normal|high|urgent How urgent the task is ; labels:list Labels of the task ; notes:str Anything else that belongs to it
complete_task | Mark a task as done. A task that repeats is scheduled for its next date. | task_id:str! Identifier of the task, from list_tasks ; done_at:str When it was done, as an ISO 8601 date and time ; comment:str Words that are kept with the task
move_task | Move a task to another list or give it another due date. | task_id:str! Identifier of the task, from list_tasks ; list_name:str List that the task moves to ; due:str New due date as an ISO 8601 date ; priority:low|normal|high|urgent New priority
add_to_shopping | Add articles to the shopping list, where those that are on it already are counted up. | articles:list! Names of the articles ; shop:str Shop where they are bought ; quantity:num Quantity of each article ; unit:str Unit of the quantity, such as kg
notes
search_notes | Search all notes by meaning and by words and return the passages that fit best. | query:str! What to look for ; notebook:str Notebook to search, or nothing for all ; since:str Only notes changed since this ISO 8601 date ; limit:int At most so many passages
read_note | Return the whole text of one note as Markdown. | note_id:str! Identifier of the note, from search_notes ; include_links:bool Whether links to other notes are resolved
write_note | Write a new note, or replace the text of an existing one. | title:str! Title of the note ; text:str! Text of the note as Markdown ; notebook:str Notebook that the note goes to ; note_id:str Identifier of the note to replace ; tags:list Tags of the note
append_note | Add text to the end of an existing note, under a heading if one is given. | note_id:str! Identifier of the note, from search_notes ; text:str! Text to add as Markdown ; heading:str Heading under which the text is added
share_note | Share a note with other people by a link that they can open without an account. | note_id:str! Identifier of the note, from search_notes ; people:list Mail addresses of those who get the link ; can_edit:bool Whether they may change the note ; expires:str ISO 8601 date after which the link is closed
weather
get_forecast | Get the weather forecast of a place for the next days, with temperatures, rain and wind of each day. | place:str! Name of a town, or coordinates as latitude and longitude ; days:int Number of days, from 1 to 14 ; units:metric|imperial Units of the figures ; hourly:bool Whether hours are listed instead of days ; language:str Language of the descriptions as an ISO 639-1 code
get_current_weather | Get what the weather is right now at a place: temperature, wind, humidity and a description. | place:str! Name of a town, or coordinates as latitude and longitude ; units:metric|imperial Units of the figures ; station:str Identifier of a weather station to ask
get_weather_alerts | List official warnings of bad weather that are in force for a place. | place:str! Name of a town or of a region ; severity:minor|moderate|severe|extreme Lowest severity to list ; include_expired:bool Whether warnings of the last day are listed too
get_air_quality | Get the air quality index of a place with the concentration of each pollutant. | place:str! Name of a town, or coordinates as latitude and longitude ; pollutants:list Pollutants to return, or nothing for all ; forecast_hours:int Hours of forecast to add
get_sun_times | Get the times of sunrise and sunset and the length of the day at a place. | place:str! Name of a town, or coordinates as latitude and longitude ; date:str Day as an ISO 8601 date ; time_zone:str IANA time zone of the times that are returned
travel
find_trains | Find train connections between two stations, with departure, arrival, changes, platform and delay. | origin:str! Name of the station of departure ; destination:str! Name of the station of arrival ; when:str Date and time as ISO 8601, or nothing for now ; arrive_by:bool Whether the time is that of arrival ; max_changes:int At most so many changes ; limit:int At most so many connections
find_flights | Search flights between two airports with prices of several airlines. Prices are not guaranteed. | origin:str! IATA code of the airport of departure ; destination:str! IATA code of the airport of arrival ; date:str! Day of departure as an ISO 8601 date ; return_date:str Day of return as an ISO 8601 date ; passengers:int Number of passengers ; cabin:economy|premium|business|first Class of travel
find_hotels | Search hotels in a place for some nights, by price, stars and distance from the centre. | place:str! Town or address ; arrival:str! Day of arrival as an ISO 8601 date ; nights:int! Number of nights ; guests:int Number of guests ; max_price:num Highest price of a night ; stars:int At least so many stars
get_route | Get the way from one address to another with its length, its duration in current traffic and the main steps. | origin:str! Address of the start ; destination:str! Address of the destination ; mode:car|bicycle|walk|transit How to travel ; avoid:list What to avoid, such as tolls or ferries ; depart_at:str Date and time of departure as ISO 8601
book_taxi | Order a taxi to an address, for now or for later. The order is binding. | pickup:str! Address where the ride begins ; destination:str Address where the ride ends ; at:str Date and time as ISO 8601, or nothing for now ; passengers:int Number of passengers ; notes:str Words for the driver
music
play_music | Play a song, an album, an artist, a playlist or a radio station on a loudspeaker. | query:str! What to play ; kind:song|album|artist|playlist|radio What the query names ; speaker:str Loudspeaker to play on ; shuffle:bool Whether songs are played in random order ; volume:int Volume in per cent
control_playback | Pause, go on, skip, go back or stop what is playing on a loudspeaker. | action:pause|resume|next|previous|stop! What to do ; speaker:str Loudspeaker, or nothing for the one that plays ; seconds:int Seconds to skip within a song
set_volume | Set the volume of a loudspeaker, or change it by some steps. | speaker:str Loudspeaker, or nothing for the one that plays ; volume:int Volume in per cent ; change:int Per cent by which the volume is changed
search_music | Search the music library and the streaming service for songs, albums and artists. | query:str! Words to look for ; kind:song|album|artist|playlist Kind of what is looked for ; limit:int At most so many hits ; library_only:bool Whether only the own library is searched
add_to_playlist | Add songs to a playlist, which is made if it does not exist yet. | playlist:str! Name of the playlist ; songs:list! Identifiers of the songs, from search_music ; position:int Place in the playlist where they are put
money
get_balance | Get the balance of one or all bank accounts, with what is reserved but not booked yet. | account:str Name or number of the account, or nothing for all ; currency:str Currency of the figures as an ISO 4217 code ; include_pending:bool Whether reserved amounts are counted
list_transactions | List bookings of an account within a span of time, newest first, by payee, category or amount. | account:str Name or number of the account ; since:str First day as an ISO 8601 date ; until:str Last day as an ISO 8601 date ; payee:str Only bookings with this payee ; category:str Only bookings of this category ; min_amount:num Smallest amount ; limit:int At most so many bookings
transfer_money | Prepare a transfer to a known payee. It is carried out only after it was confirmed in the bank's app. | payee:str! Name of a payee from the address book ; amount:num! Amount of the transfer ; currency:str Currency as an ISO 4217 code ; reference:str Words for the payee ; on:str Day of the transfer as an ISO 8601 date
get_exchange_rate | Get the current rate between two currencies and convert an amount if one is given. | base:str! Currency to convert from as an ISO 4217 code ; quote:str! Currency to convert to as an ISO 4217 code ; amount:num Amount to convert ; date:str Day of the rate as an ISO 8601 date
get_stock_price | Get the latest price of a share or a fund with the change of the day. | symbol:str! Symbol or name of the share ; exchange:str Exchange to ask ; history_days:int Days of history to add
files
search_files | Search files by name and by content in all connected drives and return path, size and date of each. | query:str! Words to look for in names and contents ; drive:local|cloud|shared Drive to search ; file_type:str Extension such as pdf ; changed_since:str Only files changed since this ISO 8601 date ; limit:int At most so many files
read_file | Return the text of a file. Documents and spreadsheets are converted to plain text. | path:str! Path of the file, from search_files ; first_line:int First line to return ; lines:int Number of lines ; encoding:str Encoding of the file, where it is not UTF-8
write_file | Write text into a file, which is made if it does not exist yet. An existing file is kept as a version. | path:str! Path of the file ; text:str! Text to write ; append:bool Whether the text is added to the end ; create_folders:bool Whether missing folders are made
list_folder | List the files and folders within a folder, with size and date of each. | path:str! Path of the folder ; recursive:bool Whether folders within it are listed too ; pattern:str Pattern that names must match, such as *.pdf ; order:name|size|date Order of the list ; limit:int At most so many entries
summarise_file | Summarise a file in a few sentences, with a focus if one is given. | path:str! Path of the file, from search_files ; sentences:int Number of sentences ; focus:str What the summary should be about ; language:str Language of the summary as an ISO 639-1 code
"""  # noqa: E501 - a table

_LISTS: Final = ("list", "find", "search")
_KINDS: Final = {"str": "string", "int": "integer", "num": "number", "bool": "boolean"}
_PYTHON_GROUPS: Final = 5


def tools() -> list[Tool]:
    """All fifty, in a fixed order."""
    made: list[Tool] = []
    groups = 0
    for line in _TABLE.strip().splitlines():
        if "|" not in line:
            groups += 1
            continue
        made.append(described(line, as_python=groups <= _PYTHON_GROUPS))
    return made


def described(line: str, *, as_python: bool) -> Tool:
    """Make a tool of `name | description | parameters`, described as a Python server does it, or
    as a TypeScript server does."""
    name, description, parameters = (part.strip() for part in line.split(" | "))
    write = _python_tool if as_python else _typescript_tool
    return write(name, description, [_parameter(each) for each in parameters.split(" ; ")])


def result(tool: str) -> str:
    """What `tool` answers: four records for a search or a list, one for anything else."""
    seed = int.from_bytes(hashlib.sha256(tool.encode()).digest()[:4])
    many = tool.startswith(_LISTS)
    records = [_record(tool, seed + number) for number in range(4 if many else 1)]
    value = {"status": "ok", "count": 4, "results": records, "next_cursor": None}
    return json.dumps(value if many else {"status": "ok", **records[0]}, indent=2)


def _record(tool: str, seed: int) -> dict[str, Any]:
    names = ("Miller and Sons", "the garden", "Lake Street 12", "quarterly plan", "Anna Keller")
    return {
        "id": f"{tool[:3]}_{seed % 100_000:05}",
        "title": f"{tool.replace('_', ' ').capitalize()}: {names[seed % 5]}",
        "starts_at": f"2026-03-{1 + seed % 28:02}T{8 + seed % 10:02}:30:00+01:00",
        "owner": None,
        "amount": round(seed % 10_000 / 7, 2),
        "tags": ["home", names[(seed + 1) % 5]],
        "details": {"place": names[(seed + 2) % 5], "confirmed": bool(seed % 2), "note": None},
    }


def _parameter(text: str) -> tuple[str, str, bool, str]:
    """`name:type! description` -> name, type, whether it is required, description."""
    found = re.fullmatch(r"(\w+):([\w|]+)(!?) (.+)", text.strip())
    assert found, text
    return found[1], found[2], bool(found[3]), found[4]


def _type(kind: str) -> Schema:
    if "|" in kind:
        return {"enum": kind.split("|"), "type": "string"}
    if kind == "list":
        return {"items": {"type": "string"}, "type": "array"}
    return {"type": _KINDS[kind]}


def _python_tool(name: str, about: str, given: list[tuple[str, str, bool, str]]) -> Tool:
    lines = [f"    {each}: {words}." for each, _, _, words in given]
    doc = "\n".join([about, "", "Args:", *lines, "", "Returns:", "    The outcome as JSON text."])
    properties: dict[str, Schema] = {}
    for each, kind, required, _ in given:
        title = each.replace("_", " ").title()
        properties[each] = (
            {"title": title, **_type(kind)}
            if required
            else {"anyOf": [_type(kind), {"type": "null"}], "default": None, "title": title}
        )
    schema = {
        "properties": properties,
        "required": [each for each, _, required, _ in given if required],
        "title": f"{name}Arguments",
        "type": "object",
    }
    return Tool(name=name, description=doc, input_schema=schema)


def _typescript_tool(name: str, about: str, given: list[tuple[str, str, bool, str]]) -> Tool:
    schema = {
        "type": "object",
        "properties": {each: {**_type(kind), "description": w} for each, kind, _, w in given},
        "required": [each for each, _, required, _ in given if required],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    return Tool(name=name, description=about, input_schema=schema)


async def serve(offered: Sequence[Tool]) -> None:
    """Serve the tools of `offered` on standard input and output, until that ends."""

    async def listed(
        _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListToolsResult:
        # On one page: LiveKit's own client reads no second one.
        return ListToolsResult(tools=list(offered))

    async def called(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=result(params.name))])

    server: Server[Any] = Server("fifty", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def chosen(offered: Sequence[Tool], names: Sequence[str]) -> list[Tool]:
    """Return those of `offered` that `names` name, in their order; all where there are none."""
    return [tool for tool in offered if not names or tool.name in names]


if __name__ == "__main__":
    asyncio.run(serve(chosen(tools(), sys.argv[1:])))
