"""The best–worst answers of SemEval-2012 task 2 (Jurgens et al., 2012), relation by relation."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import cast

from steelyard.formats import read_judgments
from steelyard.observations import Choices

ANSWERS = "bws/semeval2012_answers.csv.gz"
GOLD = "bws/semeval2012_gold.csv.gz"


def answers_by_relation(data: Path, relations: int | None = None) -> dict[str, Choices]:
    """Return the choices of each relation, or of the first few."""
    read = read_judgments(data / ANSWERS, columns={"criterion": "relation"}).by_criterion
    return {name: cast("Choices", choices) for name, choices in islice(read.items(), relations)}
