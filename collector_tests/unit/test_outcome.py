from __future__ import annotations

from pathlib import Path

import pytest

from collector_assets.outcome import POLICY, Outcome, Policy, of_status, outcome_table, policy

PAGE = Path(__file__).parents[2] / "docs" / "outcomes.md"
RETRIED = {
    "host_unresolved", "connect_error", "connection_lost", "timeout", "truncated", "protocol_error", "unavailable",
    "empty_body", "revisit_lost", "condition_failed", "fetcher_error", "lease_expired",
    "rendering_failed", "never_settled", "page_crashed",
}  # fmt: skip


class TestPolicies:
    def test_every_outcome_has_one(self):
        assert set(POLICY) == set(Outcome)

    def test_only_a_page_that_is_here_is_kept(self):
        assert [each for each in Outcome if policy(each) is Policy.KEEP] == [Outcome.OK, Outcome.NOT_MODIFIED]

    def test_what_may_pass_by_itself_is_retried_and_nothing_else(self):
        assert {each.value for each in Outcome if policy(each) is Policy.RETRY} == RETRIED

    def test_what_is_not_wanted_is_skipped(self):
        unwanted = {
            Outcome.UNWANTED, Outcome.OUT_OF_SCOPE, Outcome.ROBOTS_DISALLOWED, Outcome.KNOWN, Outcome.SOFT_GONE,
            Outcome.GONE_CONFIRMED, Outcome.CHAIN_RESTARTED,
        }  # fmt: skip
        assert {each for each in Outcome if policy(each) is Policy.SKIP} == unwanted

    def test_a_no_counts_towards_a_halt_and_later_costs_no_attempt(self):
        assert {each for each in Outcome if policy(each) is Policy.HALT} == {Outcome.REFUSED, Outcome.BLOCKED}
        later = {Outcome.THROTTLED, Outcome.NOT_YET, Outcome.ROBOTS_UNREACHABLE, Outcome.NO_SESSION}
        assert {each for each in Outcome if policy(each) is Policy.SNOOZE} == later


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "meaning"),
        [
            (200, Outcome.OK),
            (201, Outcome.UNEXPECTED_STATUS),
            (204, Outcome.UNEXPECTED_STATUS),
            (206, Outcome.UNEXPECTED_STATUS),
            (300, Outcome.UNEXPECTED_STATUS),
            (301, Outcome.REDIRECT),
            (302, Outcome.REDIRECT),
            (303, Outcome.REDIRECT),
            (304, Outcome.UNEXPECTED_STATUS),
            (307, Outcome.REDIRECT),
            (308, Outcome.REDIRECT),
            (400, Outcome.CLIENT_ERROR),
            (401, Outcome.REFUSED),
            (403, Outcome.REFUSED),
            (404, Outcome.GONE),
            (407, Outcome.REFUSED),
            (410, Outcome.GONE),
            (418, Outcome.CLIENT_ERROR),
            (429, Outcome.THROTTLED),
            (451, Outcome.REFUSED),
            (500, Outcome.SERVER_ERROR),
            (502, Outcome.UNAVAILABLE),
            (503, Outcome.UNAVAILABLE),
            (504, Outcome.UNAVAILABLE),
            (505, Outcome.SERVER_ERROR),
            (999, Outcome.UNEXPECTED_STATUS),
        ],
    )
    def test_means(self, status: int, meaning: Outcome):
        assert of_status(status) is meaning

    def test_only_502_503_and_504_are_retried(self):
        assert [status for status in range(100, 1000) if policy(of_status(status)) is Policy.RETRY] == [502, 503, 504]


class TestTable:
    def test_has_one_row_for_each_outcome_in_order(self):
        rows = outcome_table().splitlines()[2:]

        assert [row.split("`")[1] for row in rows] == [each.value for each in Outcome]

    def test_is_the_one_in_the_docs(self):
        assert PAGE.read_text().endswith(f"\n\n{outcome_table()}"), (
            "put the text of outcome_table() into docs/outcomes.md"
        )

    def test_every_row_has_three_cells_with_words(self):
        for row in outcome_table().splitlines():
            cells = row.strip("|").split("|")
            assert len(cells) == 3
            assert all(cell.strip() for cell in cells)
