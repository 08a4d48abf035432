# SPDX-License-Identifier: GPL-2.0-or-later
"""How a job ended, and whether that is explained (pure)."""

NOTE = "flex:"
# What every waiting or running job is told; it explains no end.
ROUTINE = ("flex: waiting for", "flex: VMs end")
HELD = {"JobHeldAdmin", "JobHeldUser"}


def outcome(record, *, is_cancelled, lost_nodes):
    """('completed', '') or (what, problem): a problem if nothing says why it did not complete.

    `record` is scontrol's; `lost_nodes` are its nodes whose VM was killed or whose lease ended.
    """
    state, reason = record.get("JobState", ""), record.get("Reason", "")
    comment = record.get("AdminComment", "")
    has_note = comment.startswith(NOTE) and not comment.startswith(ROUTINE)
    is_repeatable = record.get("Requeue") == "1" and record.get("BatchFlag") == "1"
    if state == "COMPLETED":
        return "completed", ""
    if state == "CANCELLED":
        return ("cancelled", "") if is_cancelled else ("cancelled by nobody", "was not cancelled by its user")
    if state == "PENDING" and reason in HELD and has_note:
        return "held with a note", ""
    if state == "NODE_FAIL":
        if is_repeatable:
            return "node failed", "may be requeued and was not"
        if has_note or lost_nodes:
            return "node failed, not to be requeued", ""
        return "node failed", "neither a note nor a lost VM"
    if state == "FAILED" and lost_nodes:
        return "failed with a lost VM", ""
    return state.lower(), f"is {state} ({reason}; {comment or 'no note'})"
