"""A folder of this process's own, for what DuckDB spills and for the names that it must not interpret.

Only its owner can enter it, and nobody can guess its name. It is removed when the process ends; a
forked process makes another one, and leaves its parent's alone.
"""

import atexit
import os
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from functools import lru_cache
from multiprocessing import util
from pathlib import Path

from sidelight.errors import DataError

# To DuckDB * ? [ ] { } are patterns, and ~ and : have a meaning in front.
_PLAIN = re.compile(r"[\w /.,+=@~:-]*", re.DOTALL)


def own_folder() -> Path:
    """This process's folder; OSError where none can be made."""
    return _made(os.getpid())


@lru_cache(maxsize=1)  # by process
def _made(process: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="sidelight-"))  # which only its owner may enter
    atexit.register(_remove, folder, process)
    # Processes that multiprocessing forks do not come by atexit.
    util.Finalize(None, _remove, args=(folder, process), exitpriority=0)
    return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class PlainNames:
    """Paths as DuckDB may read them: each stands for one file, whatever its name looks like."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._links: list[str] = []
        self.paths = [self._plain(os.path.abspath(path)) for path in paths]

    def kept_by(self, owner: object) -> None:
        """Remove the links once ``owner`` is gone."""
        if self._links:
            # The end of the process removes the whole folder.
            weakref.finalize(owner, unlink, self._links, os.getpid()).atexit = False

    def _plain(self, path: str) -> str:
        # On Windows a path begins with a drive, and makes no links without a right of its own.
        named = path.replace(os.sep, "/")
        if _PLAIN.fullmatch(named):
            return path
        try:
            link = own_folder() / f"{uuid.uuid4().hex}{''.join(Path(path).suffixes[-1:]).lower()}"
            if not _PLAIN.fullmatch(str(link).replace(os.sep, "/")):
                raise OSError
            link.symlink_to(path)
        except OSError:
            raise DataError(
                f"{path!r} has characters that stand for a pattern, and no link to it can be made in the "
                "folder for temporary files. Rename the file."
            ) from None
        self._links.append(str(link))
        return str(link)


def unlink(links: Sequence[str], process: int) -> None:
    """Remove these files, in the process that made them."""
    if os.getpid() == process:
        for link in links:
            Path(link).unlink(missing_ok=True)
