"""Where things are: the studio's folder, its projects, and the paths that a browser may name.

PRIVACY: a path that somebody types must lead into the project's folder, or into one that was allowed when the
studio was started (``--tables``); links are followed first. All else on the machine stays out of reach.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from sidelight.data.reading.read import files_of
from sidelight.errors import InputError
from sidelight.sources import has_password, is_postgres, scheme_of, source_name
from sidelight.studio import store
from sidelight.studio.project import Project, is_release, is_slug, slug_of

OWN = ".studio"
"""The folder of the studio's own files, in its root and in every project."""
_MOST_PROJECTS = 500
_READABLE = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq", ".xlsx")


@dataclass(frozen=True)
class Place:
    """One project on disk."""

    path: Path
    allowed: tuple[Path, ...] = ()
    """Further folders whose tables may be named."""

    @property
    def slug(self) -> str:
        """The project's name in addresses: that of its folder."""
        return self.path.name

    @property
    def own(self) -> Path:
        """Where the studio keeps what is its own."""
        return self.path / OWN

    @property
    def schema(self) -> Path:
        """The schema file, as the command line reads it."""
        return self.path / "schema.toml"

    def project(self) -> Project:
        """The choices so far."""
        found = store.read(Project, self.path / "project.json")
        if found is None:
            raise InputError(f"the project {self.slug} was removed.")
        return found

    def save(self, project: Project) -> None:
        """Keep what was chosen."""
        store.write(self.path / "project.json", project)

    def release(self, name: str) -> Path:
        """The folder of a release."""
        return self.path / "releases" / name

    def releases(self) -> list[str]:
        """The names of all finished releases, the latest first."""
        folder = self.path / "releases"
        found = [path for path in folder.glob("*/release.json") if is_release(path.parent.name)]
        return [path.parent.name for path in sorted(found, key=lambda one: -one.stat().st_mtime)]

    def source(self, text: str) -> str:
        """A table that somebody named, as the project keeps it; refused if it may not be named."""
        said = text.strip()
        if scheme_of(said) is not None or said.startswith("spark:"):
            return self._address(said)
        # PRIVACY: nothing is looked up outside, and what lies there is as if it were not there.
        files = files_of(str(self.path / said)) if self._is_inside(_fixed_part(self.path / said)) else []
        if not files or not all(self._is_inside(Path(file)) for file in files):
            raise InputError(
                f"there is no file {said!r} in the project's folder. Put it there, or name a file in a "
                "folder that was allowed when the studio was started (--tables)."
            )
        if not all(file.lower().endswith(_READABLE) for file in files):
            raise InputError(f"the name of a table must end in one of {', '.join(_READABLE)}; got {said!r}.")
        return self.shown(self.path / said)

    def folder_of_prior(self, text: str) -> str:
        """The folder of an earlier release or a prior, which may serve as public data."""
        found = self.path / text.strip()
        self._require_inside(found, text.strip())
        if not (found / "release.json").is_file() and not (found / "prior.json").is_file():
            raise InputError(f"{text.strip()!r} is no folder of a release or of a prior.")
        return self.shown(found)

    def ledger(self, text: str) -> str:
        """A ledger that somebody named, as the project keeps it."""
        said = text.strip()
        if scheme_of(said) is not None:
            return self._address(said)
        self._require_inside((self.path / said).parent, said)
        self._require_inside(self.path / said, said)
        return self.shown(self.path / said)

    def resolved(self, source: str) -> str:
        """A source as any process can open it; the project's own are kept relative to its folder."""
        is_address = scheme_of(source) is not None or source.startswith("spark:")
        return source if is_address else str(self.path / source)

    def _is_inside(self, path: Path) -> bool:
        """Whether a path leads into the project's folder, or into one that was allowed."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError):  # a name that no file can have, or links in a circle
            return False
        home = self.path.resolve()
        is_own = real.is_relative_to(home) and OWN not in real.relative_to(home).parts
        return is_own or any(real.is_relative_to(folder) for folder in self.allowed)

    def _require_inside(self, path: Path, said: str) -> None:
        """Refuse a path that leads out of the project's folder and of those that were allowed."""
        if not self._is_inside(path):
            raise InputError(
                f"{said!r} lies outside of the project's folder. Copy the file there; or start the "
                "studio with --tables FOLDER, which allows the tables of another folder."
            )

    def shown(self, path: Path) -> str:
        """A path as the project keeps it: relative to its folder where it lies in it."""
        absolute = path.absolute()
        home = self.path.absolute()
        return absolute.relative_to(home).as_posix() if absolute.is_relative_to(home) else str(absolute)

    def _address(self, said: str) -> str:
        if has_password(said):
            raise InputError(
                "the address holds a password, which would be kept in a file. Leave it out, and put it "
                "into a password file (~/.pgpass); the guide to databases says how."
            )
        if not is_postgres(said) and not said.startswith("spark:"):
            raise InputError(
                f"{source_name(said)} is no address that sidelight reads: a table of a database is "
                "postgresql://…#table, one of a cluster spark:table."
            )
        return said


def _fixed_part(path: Path) -> Path:
    """The folder that a pattern is looked up in: all parts before the first that may match several names.

    A pattern that goes up again leads anywhere: it is looked up in the root, which is no project's.
    """
    parts = path.parts
    first = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    return Path(path.anchor) if ".." in parts[first:] else Path(*parts[:first])


@dataclass(frozen=True, kw_only=True)
class Studio:
    """The folder that is served, and how."""

    root: Path
    origins: tuple[str, ...] = ("http://127.0.0.1:8765",)
    """The addresses that people may type, the first one printed; others are refused."""
    tables: tuple[Path, ...] = ()
    """Further folders whose tables may be named."""
    upload_mb: int = 200
    """Largest public table that may be uploaded."""
    two_people: bool = False
    """Whether every plan needs a second person."""

    @property
    def is_secure(self) -> bool:
        """Whether people reach it over TLS."""
        return self.origins[0].startswith("https:")

    @property
    def own(self) -> Path:
        """Where links and sessions are kept."""
        return self.root / OWN

    def places(self) -> Iterator[Place]:
        """Every project of the folder, by name."""
        found = sorted(self.root.glob("*/project.json"))
        for path in found[:_MOST_PROJECTS]:
            if is_slug(path.parent.name):
                yield Place(path.parent, self.tables)

    def place(self, slug: str) -> Place | None:
        """The project of this name; None where there is none."""
        if not is_slug(slug) or not (self.root / slug / "project.json").is_file():
            return None
        return Place(self.root / slug, self.tables)

    def create(self, title: str) -> Place:
        """A new project in a folder of its own."""
        said = " ".join(title.split())
        if not 1 <= len(said) <= 100 or not said.isprintable():
            raise InputError("give the project a title of 1 to 100 characters.")
        first = slug_of(said)
        for number in range(1, _MOST_PROJECTS):
            slug = first if number == 1 else f"{first[:50].strip('-')}-{number}"
            if not (self.root / slug).exists():
                break
        place = Place(store.private_folder(self.root / slug), self.tables)
        store.private_folder(place.own)
        place.save(Project(title=said))
        return place
