"""Names of months and days as pages of a language write them; abbreviations are their beginnings."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from collector_assets.record import Unreadable


@dataclass(frozen=True, slots=True)
class Language:
    """Names in order, other spellings after "/"; case and accents do not matter."""

    months: tuple[str, ...]
    """From January."""
    weekdays: tuple[str, ...]
    """From Monday."""
    days: tuple[str, str, str]
    """Yesterday, today, tomorrow."""

    def month(self, word: str) -> int | None:
        """The number of a month, 1 to 12, by its name or by at least three letters that begin no other."""
        at = _place(word, self.months, shortest=3)
        return None if at is None else at + 1

    def weekday(self, word: str) -> int | None:
        """0 for Monday, by the name or by at least two letters that begin no other."""
        return _place(word, self.weekdays, shortest=2)

    def shift(self, word: str) -> int | None:
        """Days from today of "yesterday" and the like."""
        at = _place(word, self.days, shortest=len(word))
        return None if at is None else at - 1


def _place(word: str, names: tuple[str, ...], *, shortest: int) -> int | None:
    plain = _plain(word)
    found = {
        at for at, spellings in enumerate(names) for name in spellings.split("/") if _plain(name).startswith(plain)
    }
    exact = {at for at, spellings in enumerate(names) if plain in map(_plain, spellings.split("/"))}
    if exact:
        return min(exact)
    if len(plain) < shortest or not found:
        return None
    if len(found) > 1:
        raise Unreadable("ambiguous", f"{word!r} begins several names")
    return found.pop()


def _plain(text: str) -> str:
    """Lower case, no accents, no dot at the end."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter)).rstrip(".")


ENGLISH: Final = Language(
    ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
     "December"),
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ("yesterday", "today", "tomorrow"),
)  # fmt: skip
GERMAN: Final = Language(
    ("Januar/Jänner", "Februar/Feber", "März/Mrz", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober",
     "November", "Dezember"),
    ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag/Sonnabend", "Sonntag"),
    ("gestern", "heute", "morgen"),
)  # fmt: skip
FRENCH: Final = Language(
    ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
     "décembre"),
    ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    ("hier", "aujourd'hui/aujourd’hui", "demain"),
)  # fmt: skip
SPANISH: Final = Language(
    ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre/setiembre", "octubre",
     "noviembre", "diciembre"),
    ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
    ("ayer", "hoy", "mañana"),
)  # fmt: skip
ITALIAN: Final = Language(
    ("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre",
     "novembre", "dicembre"),
    ("lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"),
    ("ieri", "oggi", "domani"),
)  # fmt: skip
DUTCH: Final = Language(
    ("januari", "februari", "maart/mrt", "april", "mei", "juni", "juli", "augustus", "september", "oktober",
     "november", "december"),
    ("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"),
    ("gisteren", "vandaag", "morgen"),
)  # fmt: skip
PORTUGUESE: Final = Language(
    ("janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro", "novembro",
     "dezembro"),
    ("segunda/segunda-feira", "terça/terça-feira", "quarta/quarta-feira", "quinta/quinta-feira", "sexta/sexta-feira",
     "sábado", "domingo"),
    ("ontem", "hoje", "amanhã"),
)  # fmt: skip
