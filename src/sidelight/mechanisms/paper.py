"""A paper that a mechanism comes from, as reports and release cards cite it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Paper:
    """Who published it, under which title, when and where.

    >>> print(Paper(authors=("Dwork", "Roth"), title="The algorithmic foundations", year=2014))
    Dwork, Roth, "The algorithmic foundations" (2014)
    """

    authors: tuple[str, ...]
    """Family names, in the paper's order."""
    title: str
    year: int
    venue: str | None = None
    """Conference or journal, in short."""
    arxiv: str | None = None
    """Number at arXiv."""

    def __str__(self) -> str:
        when = f"{self.venue} {self.year}" if self.venue else str(self.year)
        where = f", arXiv:{self.arxiv}" if self.arxiv else ""
        return f'{", ".join(self.authors)}, "{self.title}" ({when}){where}'
