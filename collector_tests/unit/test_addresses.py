"""Which addresses requests may go to; special-purpose registries of IANA, and where clouds keep their secrets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.addresses import AddressPolicy, Reach, allowed_network


def listed(text: str) -> list[str]:
    return text.split()


PUBLIC = listed("""
8.8.8.8 1.1.1.1 93.184.216.34 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255
198.20.0.0 223.255.255.255 168.63.129.15 2606:4700::1111 2a00:1450:4001::200e 2001:200::1 2001:4860:4860::8888
2003::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2a00::5efe:808:808
""")

INSIDE = listed("""
127.0.0.1 127.255.255.255 ::1 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 198.18.0.1
198.19.255.255 fc00::1 fd12:3456:789a::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 0:0:0:0:0:0:0:1
""")

METADATA = listed("""
169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 169.254.42.42 168.63.129.16 100.100.100.200 192.0.0.192
fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1 fd00:100::100:200
fe80::a9fe:a9fe ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:100.100.100.200 64:ff9b::a9fe:a9fe
""")

NEVER = METADATA + listed("""
0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0 255.255.255.255 240.0.0.1 224.0.0.1 239.255.255.255 ff02::1 ff0e::1 192.0.0.1
192.88.99.1 169.254.1.1 fe80::1 fe80::1%eth0 ::1%lo fec0::1 feff::1 ::127.0.0.1 ::8.8.8.8 ::2 ::ffff:0:127.0.0.1
64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::192.0.2.1 64:ff9b:1::127.0.0.1 64:ff9b:1::808:808 64:ff9b:2::1
2002:7f00:1:: 2002:a9fe:a9fe::1 2002:808:808:: 2001::1 2001:0:7f00:1::80ff:fffe 2001:2::1 2001:10::1 2001:20::1
2606:4700::5efe:127.0.0.1 2606:4700::200:5efe:10.0.0.1 4000::1 5f00::1 3::1 fb00::1 e000::1
""")

NOWHERE = ["192.0.2.1", "198.51.100.7", "203.0.113.255", "2001:db8::1", "3fff::1", "100::1", "100:0:0:1::9"]

NO_ADDRESS = [
    "", "localhost", "2130706433", "127.1", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", " 127.0.0.1",
    "[::1]", "::ffff:127.0.0.256", "\uff11\uff12\uff17.0.0.1", "127.0.0.1/32", "1.2.3.4:80", "::1\n",
]  # fmt: skip


class TestVerdict:
    @pytest.mark.parametrize("ip", PUBLIC)
    def test_the_public_internet_is_allowed(self, ip: str):
        assert AddressPolicy().verdict(ip).allowed

    @pytest.mark.parametrize("ip", INSIDE)
    def test_what_leads_inside_is_refused(self, ip: str):
        """Rule 13."""
        verdict = AddressPolicy().verdict(ip)

        assert (verdict.allowed, verdict.reach) == (False, Reach.INSIDE)
        assert verdict.name

    @pytest.mark.parametrize("ip", INSIDE)
    def test_what_leads_inside_is_allowed_to_a_source_that_names_it(self, ip: str):
        literal = ip_address(ip)
        plain = getattr(literal, "ipv4_mapped", None) or literal

        assert AddressPolicy((str(plain),)).verdict(ip).allowed
        assert not AddressPolicy(("10.200.0.0/16", "fd99::/64")).verdict(ip).allowed

    @pytest.mark.parametrize("ip", NEVER)
    def test_some_are_refused_to_everybody(self, ip: str):
        """Rule 13: metadata addresses never."""
        everything = AddressPolicy((
            "127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15",
            "fc00::/7",
        ))  # fmt: skip
        verdict = everything.verdict(ip)

        assert (verdict.allowed, verdict.reach) == (False, Reach.NEVER)
        assert verdict.name

    @pytest.mark.parametrize("ip", NOWHERE)
    def test_examples_are_refused_and_harmless(self, ip: str):
        verdict = AddressPolicy().verdict(ip)

        assert (verdict.allowed, verdict.reach) == (False, Reach.NOWHERE)

    @pytest.mark.parametrize("text", NO_ADDRESS)
    def test_what_is_no_address_is_refused(self, text: str):
        verdict = AddressPolicy(("127.0.0.0/8", "::1")).verdict(text)

        assert (verdict.allowed, verdict.reach) == (False, Reach.NEVER)

    @given(st.ip_addresses(v=4))
    def test_a_public_ipv4_address_is_one_by_the_registry_too(self, ip: IPv4Address):
        if AddressPolicy().verdict(str(ip)).allowed:
            assert ip.is_global
            assert not ip.is_multicast

    @given(st.ip_addresses(v=6))
    def test_a_public_ipv6_address_is_given_out(self, ip: IPv6Address):
        if AddressPolicy().verdict(str(ip)).allowed:
            assert ip.is_global
            assert str(ip).startswith(("2", "3", "64:ff9b::", "::ffff:"))

    @given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "64:ff9b::{}", "2606:4700::5efe:{}"]))
    def test_wrapping_an_address_gains_nothing(self, ip: IPv4Address, wrapping: str):
        plain, wrapped = (AddressPolicy().verdict(each) for each in (str(ip), wrapping.format(ip)))

        assert wrapped.allowed <= plain.allowed


class TestAllowedNetworks:
    @pytest.mark.parametrize(
        "text", ["127.0.0.1", "127.0.0.1/32", "127.0.0.0/8", "10.1.0.0/16", "192.168.1.0/24", "::1/128", "fd00::/8"]
    )
    def test_are_inside(self, text: str):
        assert allowed_network(text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("0.0.0.0/0", "too wide"),
            ("10.0.0.0/7", "too wide: it holds 10.0.0.0/8 (private)"),
            ("::/0", "no source may reach"),
            ("8.8.8.0/24", "public, which needs no permission"),
            ("2606:4700::/32", "public"),
            ("169.254.169.254", "link-local, which no source may reach"),
            ("169.254.0.0/16", "link-local"),
            ("168.63.129.16/32", "cloud metadata"),
            ("100.100.100.200/32", "cloud metadata"),
            ("fd00:ec2::254", "cloud metadata"),
            ("0.0.0.0", "this network"),  # noqa: S104  nothing is bound
            ("::ffff:127.0.0.1", "IPv4 in IPv6"),
            ("64:ff9b::/96", "public"),
            ("203.0.113.0/24", "for documentation"),
            ("127.0.0.1/8", "host bits"),
            ("fe80::1%lo", "link-local"),
            ("localhost", "does not appear"),
            ("", "does not appear"),
        ],
    )
    def test_are_nothing_else(self, text: str, problem: str):
        with pytest.raises(ValueError, match=f".*{problem.replace('(', '.').replace(')', '.')}"):
            allowed_network(text)
