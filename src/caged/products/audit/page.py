"""The page of an audit: what the lists of a recommender do to popular and niche items, on one page."""

from __future__ import annotations

from collections.abc import Sequence

from caged.page.definitions import glossary
from caged.page.html import Page, Section, render
from caged.products.audit.charts import has_test, main_k
from caged.products.audit.evidence import SHORT
from caged.products.audit.result import AuditResult
from caged.products.audit.sections import sections_of, shown_keys
from caged.products.audit.severity import severity
from caged.products.audit.verdict import evidence_text, verdict
from caged.runs.versions import versions


def audit_html(audit: AuditResult, *, further: Sequence[Section] = (), links: Sequence[tuple[str, str]] = ()) -> str:
    """One self-contained page; `further` sections come before all numbers, `links` lead to pages beside it."""
    return render(audit_page(audit, further=further, links=links))


def audit_page(audit: AuditResult, *, further: Sequence[Section] = (), links: Sequence[tuple[str, str]] = ()) -> Page:
    sections = sections_of(audit)
    return Page(
        title=f"Popularity audit: {audit.name}",
        subtitle=_subtitle(audit),
        headline=severity(audit),
        findings=verdict(audit),
        notice=evidence_text(audit),
        sections=[*sections[:-1], *further, sections[-1]],
        command=audit.command or "a call of caged.audit in Python",
        glossary=glossary(
            [key for key in shown_keys(audit) if key.k == main_k(audit) or key.metric.of_shown], audit.share
        ),
        facts=_facts(audit),
        links=links,
    )


def _subtitle(audit: AuditResult) -> str:
    listed = int(audit.counts.get("users_listed", 0))
    items, pairs = len(audit.exposure.degrees), int(audit.exposure.degrees.sum())
    protocol = f" Protocol: {audit.protocol}." if audit.protocol else ""
    return (
        f"The first {main_k(audit)} recommendations for {listed:,} users, from a catalogue of {items:,} items with "
        f"{pairs:,} training interactions.{protocol}"
    )


def _facts(audit: AuditResult) -> list[tuple[str, str]]:
    facts = [("accuracy on", SHORT[audit.evidence if has_test(audit) else "none"]), *versions().items()]
    return facts + [(name, fingerprint[:16]) for name, fingerprint in audit.fingerprints.items()]
