"""What is done in an open page: waited for, clicked, filled in, scrolled; and what is read from it in the end.

A click and a key are real ones, at the place where a person would make them. Looking is done inside the page, in one
call: it answers when there is something, not when it is asked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from collector_assets.contract import Action, Click, Fill, Press, Scroll
from collector_assets.fetch.devtools import DevtoolsError, Session
from collector_assets.request import Secret

_AWAIT: Final = """(selector, ms, visible) => new Promise(done => {
  const seen = () => { const e = document.querySelector(selector);
    return e && (!visible || e.getClientRects().length > 0); };
  if (seen()) return done(true);
  const end = answer => { watch.disconnect(); clearTimeout(late); clearInterval(again); done(answer); };
  const watch = new MutationObserver(() => { if (seen()) end(true); });
  watch.observe(document, {childList: true, subtree: true, attributes: true, characterData: true});
  const again = setInterval(() => { if (seen()) end(true); }, 250);
  const late = setTimeout(() => end(seen() ? true : false), ms);
})"""
_PLACE: Final = """selector => {
  const e = document.querySelector(selector);
  e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  const box = e.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""
_FOCUS: Final = """selector => { const e = document.querySelector(selector); e.focus(); if (e.select) e.select(); }"""
_SCROLL: Final = """(selector, ms) => new Promise(done => {
  const count = () => document.querySelectorAll(selector).length, before = count();
  const end = () => { clearInterval(again); clearTimeout(late); done(count() > before); };
  const again = setInterval(() => { if (count() > before) end(); }, 50), late = setTimeout(end, ms);
  window.scrollTo(0, document.documentElement.scrollHeight);
})"""
_DOM: Final = """() => {
  const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + '\\n' : '';
  return [type + document.documentElement.outerHTML, window.length, document.URL];
}"""
_KEYS: Final = {
    "Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Backspace": (8, ""), "Delete": (46, ""),
    "Space": (32, " "), "PageUp": (33, ""), "PageDown": (34, ""), "End": (35, ""), "Home": (36, ""),
    "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""),
}  # fmt: skip
"""Name: the code that pages know it by, and what it writes."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A document, seen from a world of our own: what its scripts have made of `querySelector` is not there."""

    session: Session
    world: int

    @classmethod
    async def of(cls, session: Session, frame: str) -> Inside:
        """The document that a frame shows now."""
        made = await session.call("Page.createIsolatedWorld", frameId=frame)
        return cls(session, made["executionContextId"])

    async def run(self, function: str, *values: Any) -> Any:
        """The value of a function that runs there."""
        call = f"({function})({', '.join(map(json.dumps, values))})"
        found = await self.session.call(
            "Runtime.evaluate", expression=call, contextId=self.world, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            said = found["exceptionDetails"].get("exception", {}).get("description", "") or "an error in the page"
            raise DevtoolsError(said.partition("\n")[0])
        return found["result"].get("value")


class Unsettled(Exception):
    """What was waited for did not come; the message says what."""


async def there(page: Inside, selector: str, within_s: float, *, visible: bool = False) -> None:
    """Until a selector finds something; `Unsettled` when it does not within the time."""
    if not await page.run(_AWAIT, selector, round(within_s * 1_000), visible):
        raise Unsettled(f"nothing that {selector!r} finds came within {within_s:g} s")


async def act(page: Inside, actions: Sequence[Action], within_s: float) -> None:
    """Do them in turn, each within the time; `Unsettled` names the one that could not be done."""
    for action in actions:
        match action:
            case Click(selector, wait_for):
                await _click(page, selector, within_s)
                if wait_for:
                    await there(page, wait_for, within_s)
            case Fill(selector, text):
                await there(page, selector, within_s, visible=True)
                await page.run(_FOCUS, selector)
                await page.session.call("Input.insertText", text=_revealed(text))
            case Press(key, selector):
                if selector:
                    await there(page, selector, within_s, visible=True)
                    await page.run(_FOCUS, selector)
                await _press(page, key)
            case Scroll(items, most, settle):
                for _ in range(most):
                    if not await page.run(_SCROLL, items, round(settle.total_seconds() * 1_000)):
                        break


async def _click(page: Inside, selector: str, within_s: float) -> None:
    await there(page, selector, within_s, visible=True)
    x, y = await page.run(_PLACE, selector)
    for kind, buttons in (("mousePressed", 1), ("mouseReleased", 0)):
        await page.session.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1
        )


async def _press(page: Inside, key: str) -> None:
    code, text = _KEYS.get(key, (ord(key[:1].upper() or " "), key))
    name = " " if key == "Space" else key
    said = {"key": name, "code": key, "windowsVirtualKeyCode": code}
    await page.session.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **said)
    await page.session.call("Input.dispatchKeyEvent", type="keyUp", **said)


def _revealed(text: str | Secret) -> str:
    if isinstance(text, str):
        return text
    if (value := text.read()) is None:
        raise SecretUnset(f"{text.name} is not set in the environment")
    return value


class SecretUnset(Exception):
    """A secret that an action puts into a field is not in the environment."""


# --- Reading ----------------------------------------------------------------------------------------------------------


async def dom(page: Inside) -> tuple[bytes, int, str]:
    """The document as it is now, in UTF-8; how many frames are in it; and its address."""
    html, frames, address = await page.run(_DOM)
    return html.encode("utf-8", "replace"), frames, address


async def frames(page: Inside) -> list[tuple[str, bytes]]:
    """Address and document of each frame in a page, frames in frames too; one that went away meanwhile is left out."""
    tree = (await page.session.call("Page.getFrameTree"))["frameTree"]
    found: list[tuple[str, bytes]] = []
    waiting = list(tree.get("childFrames", []))
    while waiting:
        each = waiting.pop(0)
        waiting += each.get("childFrames", [])
        try:
            html, _, address = await (await Inside.of(page.session, each["frame"]["id"])).run(_DOM)
        except DevtoolsError:
            continue
        found.append((address, html.encode("utf-8", "replace")))
    return found


def left_s(deadline: float, most_s: float) -> float:
    """A wait that ends by the deadline."""
    return max(0.0, min(most_s, deadline - monotonic()))
