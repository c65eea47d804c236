"""What a source file may say (design.md §4). Importing this imports no Dagster and no driver.

Wrong types and unknown fields are refused when the object is made, as a `ContractError` that names the field;
`registry.py` adds the file. Fields that later releases bring to life are here from the start; using one is a clear
`NotBuiltYet`. `docs/source-contract.md` is generated from this package.

`source.py` has the fields of a source, `kind_map.py` and `hosts.py` what follows from them, `checks/` what they cannot
say taken together; the other modules are the parts that fields are made of.
"""

from __future__ import annotations

from dataclasses import replace

from collector_assets.contract.browser import Action, Browser, Click, Fill, Loads, Press, Scroll, View
from collector_assets.contract.budget import Budget
from collector_assets.contract.expect import Expect
from collector_assets.contract.inputs import FromFile, FromQuery, FromSource
from collector_assets.contract.keys import Keys
from collector_assets.contract.kind import SITEMAP, Kind, OnStatus
from collector_assets.contract.lengths import FOREVER, days, hours, minutes, seconds
from collector_assets.contract.rendering import InHeader, InJson, RenderingService
from collector_assets.contract.retention import Retention
from collector_assets.contract.schemas import schema_columns
from collector_assets.contract.session import ClientCredentials, Session
from collector_assets.contract.source import Source
from collector_assets.contract.start_urls import named_url
from collector_assets.errors import ContractError
from collector_assets.page import Page
from collector_assets.record import Record, Unreadable, attempt
from collector_assets.request import Link, RestartChain, Secret
from collector_assets.window import Cron, Daily, Hourly, Window

__all__ = [
    "FOREVER", "SITEMAP", "Action", "Browser", "Budget", "Click", "ClientCredentials", "ContractError", "Cron",
    "Daily", "Expect", "Fill", "FromFile", "FromQuery", "FromSource", "Hourly", "InHeader", "InJson", "Keys",
    "Kind", "Link", "Loads", "OnStatus", "Page", "Press", "Record", "RenderingService", "RestartChain", "Retention",
    "Scroll", "Secret", "Session", "Source", "Unreadable", "View", "Window", "attempt", "days", "hours", "minutes",
    "named_url", "replace", "schema_columns", "seconds",
]  # fmt: skip
