"""Cross-validation over domains: leave one out, and score by the worst."""

from anymix.model_selection.leave_one_out import (
    LeaveOneDomainOut,
    WorstDomainScorer,
    worst_domain_scorer,
)

__all__ = ["LeaveOneDomainOut", "WorstDomainScorer", "worst_domain_scorer"]
