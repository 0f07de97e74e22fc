"""What a policy allows: by address however it is written, and by name."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.network.policy import NetworkPolicy, address_of, parse_policy, plain

LOCAL = parse_policy("local")
LAN = parse_policy("lan")
V4 = st.ip_addresses(v=4)
V6 = st.ip_addresses(v=6)


def allows(policy: NetworkPolicy, text: str, *found_by: str) -> bool:
    address = address_of(text)
    assert address is not None
    return policy.allows(address, found_by)


# Addresses.


@given(st.ip_addresses())
def test_without_a_limit_every_address_is_allowed(address: IPv4Address | IPv6Address) -> None:
    assert parse_policy("any").allows(address)


@given(V4)
def test_local_is_the_loopback_and_what_leads_to_it(address: IPv4Address) -> None:
    assert LOCAL.allows(address) == (address.packed[0] == 127 or int(address) == 0)


@given(V6)
def test_local_has_one_address_of_version_6(address: IPv6Address) -> None:
    mapped = address.ipv4_mapped
    here = int(address) in (0, 1) or (mapped is not None and LOCAL.allows(mapped))
    assert LOCAL.allows(address) == here


@given(V4, st.sampled_from([LOCAL, LAN, parse_policy("203.0.113.0/24,10.1.2.3")]))
def test_an_address_written_as_version_6_is_judged_as_the_one_that_it_is(
    address: IPv4Address, policy: NetworkPolicy
) -> None:
    mapped = IPv6Address(f"::ffff:{address}")
    assert policy.allows(mapped) == policy.allows(address)


@given(st.one_of(V4, V6), st.integers(0, 128), st.data())
def test_a_range_ends_at_its_edges(
    address: IPv4Address | IPv6Address, bits: int, data: st.DataObject
) -> None:
    network = ip_network((address, min(bits, address.max_prefixlen)), strict=False)
    if isinstance(network.network_address, IPv6Address) and network.network_address.ipv4_mapped:
        return  # refused, see below
    policy = parse_policy(str(network))
    first, last = int(network.network_address), int(network.broadcast_address)
    for number in (first - 1, first, last, last + 1, data.draw(st.integers(first, last))):
        if not 0 < number < 1 << address.max_prefixlen:
            continue
        at = type(address)(number)
        if plain(at) == at:
            assert policy.allows(at) == (first <= number <= last)


@pytest.mark.parametrize(
    ("address", "is_lan"),
    [
        ("9.255.255.255", False),
        ("10.0.0.0", True),
        ("10.255.255.255", True),
        ("11.0.0.0", False),
        ("172.15.255.255", False),
        ("172.16.0.0", True),
        ("172.31.255.255", True),
        ("172.32.0.0", False),
        ("192.168.0.0", True),
        ("192.169.0.0", False),
        ("100.64.0.1", False),
        ("169.254.1.1", True),
        ("169.254.169.254", False),
        ("::ffff:169.254.169.254", False),
        ("fd00:ec2::254", False),
        ("fe80::1%eth0", True),
        ("fe80::1", True),
        ("febf::1", True),
        ("fec0::1", False),
        ("fbff::1", False),
        ("fc00::1", True),
        ("fdff::1", True),
        ("fe00::1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
        ("255.255.255.255", False),
        ("224.0.0.251", False),
        ("8.8.8.8", False),
        ("2606:4700:4700::1111", False),
        ("127.0.0.1", True),
        ("0.0.0.0", True),  # noqa: S104 - judged, not bound
        ("::", True),
        ("::1", True),
        ("::127.0.0.1", False),
    ],
)
def test_lan_is_private_networks_without_what_hands_out_credentials(
    address: str, is_lan: bool
) -> None:
    assert allows(LAN, address) == is_lan


def test_an_address_that_hands_out_credentials_is_allowed_by_its_own_range() -> None:
    assert allows(parse_policy("lan,169.254.169.254"), "169.254.169.254")


def test_a_list_is_what_stands_in_it_and_no_more() -> None:
    policy = parse_policy("127.0.0.1/32, 203.0.113.0/24")
    assert allows(policy, "127.0.0.1")
    assert allows(policy, "203.0.113.255")
    assert not allows(policy, "127.0.0.2")
    assert not allows(policy, "203.0.114.0")
    assert not allows(policy, "::1")


@pytest.mark.parametrize("zone", ["%eth0", "%1"])
def test_a_zone_changes_nothing(zone: str) -> None:
    assert allows(LAN, f"fe80::1{zone}")
    assert not allows(LOCAL, f"fe80::1{zone}")
    assert allows(LOCAL, f"::1{zone}") == LOCAL.allows(ip_address("::1"))


# Addresses written as numbers.


@given(V4, st.sampled_from(["d", "#x", "#o"]), st.integers(1, 4))
def test_an_address_written_as_numbers_is_read_as_c_reads_it(
    address: IPv4Address, form: str, count: int
) -> None:
    first = address.packed[: count - 1]
    last = int.from_bytes(address.packed[count - 1 :])
    parts = [format(number, form).replace("0o", "0") for number in (*first, last)]
    text = ".".join(parts)
    assert address_of(text) == address
    assert socket.inet_aton(text) == address.packed


@given(st.text(alphabet="0123456789abcdefxX.", max_size=20))
def test_what_the_system_reads_as_an_address_is_never_taken_for_another(text: str) -> None:
    read = address_of(text)
    try:
        system = IPv4Address(socket.inet_aton(text))
    except OSError:
        assert read is None
        return
    assert read == system


@given(st.text(max_size=300))
def test_any_text_is_an_address_or_a_name(text: str) -> None:
    read = address_of(text)
    assert read is None or isinstance(read, IPv4Address | IPv6Address)
    LOCAL.allows_lookup(text)


# Names.


def test_local_asks_nobody_for_a_name_that_this_machine_does_not_know() -> None:
    here = frozenset(("kitchen", "own.example"))
    for name in ("localhost", "LOCALHOST.", "x.localhost", "kitchen", "Own.Example", "127.1"):
        assert LOCAL.allows_lookup(name, here), name
    for name in ("example.com", "nas", "nas.local", "kitchen.evil.example", "localhost.example"):
        assert not LOCAL.allows_lookup(name, here), name


def test_lan_asks_for_names_that_can_only_be_of_this_network() -> None:
    for name in ("nas", "nas.local", "n8n.internal", "tv.home.arpa"):
        assert LAN.allows_lookup(name), name
    for name in ("example.com", "secret.attacker.example", "nas.local.example.com"):
        assert not LAN.allows_lookup(name), name


def test_a_listed_name_may_be_looked_up_and_leads_where_it_leads() -> None:
    policy = parse_policy("local,Mirror.Example.com,nas")
    assert policy.allows_lookup("mirror.example.COM.")
    assert not policy.allows_lookup("x.mirror.example.com")
    assert allows(policy, "8.8.8.8", "mirror.example.com")
    assert allows(policy, "192.168.7.2", "nas")
    assert not allows(policy, "8.8.8.8")
    assert not allows(policy, "8.8.8.8", "other.example.com")


@pytest.mark.parametrize(
    "address",
    ["192.168.0.1", "10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1", "64:ff9b::a00:1"],
)
def test_a_listed_public_name_leads_to_no_machine_of_this_network(address: str) -> None:
    policy = parse_policy("local,mirror.example.com")
    assert not allows(policy, address, "mirror.example.com")
    ranges = parse_policy(f"mirror.example.com,{plain(ipaddress.ip_address(address))}")
    assert allows(ranges, address, "mirror.example.com")


def test_names_in_other_scripts_are_compared_as_dns_has_them() -> None:
    assert parse_policy("bücher.example").allows_lookup("xn--bcher-kva.example")


# The words of the setting.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "write any, local, lan"),
        ("any,local", "write it alone"),
        ("10.0.0.0/33", "not an address or range"),
        ("999.1.1.1", "not an address or range"),
        ("fd00::/129", "not an address or range"),
        ("http://nas", "not an address or range"),
        ("nas:8080", "not an address or range"),
        ("*.example.com", "not a host name"),
        ("a b", "not a host name"),
        ("-nas", "not a host name"),
        ("x" * 300, "not a host name"),
        ("::ffff:10.0.0.0/104", "write them as"),
        (",".join(f"10.0.0.{number}" for number in range(65)), "at most 64"),
    ],
)
def test_a_wrong_word_is_told_with_what_to_write(words: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("*", r"\*")):
        parse_policy(words)


@given(st.text(max_size=80))
def test_any_text_is_a_policy_or_a_plain_error(text: str) -> None:
    try:
        policy = parse_policy(text)
    except ValueError:
        return
    assert parse_policy(policy.text) == policy


def test_a_host_may_stand_in_a_range_and_in_brackets() -> None:
    assert allows(parse_policy("192.168.7.9/24"), "192.168.7.200")
    assert allows(parse_policy("[fd00::5]"), "fd00::5")


def test_messages_quote_the_beginning_of_a_long_policy() -> None:
    policy = parse_policy(",".join(f"10.0.0.{number}" for number in range(60)))
    assert len(policy.shown) < 100
