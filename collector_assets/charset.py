"""From bytes to text as browsers do it: WHATWG labels and decoders, in the order BOM, header, meta, evidence.

Where it differs from a browser: a source may say that the header lies (`Kind.encoding`, after the BOM); a `<meta>`
anywhere in the page counts (a browser decodes again when it meets a late one); labels that the standard maps to
"replacement" are passed over, in doubt; and bytes that nothing declares are UTF-8 if they are valid as such, before any
legacy default. What is XML by its type has an XML declaration and no meta.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from collector_assets.facts import fact

SUSPECT: Final = "encoding_suspect"
"""Flag: the bytes do not fit the charset that was used, or fit UTF-8 as well as the one that was declared, or nothing
said which one it is. The text may hold U+FFFD."""
DEFAULT: Final = "windows-1252"

# Name in the Encoding Standard, the Python codec that decodes it (repaired by `_repair` below), the labels besides the
# name. https://encoding.spec.whatwg.org/#names-and-labels
_TABLE: Final[str] = """
utf-8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866 866 cp866 csibm866
iso-8859-2 iso8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i
  iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7
  iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
  iso_8859-8:1988 visual iso-8859-8-i csiso88598i logical
iso-8859-10 iso8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13 iso8859-13 iso885913
iso-8859-14 iso8859-14 iso8859-14 iso885914
iso-8859-15 iso8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16
koi8-r koi8-r cskoi8r koi koi8 koi8_r
koi8-u koi8-u koi8-ru
macintosh mac-roman csmacintosh mac x-mac-roman
windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250 cp1250 x-cp1250
windows-1251 cp1251 cp1251 x-cp1251
windows-1252 cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591
  iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253 cp1253 cp1253 x-cp1253
windows-1254 cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5
  x-cp1254
windows-1255 cp1255 cp1255 x-cp1255
windows-1256 cp1256 cp1256 x-cp1256
windows-1257 cp1257 cp1257 x-cp1257
windows-1258 cp1258 cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic x-mac-ukrainian
gbk gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 gb18030
big5 big5hkscs big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc-jp cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022-jp-ext csiso2022jp
shift_jis cp932 csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949 cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be utf-16-be unicodefffe
utf-16le utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
x-user-defined latin-1
"""
_REPLACED: Final = frozenset(
    {"csiso2022kr", "hz-gb-2312", "iso-2022-cn", "iso-2022-cn-ext", "iso-2022-kr", "replacement"}
)
"""Labels of the encoding "replacement": stateful, hence never decoded on the web."""

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))


@fact
class Text:
    """A decoded body."""

    text: str
    """Without the byte order mark."""
    encoding: str
    """Name in the Encoding Standard, in lower case."""
    flags: frozenset[str] = frozenset()


def decode(body: bytes, content_type: str = "", *, encoding: str | None = None) -> Text:
    """The body as text; never fails. `content_type` is the header's value; `encoding` a label that is known better."""
    for mark, marked in _BOMS:
        if body.startswith(mark):
            return _read(body[len(mark) :], marked)
    if encoding and (known := encoding_of(encoding)):
        return _read(body, known)
    declared = _declared(body, content_type)
    found = _as_declared(body, declared) if declared else _by_evidence(body)
    return _doubted(found) if not declared and _REPLACED.intersection(_of_header(content_type)) else found


def sniffed_codec(head: bytes, content_type: str = "", *, encoding: str | None = None) -> str:
    """The Python codec of a long body, by the same signals as far as its beginning shows them.

    To be used with the error handler "whatwg"; a byte order mark is left to the caller.
    """
    marked = next((name for mark, name in _BOMS if head.startswith(mark)), None)
    known = marked or (encoding and encoding_of(encoding)) or _declared(head, content_type)
    if known:
        return _codecs()[known]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return _codecs()[DEFAULT]
    return "utf-8"


def encode(text: str, encoding: str) -> bytes:
    """The text in an encoding as a browser sends it in a form: what it lacks as `&#1234;`, UTF-16 as UTF-8."""
    if encoding in _NEVER_SENT:
        encoding = "utf-8"
    return text.encode(encoder_of(encoding), "xmlcharrefreplace")


def encoding_of(label: str) -> str | None:
    """The encoding that a label means, or None if it means none on the web (utf-7 does not, whatever Python knows)."""
    return _labels().get(label.strip("\t\n\f\r ").lower())


def encoder_of(encoding: str) -> str:
    """The Python codec that writes an encoding of the standard; it lacks a few characters that browsers write."""
    return {"gbk": "gbk", "big5": "cp950"}.get(encoding) or _codecs()[encoding]


def codec_of(encoding: str) -> str:
    """The Python codec of an encoding's name, for reading in pieces; without the repairs of `decode`."""
    return _codecs()[encoding]


def _declared(body: bytes, content_type: str) -> str | None:
    if found := _of_type(content_type):
        return found
    if not may_have_meta(content_type):
        return None
    return _of_xml_declaration(body) if _is_xml(content_type) else of_meta(body)


