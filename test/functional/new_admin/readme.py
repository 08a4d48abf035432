# SPDX-License-Identifier: GPL-2.0-or-later
"""README's five steps, as they are written there: the fenced blocks of each (pure)."""
import re
import textwrap
from dataclasses import dataclass, field

SECTION = "## Set it up: five steps"
# The words in capitals that an admin fills in.
PLACEHOLDERS = {"PROJECT": "flex-test", "SERVICE_ACCOUNT": "slurm@flex-test.iam.gserviceaccount.com", "IMAGE": "slurm-vm"}


@dataclass
class Step:
    number: int
    title: str
    blocks: list = field(default_factory=list)  # (language, text)

    def block(self, language, number=0):
        found = [text for kind, text in self.blocks if kind == language]
        if len(found) <= number:
            raise AssertionError(f"README's step {self.number} has no {language} block number {number + 1}")
        return found[number]


def section(text):
    start = text.index(SECTION) + len(SECTION)
    end = re.search(r"^## ", text[start:], re.M)
    return text[start:start + end.start()] if end else text[start:]


def steps(text):
    """The numbered items of the section, in order."""
    found = []
    parts = re.split(r"^(\d+)\. \*\*(.+?)\*\*", section(text), flags=re.M)
    for number, title, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        step = Step(int(number), title)
        for fence in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", body, re.M | re.S):
            step.blocks.append((fence[2], textwrap.dedent(fence[3])))
        found.append(step)
    return found


def unknown_placeholders(text):
    """Words in capitals that nobody fills in; variables of the shell are not meant."""
    words = set(re.findall(r"(?<![$\w{])[A-Z][A-Z_]{2,}\b(?![-=])", text))
    return words - set(PLACEHOLDERS) - {"FLEX_START", "DELETE", "TERMINATE"}


def fill(text):
    for word, value in PLACEHOLDERS.items():
        text = re.sub(rf"(?<![\w$]){word}(?!\w)", value, text)
    return text
