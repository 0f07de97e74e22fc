"""What servers of calendars answer: redirects, refusals, odd XML, and answers that are lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from pydantic import SecretStr

from caal_node.core.errors import (
    NetworkRefused,
    ToolBroke,
    ToolFailure,
    ToolOutside,
    ToolTimeout,
    ToolUnavailable,
)
from caal_node.toolsets.calendar import http_requests
from caal_node.toolsets.calendar.dav_xml import entries_in
from caal_node.toolsets.calendar.http_requests import CalendarRequests, LongAnswer, same_domain
from caal_node.toolsets.calendar.ics_events import NewEvent, TooManyEvents
from caal_node.toolsets.calendar.known_calendars import (
    FRESH_S,
    CalendarOptions,
    DavCalendar,
    IcsAddress,
    KnownCalendars,
    find_calendars,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ICS = (
    "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Fair\r\nDTSTART:20260601T140000Z\r\n"
    "END:VEVENT\r\nEND:VCALENDAR\r\n"
)


def requests_of(answer: Callable[[httpx2.Request], httpx2.Response]) -> CalendarRequests:
    return CalendarRequests("ann", "secret", transport=httpx2.MockTransport(answer))


def multistatus(*responses: str) -> httpx2.Response:
    body = "".join(f"<d:response>{each}</d:response>" for each in responses)
    text = (
        '<d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
        f"{body}</d:multistatus>"
    )
    return httpx2.Response(207, text=text)


def entry(href: str, properties: str) -> str:
    return (
        f"<d:href>{href}</d:href><d:propstat><d:prop>{properties}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
    )


def within(name: str, text: str) -> str:
    return f"<{name}>{text}</{name}>"


CALENDAR = "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"


# Where the password goes.


@pytest.mark.parametrize(
    ("address", "target", "there"),
    [
        ("https://a.example.org/dav/", "/home/", "https://a.example.org/home/"),
        ("https://a.example.org/dav/", "x/", "https://a.example.org/dav/x/"),
        ("https://caldav.icloud.com/", "https://p7-caldav.icloud.com:443/1/", "https://p7-caldav.icloud.com:443/1/"),
        ("http://nas/dav", "https://nas/dav", "https://nas/dav"),
        ("http://192.168.1.5:5232/", "/ann/", "http://192.168.1.5:5232/ann/"),
        ("https://a.example.org/", "http://a.example.org/", None),
        ("https://a.example.org/", "https://evil.example/", None),
        ("https://a.example.org/", "https://example.org.evil.net/", None),
        ("https://nas/", "https://router/", None),
        ("https://192.168.1.5/", "https://10.0.1.5/", None),
        ("http://192.168.1.5:5232/", "http://192.168.1.5:8080/", None),
        ("https://a.example.org/", "https://[bad/", None),
        ("https://a.example.org/", "file:///etc/passwd", None),
    ],
)  # fmt: skip
def test_the_password_goes_to_the_same_domain_alone(
    address: str, target: str, there: str | None
) -> None:
    if there is None:
        with pytest.raises(ToolBroke):
            same_domain(address, target)
    else:
        assert same_domain(address, target) == there


async def test_a_redirect_is_followed_and_a_ring_of_them_is_not() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(f"{request.method} {request.url.path}")
        if request.url.path == "/round":
            return httpx2.Response(302, headers={"location": "/round"})
        if request.url.path == "/old":
            return httpx2.Response(301, headers={"location": "/new"})
        return httpx2.Response(200, text="here")

    requests = requests_of(answer)
    found = await requests.ask("PROPFIND", "https://a.example/old", b"x")
    assert (found.body, found.address) == (b"here", "https://a.example/new")
    assert seen == ["PROPFIND /old", "PROPFIND /new"]
    with pytest.raises(ToolBroke, match="sends from one address to the next"):
        await requests.ask("GET", "https://a.example/round")
    assert len(seen) == 2 + http_requests.REDIRECTS_MAX + 1
    await requests.aclose()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("no"), ToolUnavailable),
        (httpx2.ReadTimeout("slow"), ToolTimeout),
        (httpx2.RemoteProtocolError("what"), ToolUnavailable),
    ],
)
async def test_a_server_that_is_away_is_said(error: Exception, kind: type[ToolFailure]) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise error

    with pytest.raises(kind) as told:
        await requests_of(answer).ask("GET", "https://user:token@a.example/private?key=1")
    assert told.value.words == "I can't reach the calendar right now."
    assert "token" not in str(told.value)
    assert "key" not in str(told.value)


async def test_an_answer_past_its_cap_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_requests, "ANSWER_MAX_BYTES", 1_000)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b"x" * 100

    requests = requests_of(lambda request: httpx2.Response(200, content=pieces()))
    with pytest.raises(LongAnswer):
        await requests.ask("GET", "https://a.example/")
    await requests.aclose()
    calendars = KnownCalendars(CalendarOptions(addresses=SecretStr("Fair=https://a.example/a.ics")))
    monkeypatch.setattr(calendars, "_others", [IcsAddress("Fair", "https://a.example/", requests)])
    with pytest.raises(TooManyEvents) as caught:
        await calendars.events("", NOW, NOW + DAY, UTC)
    assert str(caught.value.words).startswith("The calendar Fair has more events than I can read.")


async def test_a_list_of_calendars_past_its_cap_is_not_parsed() -> None:
    body = multistatus(*("<d:href>/a/</d:href>" for _ in range(60_000))).content
    requests = requests_of(lambda request: httpx2.Response(207, content=body))
    with pytest.raises(ToolBroke, match="write the address of one calendar"):
        await find_calendars("https://a.example/", requests)


async def test_a_network_that_is_not_allowed_is_told_as_that() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no") from NetworkRefused(13, "CAAL_NETWORK=local says no")

    with pytest.raises(ToolOutside, match=r"may not connect to a\.example: CAAL_NETWORK=local"):
        await requests_of(answer).ask("GET", "https://a.example/")


# What the XML says.


async def test_calendars_are_found_by_the_persons_own_entry() -> None:
    home = (
        "<c:calendar-home-set><d:href>https://p7.example.org/home/</d:href></c:calendar-home-set>"
    )

    def answer(request: httpx2.Request) -> httpx2.Response:
        match request.url.path:
            case "/":
                return httpx2.Response(405)
            case "/.well-known/caldav":
                return httpx2.Response(301, headers={"location": "/dav/"})
            case "/dav/":
                who = "<d:current-user-principal><d:href>/me/</d:href></d:current-user-principal>"
                return multistatus(entry("/dav/", who))
            case "/me/":
                return multistatus(entry("/me/", home))
            case _:
                assert request.headers["depth"] == "1"
                tasks, read = '<c:comp name="VTODO"/>', "<d:privilege><d:read/></d:privilege>"
                tasks = within("c:supported-calendar-component-set", tasks)
                read = within("d:current-user-privilege-set", read)
                return multistatus(
                    entry("/home/", "<d:resourcetype><d:collection/></d:resourcetype>"),
                    entry("/home/b/", CALENDAR + "<d:displayname>Work</d:displayname>"),
                    entry("/home/a/", CALENDAR + read),
                    entry("/home/t/", CALENDAR + tasks),
                )

    found = await find_calendars("https://www.example.org/", requests_of(answer))
    assert [(each.name, each.is_writable) for each in found] == [("a", False), ("Work", True)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b"not xml",
        b"<multistatus/>",
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>',
    ],
)
async def test_what_is_no_caldav_is_told(body: bytes) -> None:
    requests = requests_of(lambda request: httpx2.Response(207, content=body))
    with pytest.raises(ToolBroke, match=r"a\.example is no CalDAV server"):
        await find_calendars("https://a.example/", requests)


def test_entities_name_no_files() -> None:
    body = (
        '<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/hostname">]>'
        '<d:multistatus xmlns:d="DAV:"><d:response><d:href>/x/&f;</d:href></d:response>'
        "</d:multistatus>"
    )
    assert [each.address for each in entries_in(body.encode())] == ["/x/"]


# Writing.


def new_event() -> NewEvent:
    return NewEvent("Visit", NOW, NOW + timedelta(hours=1), NOW)


async def test_an_event_whose_answer_was_lost_is_looked_for_and_not_put_twice() -> None:
    kept: dict[str, bytes] = {}
    methods: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        methods.append(request.method)
        if request.method == "PUT":
            assert request.headers["if-none-match"] == "*"
            kept[request.url.path] = request.content
            raise httpx2.ReadTimeout("lost")
        return httpx2.Response(200 if request.url.path in kept else 404)

    calendar = DavCalendar("Home", "https://a.example/home", requests_of(answer))
    await calendar.add(new_event())
    assert methods == ["PUT", "GET"]
    (path,) = kept
    assert path.startswith("/home/")
    assert path.endswith(".ics")


@pytest.mark.parametrize(
    ("status", "kind"), [(403, ToolBroke), (412, ToolBroke), (507, ToolUnavailable)]
)
async def test_a_server_that_takes_no_event_is_told(status: int, kind: type[ToolFailure]) -> None:
    calendar = DavCalendar(
        "Home", "https://a.example/", requests_of(lambda request: httpx2.Response(status))
    )
    with pytest.raises(kind):
        await calendar.add(new_event())


# Published calendars.


async def test_a_published_calendar_is_asked_again_after_a_while_only() -> None:
    asked: list[str] = []
    clock = [0.0]

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers.get("if-none-match", ""))
        if asked[-1]:
            return httpx2.Response(304)
        return httpx2.Response(200, text=ICS, headers={"etag": '"1"'})

    source = IcsAddress("Days", "https://a.example/x", requests_of(answer), lambda: clock[0])
    for seconds in (0.0, FRESH_S - 1, FRESH_S + 1):
        clock[0] = seconds
        events = await source.events(NOW, NOW + DAY, UTC)
        assert [event.title for event in events] == ["Fair"]
    assert asked == ["", '"1"']


async def test_a_page_in_place_of_a_calendar_is_told_each_time() -> None:
    source = IcsAddress(
        "Days",
        "https://a.example/x",
        requests_of(lambda request: httpx2.Response(200, text="<html>Sign in</html>")),
    )
    for _ in range(2):
        with pytest.raises(ToolBroke, match="Days gave something that is no calendar"):
            await source.events(NOW, NOW + DAY, UTC)
