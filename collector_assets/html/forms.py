"""A form of a page as the request that a browser would send, hidden fields and all (HTML standard, "form submission").

Fields are named as on the page; one that the form lacks, or a choice that it does not offer, is `Unreadable`: the site
has changed. What only a script could fill in is given by `extra`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selectolax.lexbor import LexborNode

from collector_assets import charset, queries, urls
from collector_assets.html.elements import one
from collector_assets.page import Page
from collector_assets.record import Unreadable
from collector_assets.request import URLENCODED, Link, Secret

Value = str | Secret | Sequence[str] | None
"""What a field is set to: a text, a secret, several choices, or None to leave it out."""

MULTIPART: Final = "multipart/form-data"
_ENCTYPES: Final = frozenset({URLENCODED, MULTIPART, "text/plain"})
_BUTTONS: Final = frozenset({"submit", "image", "button", "reset"})
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_IN_TABLES: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One control, by the entries that it would send."""

    name: str
    entries: tuple[str, ...]
    """Its values now: none for a box that is not checked."""
    choices: tuple[str, ...] | None = None
    """Values that it offers, where it offers some."""


def form(
    page: Page,
    css: str,
    values: Mapping[str, Value] | None = None,
    *,
    submit: str | None = None,
    extra: Mapping[str, str] | None = None,
    **link: Any,
) -> Link:
    """The link that sends the one form that `css` matches, with these values in its fields and all others as they are.

    `submit` is the selector of the button that is pressed; without it the form's first one is, as by the Enter key.
    `extra` are fields that the page's scripts would add. What else a `Link` has (`kind`, `hints`, `lane` …) goes along.
    """
    node = one(page, css)
    if node.tag != "form":
        raise Unreadable("malformed", f"{css!r} matches a <{node.tag}>, not a form")
    controls = [each for each in _controls(page, node) if not _is_disabled(each)]
    button = one(page, submit) if submit else next(filter(_is_submit, controls), None)
    encoding = _encoding(page, node)
    fields = [_named_charset(found, encoding) for each in controls for found in _fields(each, button)]
    entries = [*_filled(fields, values or {}), *(extra or {}).items()]
    return _link(page, node, button, entries, encoding, link)


# --- The fields ------------------------------------------------------------------------------------------------------


def _controls(page: Page, form_node: LexborNode) -> Iterator[LexborNode]:
    """What belongs to the form, in document order: inside it, by `form="id"`, or after it in the table it stands in.

    The last is how parsers leave a form that opens between the rows of a table: empty, its controls beside it.
    """
    own_id = form_node.attributes.get("id")
    table = form_node.parent
    table = _ancestor(form_node, {"table"}) if table is not None and table.tag in _IN_TABLES else None
    latest: LexborNode | None = None
    for node in page.tree.css("form, input, select, textarea, button"):
        if node.tag == "form":
            latest = node
            continue
        said = node.attributes.get("form")
        owner = _ancestor(node, {"form"})
        if said is not None:
            is_ours = bool(said) and said == own_id
        elif owner is not None:
            is_ours = owner == form_node
        else:
            is_ours = table is not None and latest == form_node and _ancestor(node, {"table"}, until=table) is not None
        if is_ours and _ancestor(node, {"datalist", "template"}) is None:
            yield node


def _ancestor(node: LexborNode, tags: Collection[str | None], *, until: LexborNode | None = None) -> LexborNode | None:
    """The closest element around this one of these names; with `until`, that very element."""
    parent = node.parent
    while parent is not None:
        if parent.tag in tags and (until is None or parent == until):
            return parent
        parent = parent.parent
    return None


def _is_disabled(node: LexborNode) -> bool:
    """Disabled itself, or in a disabled fieldset outside of its first legend."""
    if "disabled" in node.attributes:
        return True
    inner, fieldset = node, node.parent
    while fieldset is not None:
        if fieldset.tag == "fieldset" and "disabled" in fieldset.attributes:
            first_legend = next((child for child in fieldset.iter() if child.tag == "legend"), None)
            if first_legend is None or inner != first_legend:
                return True
        inner, fieldset = fieldset, fieldset.parent
    return False


def _type(node: LexborNode) -> str:
    said = (node.attributes.get("type") or "").lower()
    if node.tag == "button":
        return said if said in ("reset", "button") else "submit"
    return said or "text"


