"""Hosts that lead where nobody may go: as people spell them, as resolvers answer them, as links hide them."""

from __future__ import annotations


def listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADDRESSES = listed("""
127.0.0.1 127.0.0.3 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1
169.254.169.254 169.254.170.2 169.254.1.1 100.100.100.200 168.63.129.16 192.0.0.192 192.0.0.1 198.18.0.1 192.88.99.1
224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 ::1 :: ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 2002:7f00:1::
2002:a9fe:a9fe:: 2001:0:7f00:1::1 2001::1 fe80::1 fe80::1%lo fec0::1 fc00::1 fd00:ec2::254 fd20:ce::254
fd00:c1::a9fe:a9fe fd00:42::42 ff02::1 ff0e::1 2606:4700::5efe:7f00:1 2606:4700::200:5efe:a9fe:a9fe 4000::1 5f00::1
""")
"""As a resolver gives them."""

SPELLINGS = (
    *(f"[{ip}]" if ":" in ip else ip for ip in ADDRESSES if "%" not in ip),
    *listed("""
127.1 127.0.1 127.0.0.1. 2130706433 0x7f000001 0x7f.0.0.1 0X7F.1 0177.0.0.1 017700000001 0177.0x0.0.1 127.0.0.0x1
00000177.0.0.1 127.000.000.001 0 0x0 00 0.0 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 4294967297
127.0.0.1.. 127..0.1 [0:0:0:0:0:0:0:1] [0000::0001] [::0:1] [::ffff:0x7f.1] [::1%25lo] [fe80::1%25lo] [fe80::1%lo]
localhost LOCALHOST LocalHost. localhost.. shop.localhost shop.localhost. a.b.localhost.
127.0.0.1%00 127.0.0.1%20 %31%32%37.0.0.1 127%2E0%2E0%2E1 127%2e1 0x7f%2e1 localhost%00 localhost%2e
"""),
    "127\u30020\u30020\u30021",  # ideographic full stops
    "127\uff0e0\uff0e0\uff0e1",  # full-width full stops
    "\uff11\uff12\uff17.0.0.1",  # full-width digits
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",  # enclosed digits
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",  # full-width localhost
    "loc\u00adalhost",  # a soft hyphen
    "lo\u200bcalhost",  # a zero-width space
    "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3",  # enclosed localhost
    "127.0.0.1\t",
    "127.0.0.1\n",
    " 127.0.0.1",
)
"""As URLs spell them: with these a parser, or the system's resolver, arrives at a forbidden address."""

HOSTS = ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "localhost", "0")

HIDDEN = (
    "http://{host}/", "HTTP://{host}/", "http:\\\\{host}\\", "http:/\\{host}/", "http:///{host}/", "http:////{host}/",
    "http:\\/\\/{host}/", "//{host}/", "\\\\{host}\\", "/\\{host}/", "\\/{host}/", " http://{host}/ ",
    "\thttp://{host}/", "ht\ntp://{host}/", "http:/\t/{host}/", "http://{host}", "http://{host}?", "http://{host}#",
    "http://site.example@{host}/", "http://site.example:80@{host}/", "http://:@{host}/", "http://a:b@{host}/",
    "http://a@b@{host}/", "http://site.example%40{host}/", "http://{host}#@site.example/",
    "http://{host}?@site.example/", "http://{host}\\@site.example/", "http://site.example\\@{host}/",
    "http://site.example#@{host}/", "http://site.example?@{host}/", "http://site.example/@{host}/",
    "http://{host}/..//site.example/", "https://{host}/", "ws://{host}/", "ftp://{host}/", "gopher://{host}/",
    "file://{host}/etc/passwd", "file:///etc/passwd", "javascript:location='http://{host}/'",
    "data:text/html,<a href='http://{host}/'>", "view-source:http://{host}/", "jar:http://{host}/", "dict://{host}/",
    "blob:http://{host}/", "unix:/var/run/docker.sock",
)  # fmt: skip
"""How a Location or a link leads to a host without saying so."""
