#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Alert rules, dashboard and docs/OPERATIONS.md against the metrics that there are, and against promtool.

Usage: monitoring_test.py SOURCE_DIR
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import plain_tests

ROOT = Path(sys.argv[1]).resolve()
RULES = ROOT / "etc/prometheus/flex-start.rules.yml"
OPERATIONS = (ROOT / "docs/OPERATIONS.md").read_text(encoding="utf-8")
METRIC = r"flex_start_[a-z_]+"
# What a histogram is in the text.
PARTS = ("_bucket", "_sum", "_count")


def promtool():
    """Where it is; None if Debian has none here."""
    own = ROOT / ".tools/promtool"
    return str(own) if own.exists() else shutil.which("promtool")


def metrics_made():
    """The names in the code."""
    sources = [(ROOT / "sweeper" / name).read_text(encoding="utf-8") for name in ("metrics.cc", "metrics_gauges.cc")]
    return set(re.findall(rf'"({METRIC})"', "".join(sources)))


def metrics_in(text):
    """The names that it uses, those of histograms without their ends."""
    made = metrics_made()
    names = set(re.findall(METRIC, text))
    return {next((name[:-len(end)] for end in PARTS if name.endswith(end) and name[:-len(end)] in made), name)
            for name in names}


def metrics_documented():
    rows = re.findall(r"^\| (`flex_start_.*?) \|", OPERATIONS, re.MULTILINE)
    return set(re.findall(METRIC, " ".join(rows)))


def alerts():
    return re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))


def dashboard():
    return json.loads((ROOT / "etc/grafana/slurm-flex-start.json").read_text(encoding="utf-8"))


def every_metric_is_documented_and_nothing_else_is():
    assert len(metrics_made()) > 25
    assert metrics_documented() == metrics_made(), metrics_documented() ^ metrics_made()


def alerts_and_dashboard_use_metrics_that_there_are():
    for path in ("etc/prometheus/flex-start.rules.yml", "etc/prometheus/flex-start.rules.test.yml", "etc/grafana/slurm-flex-start.json",
                 "docs/OPERATIONS.md"):
        unknown = metrics_in((ROOT / path).read_text(encoding="utf-8")) - metrics_made()
        assert not unknown, (path, unknown)


def every_metric_is_on_the_dashboard_or_in_an_alert():
    shown = metrics_in(RULES.read_text(encoding="utf-8")) | metrics_in(json.dumps(dashboard()))
    # For those who look closely.
    rest = {"flex_start_events_total", "flex_start_groups", "flex_start_rounds_incomplete_in_a_row"}
    assert metrics_made() - shown == rest, metrics_made() - shown


def every_alert_has_its_section_and_links_to_it():
    text = RULES.read_text(encoding="utf-8")
    headings = re.findall(r"^### (FlexStart\w+)$", OPERATIONS, re.MULTILINE)
    assert sorted(headings) == sorted(alerts()), set(headings) ^ set(alerts())
    links = re.findall(r"runbook_url: (\S+)", text)
    assert links == [f"docs/OPERATIONS.md#{name.lower()}" for name in alerts()], links
    for part in ("summary:", "description:", "severity:"):
        assert text.count(part) == len(alerts()), part
    for name in alerts():
        section = OPERATIONS.split(f"### {name}\n")[1].split("\n### ")[0]
        assert all(word in section for word in ("*Symptom:*", "*Look:*", "*Do:*")), name


def links_within_operations_lead_somewhere():
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
               for title in re.findall(r"^#+ (.+)$", OPERATIONS, re.MULTILINE)}
    for link in re.findall(r"\]\(#([^)]+)\)", OPERATIONS):
        assert link in anchors, link


def every_alert_is_tested():
    text = (ROOT / "etc/prometheus/flex-start.rules.test.yml").read_text(encoding="utf-8")
    for name in alerts():
        assert f'alertname="{name}", severity' in text and f"alertname: {name}}}" in text, name


def the_dashboard_can_be_imported():
    board = dashboard()
    assert board["uid"] and board["title"] and board["id"] is None
    variables = {each["name"]: each["type"] for each in board["templating"]["list"]}
    assert variables["datasource"] == "datasource", variables
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"] and panel["targets"], panel["title"]
        for used in re.findall(r"\$(\w+)", " ".join(target["expr"] for target in panel["targets"])):
            assert used in variables or used == "__rate_interval", used
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]}
    assert len(places) == len(ids), "panels on top of each other"


def what_is_rare_is_shown_over_hours():
    """A few requests a day: over the minutes of a rate they are no number."""
    rare = {"flex_start_queue_wait_seconds": "1d", "flex_start_resume_to_up_seconds": "1d", "flex_start_request_attempts_total": "1h",
            "flex_start_request_failures_total": "1h", "flex_start_requests_created_total": "1h"}
    expressions = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    for name, span in rare.items():
        spans = [re.search(r"\[(.*?)\]", text)[1] for text in expressions if name in text]
        assert spans and set(spans) == {span}, (name, spans)


def promtool_finds_the_rules_right():
    tool = promtool()
    if tool is None:
        print("     skipped: Debian has no promtool here (tools/promtool.sh)")
        return
    for words in (["check", "rules", str(RULES)], ["test", "rules", str(RULES.with_name("flex-start.rules.test.yml"))]):
        done = subprocess.run([tool, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=RULES.parent)
        assert done.returncode == 0, done.stdout


def promtool_takes_every_expression_of_the_dashboard():
    """As the expressions of recording rules."""
    tool = promtool()
    if tool is None:
        print("     skipped: Debian has no promtool here (tools/promtool.sh)")
        return
    expressions = [target["expr"].replace("$__rate_interval", "5m") for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    rules = [{"record": f"dashboard:{number}", "expr": text} for number, text in enumerate(expressions)]
    groups = json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})
    done = subprocess.run([tool, "check", "rules", "--lint=none", "/dev/stdin"], input=groups, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and f"{len(rules)} rules" in done.stdout, done.stdout


TESTS = [
    every_metric_is_documented_and_nothing_else_is,
    alerts_and_dashboard_use_metrics_that_there_are,
    every_metric_is_on_the_dashboard_or_in_an_alert,
    every_alert_has_its_section_and_links_to_it,
    links_within_operations_lead_somewhere,
    every_alert_is_tested,
    the_dashboard_can_be_imported,
    what_is_rare_is_shown_over_hours,
    promtool_finds_the_rules_right,
    promtool_takes_every_expression_of_the_dashboard,
]


if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
