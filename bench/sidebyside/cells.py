"""Cells and tables of Markdown that also read well as plain text."""

from __future__ import annotations

from statistics import median

from .estimate import Ratio


def ratio_cell(found: Ratio | None) -> str:
    """An estimate with its interval, as far as there is one."""
    if found is None:
        return "?"
    if found.low is None:
        return f"{found.estimate:.2f} (no interval)"
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"


def busy(runs: list[dict]) -> str:
    """How much of their CPU the generator and the server used: the one near 100 % set the rate."""
    shares = (
        median(run[used] / run["wall_s"] for run in runs) for used in ("cpu_s", "origin_cpu_s")
    )
    return ", ".join(f"{share:.0%}" for share in shares)


def mebibytes(runs: list[dict]) -> str:
    return f"{median(run['peak_bytes'] for run in runs) / 2**20:.1f} MiB"


def lag(quantiles: dict[float, float], wanted: tuple[float, ...]) -> str:
    """Microseconds, `?` where it was not told."""
    def micro(ns: float) -> str:
        return f"{ns / 1e3:,.0f}" if ns == 0 or ns >= 1e3 else f"{ns / 1e3:.1f}"
    return " / ".join(micro(quantiles[q]) if q in quantiles else "?" for q in wanted)


def table(names: list[str], rows: list[list[str]]) -> str:
    """The first column to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        padded = (
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if at == 0 else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    return "\n".join([line(names), line(rule), *map(line, rows)])