def _is_submit(node: LexborNode) -> bool:
    return node.tag in ("input", "button") and _type(node) in ("submit", "image")


def _fields(node: LexborNode, button: LexborNode | None) -> Iterator[_Field]:
    name = node.attributes.get("name") or ""
    if node.tag == "select":
        fields = [_select(node, name)]
    elif node.tag == "textarea":
        fields = [_Field(name=name, entries=(_raw_text(node),))]
    elif _type(node) in _BUTTONS:
        fields = list(_pressed(node, name)) if button is not None and node == button else []
    elif _type(node) in ("checkbox", "radio"):
        value = _value(node, "on")
        fields = [_Field(name=name, entries=(value,) if "checked" in node.attributes else (), choices=(value,))]
    elif _type(node) == "file":  # no file is an empty text
        fields = [_Field(name=name, entries=("",))]
    else:  # of one line, unless it is hidden
        value = _value(node, "")
        fields = [_Field(name=name, entries=(value if _type(node) == "hidden" else _LINE_END.sub("", value),))]
    yield from (each for each in fields if each.name)


def _value(node: LexborNode, default: str) -> str:
    return (node.attributes["value"] or "") if "value" in node.attributes else default


def _pressed(node: LexborNode, name: str) -> Iterator[_Field]:
    if _type(node) == "image":  # where it was clicked: its corner
        prefix = f"{name}." if name else ""
        yield from (_Field(name=f"{prefix}{axis}", entries=("0",)) for axis in "xy")
    else:
        yield _Field(name=name, entries=(_value(node, ""),))


def _select(node: LexborNode, name: str) -> _Field:
    options = [(option, _option_value(option)) for option in node.css("option")]
    usable = [(option, value) for option, value in options if not _is_option_disabled(option)]
    chosen = [value for option, value in usable if "selected" in option.attributes]
    if "multiple" not in node.attributes:
        is_list = (node.attributes.get("size") or "1").strip() not in ("", "0", "1")
        chosen = chosen[-1:] or ([] if is_list else [value for _, value in usable[:1]])
    return _Field(name=name, entries=tuple(chosen), choices=tuple(value for _, value in usable))


def _option_value(option: LexborNode) -> str:
    return _value(option, " ".join((option.text(deep=True) or "").split()))


def _is_option_disabled(option: LexborNode) -> bool:
    group = option.parent
    in_disabled_group = group is not None and group.tag == "optgroup" and "disabled" in group.attributes
    return "disabled" in option.attributes or in_disabled_group


def _raw_text(node: LexborNode) -> str:
    return node.text(deep=True) or ""


def _named_charset(field: _Field, encoding: str) -> _Field:
    """A field called `_charset_` says the form's encoding."""
    return _Field(name=field.name, entries=(encoding,)) if field.name.lower() == "_charset_" else field


def _filled(fields: Sequence[_Field], values: Mapping[str, Value]) -> Iterator[tuple[str, str | Secret]]:
    """(name, value) of everything that is sent, in the order of the page."""
    if unknown := values.keys() - {field.name for field in fields}:
        raise Unreadable("missing", f"the form has no field {min(unknown)!r}; a script's fields are given by extra")
    for name, value in values.items():
        _check_choice(name, _listed(value), [field for field in fields if field.name == name])
    given: set[str] = set()
    for field in fields:
        if field.name not in values:
            entries: Iterable[str | Secret] = field.entries
        elif field.choices is not None:
            entries = [each for each in _listed(values[field.name]) if each in field.choices]
        else:  # several values of a free field go where its first stands
            entries = [] if field.name in given else _listed(values[field.name])
            given.add(field.name)
        yield from ((field.name, entry) for entry in entries)


def _listed(value: Value) -> Sequence[str | Secret]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str | Secret) else value


def _check_choice(name: str, wanted: Sequence[str | Secret], fields: Sequence[_Field]) -> None:
    if any(field.choices is None for field in fields):
        return
    offered = [choice for field in fields for choice in field.choices or ()]
    if missing := [value for value in wanted if value not in offered]:
        shown = ", ".join(map(repr, offered[:10]))
        raise Unreadable("missing", f"the field {name!r} does not offer {missing[0]!r}; it offers {shown}")


# --- The request -----------------------------------------------------------------------------------------------------


def _encoding(page: Page, node: LexborNode) -> str:
    said = (node.attributes.get("accept-charset") or "").split()
    chosen = next(filter(None, map(charset.encoding_of, said)), page.encoding)
    return "utf-8" if chosen.startswith("utf-16") else chosen