@lru_cache(maxsize=256)
def _of_type(content_type: str) -> str | None:
    return _first_known(_of_header(content_type))


# --- The signals ---------------------------------------------------------------------------------------------------

_PARAMETER: Final = re.compile(r"""(?:^|[;,\s])charset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)


def _of_header(content_type: str) -> Iterator[str]:
    """The charset parameters; quotes and doubled headers are no obstacle."""
    return (found[1].lower() for found in _PARAMETER.finditer(content_type))


def _is_xml(content_type: str) -> bool:
    """XML that is no XHTML: a meta in it is somebody else's markup, in a CDATA section."""
    mime = content_type.partition(";")[0].strip().lower()
    return mime in ("text/xml", "application/xml") or (mime.endswith("+xml") and "xhtml" not in mime)


@lru_cache(maxsize=256)
def may_have_meta(content_type: str) -> bool:
    """Whether the declared type leaves room for HTML or XML; types lie, so only what has its own rules is out."""
    return not re.search(r"json|csv|javascript|ecmascript", content_type, re.IGNORECASE)


# What may hold something that looks like a meta element and is none, and the meta element itself.
_TAG: Final = re.compile(rb"<(?:!--|(meta)(?=[\s/])|(script|style|textarea|title)\b|/?[a-z])", re.IGNORECASE)
# A quote opens a value only after "=". One character at a time: nothing to try again when a tag has no end.
_REST_OF_TAG: Final = re.compile(rb"""(?:[^>=]|=\s*(?:"[^"]*"|'[^']*'|(?!["'\s])))*>""")
# How most pages begin: nothing before the first meta element but comments that could hold something like one.
_GAP: Final = rb"(?:\s++|<!(?=--)(?:[^-]++|-(?!-!?>))*+--!?>)*+"
_PLAIN_HEAD: Final = re.compile(
    rb"""%(gap)b(?:<!doctype[^<>]*+>%(gap)b)?(?:<html(?=[\s>])[^<>"'=]*+(?:="[^"<>]*+"[^<>"'=]*+)*+>%(gap)b)?"""
    rb"""<head>%(gap)b(?:<title>[^<]*+</title>%(gap)b)?<meta(?=\s)((?:[^<>"'=]|="[^"<>]*+")*+)>""" % {b"gap": _GAP},
    re.IGNORECASE,
)
_COMMENT_END: Final = re.compile(rb"--!?>")
_ATTRIBUTE: Final = re.compile(rb"""([^\s=/>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?""")
_META_AT_ALL: Final = re.compile(rb"<meta[\s/]", re.IGNORECASE)
_IN_CONTENT: Final = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_SHORT_TAG: Final = 1_024
"""Bytes of a tag that is remembered."""
_XML_DECLARATION: Final = re.compile(rb"""\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"'>]+)["']""")


def of_meta(body: bytes) -> str | None:
    """The encoding that the page itself declares: in a meta element wherever it is, else in its XML declaration."""
    found = _of_plain_head(body) or (_first_known(_meta_labels(body)) if _META_AT_ALL.search(body) else None)
    if found == "x-user-defined":
        return DEFAULT
    return _as_ascii(found) if found else _of_xml_declaration(body)


def _of_plain_head(body: bytes) -> str | None:
    """What the first meta element says, where it can be told at one glance that it is one."""
    head = _PLAIN_HEAD.match(body)
    return _first_known(_labels_in(head[1])) if head and len(head[1]) <= _SHORT_TAG else None


def _of_xml_declaration(body: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(body)
    return _as_ascii(encoding_of(declaration[1].decode("latin-1"))) if declaration else None


def _as_ascii(found: str | None) -> str | None:
    """What was read as ASCII cannot be UTF-16 (HTML standard, "prescan a byte stream to determine its encoding")."""
    return "utf-8" if found in ("utf-16le", "utf-16be") else found


def _meta_labels(body: bytes) -> Iterator[str]:
    for tag in _metas(body):
        yield from _labels_in(tag) if len(tag) <= _SHORT_TAG else _labels_in.__wrapped__(tag)


@lru_cache(maxsize=256)  # a site says it on every page with the same words
def _labels_in(tag: bytes) -> tuple[str, ...]:
    attributes: dict[bytes, str] = {}
    for name, *values in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name.lower(), b"".join(values).decode("latin-1"))
    if b"charset" in attributes:
        return (attributes[b"charset"],)
    if attributes.get(b"http-equiv", "").strip().lower() == "content-type":
        return tuple("".join(found) for found in _IN_CONTENT.findall(attributes.get(b"content", "")))
    return ()


def _metas(body: bytes) -> Iterator[bytes]:
    """What each meta element says; none that is in a comment, in another tag's attribute or in a script.

    What has no end swallows the rest of the page, as it does in a browser.
    """
    at = 0
    while tag := _TAG.search(body, at):
        if tag[0] == b"<!--":
            end = _COMMENT_END.search(body, tag.end() - 2)  # <!--> is a whole comment
        else:
            end = _REST_OF_TAG.match(body, tag.end())
            if end and tag[1]:
                yield body[tag.end() : end.end() - 1]
            if end and tag[2]:
                end = re.compile(rb"</%b\b" % tag[2], re.IGNORECASE).search(body, end.end())
        if not end:
            return
        at = end.end()


def _first_known(labels: Iterable[str]) -> str | None:
    return next((found for found in map(encoding_of, labels) if found), None)


# --- The decoders --------------------------------------------------------------------------------------------------


_JIS: Final = frozenset({"euc-jp", "iso-2022-jp"})
_NEVER_SENT: Final = frozenset({"utf-16le", "utf-16be", "x-user-defined"})
"""The standard's output encoding of UTF-16 is UTF-8; of x-user-defined there is no Python codec."""
_UNLIKE_UTF_8: Final = frozenset({"utf-8", "utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings of which UTF-8 cannot be mistaken for one."""
_WIDE: Final = dict(zip(map(ord, "〜‖−¢£¬"), "～∥－￠￡￢", strict=True))  # noqa: RUF001
"""Where the standard's table of JIS X 0208 is Microsoft's and Python's is not."""
_USER_DEFINED: Final = {byte: 0xF700 + byte for byte in range(0x80, 0x100)}


def _read(body: bytes, encoding: str) -> Text:
    text, is_clean = _decoded(body, encoding)
    return Text(text=text, encoding=encoding, flags=frozenset() if is_clean else frozenset({SUSPECT}))


def _as_declared(body: bytes, encoding: str) -> Text:
    """As declared, as browsers do; in doubt where the bytes are UTF-8 beyond ASCII and declared otherwise."""
    found = _read(body, encoding)
    is_doubtful = encoding not in _UNLIKE_UTF_8 and not body.isascii() and _is_utf_8(body)
    return _doubted(found) if is_doubtful else found


def _doubted(found: Text) -> Text:
    return Text(text=found.text, encoding=found.encoding, flags=frozenset({SUSPECT}))


def _is_utf_8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _by_evidence(body: bytes) -> Text:
    for encoding, sign in (("utf-16le", b"<\0"), ("utf-16be", b"\0<")):
        if body.startswith(sign):
            return _read(body, encoding)
    try:
        return Text(text=body.decode("utf-8"), encoding="utf-8")
    except UnicodeDecodeError:
        return Text(text=_decoded(body, DEFAULT)[0], encoding=DEFAULT, flags=frozenset({SUSPECT}))


def _decoded(body: bytes, encoding: str) -> tuple[str, bool]:
    """The text, and whether every byte had a meaning."""
    codec = _codecs()[encoding]
    try:
        text, is_clean = body.decode(codec), True
    except UnicodeDecodeError:
        text = body.decode(codec, "whatwg")
        is_clean = "\ufffd" not in text
    if encoding in _JIS:
        text = text.translate(_WIDE)
    elif encoding == "x-user-defined":
        text = text.translate(_USER_DEFINED)
    return text, is_clean


def _repair(error: UnicodeError) -> tuple[str, int]:
    """What the Encoding Standard makes of bytes that Python's codec of that name does not know."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    codec, data, at = error.encoding.lower().replace("_", "-"), error.object, error.start
    byte = data[at]
    if codec == "gb18030" and byte == 0x80:
        return "\u20ac", at + 1
    if codec == "charmap" and 0x80 <= byte < 0xA0:  # any of the single-byte ones
        return chr(byte), at + 1
    if codec == "euc-jp" and 0xA1 <= byte <= 0xFE and (extended := _extended_kanji(data[at : at + 2])):
        return extended, at + 2
    return "\ufffd", max(error.end, at + 1)


def _extended_kanji(pair: bytes) -> str:
    """NEC and IBM characters in EUC-JP, by way of the same row and cell in Shift_JIS."""
    if len(pair) != 2 or not 0xA1 <= pair[1] <= 0xFE:
        return ""
    row, cell = pair[0] - 0xA1, pair[1] - 0xA1
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + (0x9F if row % 2 else 0x40)
    trail += not row % 2 and trail >= 0x7F
    try:
        return bytes((lead, trail)).decode("cp932")
    except UnicodeDecodeError:
        return ""


codecs.register_error("whatwg", _repair)


@lru_cache(maxsize=1)
def _labels() -> dict[str, str]:
    return {label: words[0] for words in _rows() for label in (words[0], *words[2:])}


@lru_cache(maxsize=1)
def _codecs() -> dict[str, str]:
    return {words[0]: words[1] for words in _rows()}


def _rows() -> Iterator[Sequence[str]]:
    return (row.split() for row in _TABLE.replace("\n  ", " ").strip().splitlines())
