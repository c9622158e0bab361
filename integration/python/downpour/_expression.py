"""Query expressions as the WebSocket takes them: as JSON sub-queries."""

from __future__ import annotations

import re
from typing import Any, Union

from ._errors import DownpourError

Query = Union[str, dict[str, Any]]  # evaluated, so not with | before Python 3.10


def parse(expression: Query) -> dict[str, Any]:
    """Reads AGG:part:…:METRIC{group tags}{filter tags}, OpenTSDB's m parameter.

    >>> parse("sum:1m-avg:rate:cpu{host=*}")["filters"]
    [{'type': 'wildcard', 'tagk': 'host', 'filter': '*', 'groupBy': True}]

    A sub-query that is JSON already is returned as it is.
    """
    if isinstance(expression, dict):
        return expression
    head, brace, tags = _metric_at(expression)
    aggregator, *parts = head.split(":")
    metric = parts.pop() if parts else ""
    if not metric or not aggregator:
        raise DownpourError(f"{expression!r} is no query: want AGGREGATOR:METRIC, such as sum:cpu.user")
    query: dict[str, Any] = {"aggregator": aggregator, "metric": metric}
    for part in parts:
        _part(query, part, expression)
    filters = _filters(brace + tags, expression)
    return query | {"filters": filters} if filters else query


def _metric_at(expression: str) -> tuple[str, str, str]:
    """Cuts before the braces of the metric: those of rate{…} stand before a colon."""
    start = re.search(r"\{(?!(?:[^{}:]*)\}:)", expression)
    if not start:
        return expression, "", ""
    return expression[: start.start()], "{", expression[start.end():]


def _part(query: dict[str, Any], part: str, expression: str) -> None:
    lower = part.lower()
    if lower.startswith("rate"):
        query["rate"] = True
        if "{" in part:
            query["rateOptions"] = _rate(part)
    elif part[:1].isdigit():
        query["downsample"] = part
    elif lower.startswith("percentiles[") and part.endswith("]"):
        query["percentiles"] = _numbers(part[len("percentiles[") : -1], expression)
    elif lower == "show-histogram-buckets":
        query["showHistogramBuckets"] = True
    elif lower.startswith("explicit_tags"):
        query["explicitTags"] = True
    else:
        raise DownpourError(f"{part!r} in {expression!r} is not known: want a downsample such as 5m-avg, rate, percentiles[50,99], show-histogram-buckets or explicit_tags")


def _numbers(text: str, expression: str) -> list[float]:
    try:
        return [float(p) for p in text.split(",")]
    except ValueError:
        raise DownpourError(f"percentiles[{text}] in {expression!r} has what is no number") from None


def _rate(part: str) -> dict[str, Any]:
    """Reads rate{counter,max,reset}; dropcounter leaves resets out."""
    kind, *numbers = part[part.index("{") + 1 : part.rindex("}")].split(",")
    options: dict[str, Any] = {"counter": kind in ("counter", "dropcounter"), "dropResets": kind == "dropcounter"}
    for name, text in zip(("counterMax", "resetValue"), numbers):
        if text:
            options[name] = int(text)
    return options


def _filters(text: str, expression: str) -> list[dict[str, Any]]:
    """Reads {group tags}{filter tags}; the latter come first, as the gateway has it."""
    if not text:
        return []
    if not text.endswith("}") or text.count("}{") > 1:
        raise DownpourError(f"{expression!r} is no query: want {{group tags}}{{filter tags}} after the metric")
    group, _, only = text[1:-1].partition("}{")
    return _braces(only, False, expression) + _braces(group, True, expression)


def _braces(text: str, group: bool, expression: str) -> list[dict[str, Any]]:
    filters = []
    for pair in re.split(r",(?=[^,=()]+=)", text) if text else []:
        key, equals, value = pair.partition("=")
        if not equals or not key or not value:
            raise DownpourError(f"{pair!r} in {expression!r} is no filter: want TAG=VALUE")
        filters.append(_filter(key.strip(), value.strip(), group))
    return filters


def _filter(key: str, value: str, group: bool) -> dict[str, Any]:
    call = re.fullmatch(r"(\w+)\((.*)\)", value, re.DOTALL)
    if call:
        kind, value = call.groups()
    else:
        kind = "wildcard" if "*" in value else "literal_or"
    return {"type": kind, "tagk": key, "filter": value, "groupBy": group}