def _setting(name: str, node: LexborNode, button: LexborNode | None) -> str:
    """An attribute of the form, or what the button says instead."""
    if button is not None and (said := button.attributes.get(f"form{name}")) is not None:
        return said
    return node.attributes.get(name) or ""


def _link(
    page: Page,
    node: LexborNode,
    button: LexborNode | None,
    entries: Sequence[tuple[str, str | Secret]],
    encoding: str,
    link: dict[str, Any],
) -> Link:
    method = _setting("method", node, button).strip().lower()
    if method == "dialog":
        raise Unreadable("malformed", "the form closes a dialog and sends nothing")
    target = _target(page, _setting("action", node, button))
    said = _setting("enctype", node, button).strip().lower()
    enctype = said if said in _ENCTYPES else URLENCODED
    address = target.partition("#")[0]
    bare = address.partition("?")[0]
    pairs = [(_crlf(name), _crlf(value)) for name, value in entries if isinstance(value, str)]
    if len(pairs) < len(entries):
        return _secret_link(address if method == "post" else bare, method, enctype, entries, encoding, link)
    if method != "post":
        return Link(f"{bare}?{_urlencoded(pairs, encoding).decode('ascii')}", **link)
    content_type, body = _body(enctype, pairs, encoding)
    headers = {"Content-Type": content_type, **link.pop("headers", {})}
    return Link(address, method="POST", body=body, headers=headers, **link)


def _secret_link(
    address: str,
    method: str,
    enctype: str,
    entries: Sequence[tuple[str, str | Secret]],
    encoding: str,
    link: dict[str, Any],
) -> Link:
    """With secrets in it: they are put in their places when it is sent, in UTF-8, so nothing here may need another."""
    pairs = [(_crlf(name), _crlf(value) if isinstance(value, str) else value) for name, value in entries]
    if method != "post":
        return Link(address, query=pairs, **link)
    if enctype != URLENCODED:
        raise Unreadable("malformed", f"a form sent as {enctype} cannot carry a Secret")
    if encoding != "utf-8" and not all(part.isascii() for pair in pairs for part in pair if isinstance(part, str)):
        raise Unreadable("malformed", f"a form in {encoding} cannot carry a Secret beside texts beyond ASCII")
    return Link(address, method="POST", body=pairs, **link)


def _target(page: Page, action: str) -> str:
    """Where the form is sent; without an action to the page itself, whatever its base."""
    if not action:
        return page.final_url
    address = page.resolve(action)
    if isinstance(address, urls.Rejected):
        raise Unreadable("malformed", f"the form's action {action[:100]!r} is no web address ({address.reason})")
    return address.url


def _crlf(text: str) -> str:
    return _LINE_END.sub("\r\n", text)


def _urlencoded(pairs: Sequence[tuple[str, str]], encoding: str) -> bytes:
    """WHATWG URL, "application/x-www-form-urlencoded serializing"."""
    coded = ((charset.encode(name, encoding), charset.encode(value, encoding)) for name, value in pairs)
    return "&".join(f"{queries.form_coded(name)}={queries.form_coded(value)}" for name, value in coded).encode("ascii")


def _body(enctype: str, pairs: Sequence[tuple[str, str]], encoding: str) -> tuple[str, bytes]:
    if enctype == URLENCODED:
        return enctype, _urlencoded(pairs, encoding)
    if enctype == "text/plain":
        return enctype, charset.encode("".join(f"{name}={value}\r\n" for name, value in pairs), encoding)
    parts = [_part(name, value, encoding) for name, value in pairs]
    # From the content, so that the same form is the same work; the chance that a part holds it is none.
    boundary = f"----{hashlib.blake2b(b''.join(parts), digest_size=16).hexdigest()}".encode()
    body = b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts) + b"--%b--\r\n" % boundary
    return f"{enctype}; boundary={boundary.decode()}", body


def _part(name: str, value: str, encoding: str) -> bytes:
    escaped = charset.encode(name, encoding)
    for character, escape in ((b"\r", b"%0D"), (b"\n", b"%0A"), (b'"', b"%22")):
        escaped = escaped.replace(character, escape)
    return b'Content-Disposition: form-data; name="%b"\r\n\r\n%b' % (escaped, charset.encode(value, encoding))
