"""A paper that a mechanism comes from, as reports and release cards cite it; those that several cite."""

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


HARDT_2012 = Paper(
    authors=("Hardt", "Ligett", "McSherry"),
    title="A simple and practical algorithm for differentially private data release",
    year=2012,
    venue="NIPS",
    arxiv="1012.4763",
)
MCKENNA_2018 = Paper(
    authors=("McKenna", "Miklau", "Hay", "Machanavajjhala"),
    title="Optimizing error of high-dimensional statistical queries under differential privacy",
    year=2018,
    venue="VLDB",
    arxiv="1808.03537",
)
XIAO_2023 = Paper(
    authors=("Xiao", "He", "Zhang", "Kifer"),
    title="An optimal and scalable matrix mechanism for noisy marginals under convex loss functions",
    year=2023,
    venue="NeurIPS",
    arxiv="2305.08175",
)
