"""The popularity bias of any recommender: from its lists and the log it learned from. Needs no torch."""

from caged.products.audit.examples import example_of, typical_users
from caged.products.audit.folder import StoredAudit, read_audit, write_audit
from caged.products.audit.gates import (
    Base,
    Gate,
    Verdict,
    check_gates,
    judge,
    parse_gate,
    refuse_problems,
    refuse_unmeasured,
    sure_interval,
)
from caged.products.audit.group_sections import group_tables
from caged.products.audit.inputs import AuditInputs, Log, read_inputs
from caged.products.audit.of_lists import USUAL, ListNames, audit_evaluation, audit_lists
from caged.products.audit.of_run import audit_run
from caged.products.audit.page import audit_html
from caged.products.audit.result import AuditResult, ExampleItem, GateOutcome
from caged.products.audit.run_sections import run_sections
from caged.products.audit.view import (
    HEADERS,
    REPORT,
    Audit,
    audit,
    save_audit,
    summary_rows,
    summary_title,
    to_json,
    verdict_sentences,
)

__all__ = [
    "HEADERS",
    "REPORT",
    "USUAL",
    "Audit",
    "AuditInputs",
    "AuditResult",
    "Base",
    "ExampleItem",
    "Gate",
    "GateOutcome",
    "ListNames",
    "Log",
    "StoredAudit",
    "Verdict",
    "audit",
    "audit_evaluation",
    "audit_html",
    "audit_lists",
    "audit_run",
    "check_gates",
    "example_of",
    "group_tables",
    "judge",
    "parse_gate",
    "read_audit",
    "read_inputs",
    "refuse_problems",
    "refuse_unmeasured",
    "run_sections",
    "save_audit",
    "summary_rows",
    "summary_title",
    "sure_interval",
    "to_json",
    "typical_users",
    "verdict_sentences",
    "write_audit",
]
