"""Random commands: each case is a command line and the files that it names, drawn from a seed and a number.

A third of the cases is valid throughout, so that commands get far; in the others each argument is, with some
probability, nearly right, wrong, or hostile.
"""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import damage
from material import PASSWORD_URL, SCHEMA, WORKLOADS

PATHS = [
    "", ".", "..", "/", "./", "folder", "missing/there", "people.csv/x", "*.csv", "[a]*.csv", "/dev/null/x",
    "/proc/x", "nul\0l", "x" * 5000, "d/" * 1500 + "x", "bad\udcff\udc80.csv", "-", "--", "~", "a b", "é.csv",
    "[red]x[/red]", "https://example.invalid/x.csv", PASSWORD_URL, f"{PASSWORD_URL}#t", "sqlite://",
    "sqlite:///:memory:", "x://y",
]  # fmt: skip
NUMBERS = ["0", "-1", "nan", "inf", "-inf", "1e-9", "1e-300", "1e300", "1e400", "abc", "", "0x1", "1_0", "９"]
WHOLE = ["0", "-1", "1.5", "nan", "abc", "", "99999999999999999999999", "9" * 5000, "1000000000000"]
SETTINGS = [
    "rounds=0", "rounds=-1", "rounds=1e9", "rounds=abc", "rounds", "=3", "select_share=2", "accounting=x",
    "x=[[[[", "max_model_mb=0.0001", "max_model_mb=-1", "estimator=1", "seed=-1", "max_rounds=true",
    "total_share=nan", "rounds=[1]", "rounds={}", "name=x", "passes=0", "step=1e308", "rounds=null",
    "rounds=" + "9" * 5000,
]  # fmt: skip
GOOD_SETTINGS = {
    "mwem": ["rounds=2", "rounds=1", "select_share=0.5", "model=components"],
    "aim": ["max_model_mb=1", "max_rounds=2"],
    "dualquery": ["max_rounds=3", "step=0.1"],
    "hdmm": ["objective=maximum", "reconstruction=least-squares"],
    "ladder": ["accounting=pure", "pairs=1", "fading=0.5"],
    "mst": ["max_model_mb=1", "rare_below=9"],
    "pmw-pub": ["rounds=2"],
    "barak": ["x=1"],
}


class Maker:
    """Draws one case into a folder."""

    def __init__(self, seed: int, number: int, material: Path, folder: Path) -> None:
        self.draw = random.Random(f"{seed}/{number}")  # no secrets are drawn
        self.number, self.material, self.folder = number, material, folder
        self.wrong = self.draw.choice([0.0, 0.05, 0.15, 0.15, 0.35])
        """How likely each argument is to be wrong."""

    def argv(self) -> list[str]:
        """The command line; its files lie in the folder by now."""
        (self.folder / "folder").mkdir()
        names = list(COMMANDS)
        command = self.draw.choices(names, [COMMANDS[name][0] for name in names])[0]
        argv = COMMANDS[command][1](self)
        if self.draw.random() < 0.2:
            argv.append("--json")
        if self.draw.random() < 0.03:
            argv.insert(
                self.draw.randrange(len(argv) + 1), self.draw.choice([*PATHS, "--x", "--help", "--epsilon"])
            )
        return argv

    def bad(self) -> bool:
        return self.draw.random() < self.wrong

    def pick(self, good: list[str], bad: list[str]) -> str:
        return self.draw.choice(bad if self.bad() else good)

    def option(self, name: str, good: list[str], bad: list[str], chance: float = 1.0) -> list[str]:
        if self.draw.random() >= (chance if not self.bad() else 0.9):
            return []
        return [name, self.pick(good, bad)]

    def use(self, name: str) -> str:
        """A copy of something that the material holds."""
        source, target = self.material / name, self.folder / name
        if not target.exists():
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copyfile(source, target)
        return name

    def damaged(self, name: str) -> str:
        """A damaged copy."""
        self.use(name)
        path = self.folder / name
        if path.is_dir():
            damage.folder(path, self.draw)
        else:
            self.draw.choice([damage.flip, damage.cut])(path, self.draw)
        return name

    def table(self, *, public: bool = False) -> str:
        if not self.bad():
            return self.use(
                "public.csv" if public else self.draw.choice(["people.csv"] * 4 + ["people.parquet"])
            )
        if self.draw.random() < 0.4:
            return self.draw.choice(PATHS)
        odd = ["holes.csv", "odd.csv", "one.csv", "names.csv", "empty.csv", "utf16.csv", "ragged.csv",
               "quotes.csv", "twice.csv", "junk.parquet", "people.toml", "good.ledger", "folder"]  # fmt: skip
        if self.draw.random() < 0.7:
            chosen = self.draw.choice(odd)
            return chosen if chosen == "folder" else self.use(chosen)
        return self.damaged(self.draw.choice(["people.csv", "people.parquet"]))

    def schema(self) -> list[str]:
        if not self.bad():
            return ["--schema", self.use(self.draw.choice(["people.toml"] * 4 + ["odd.toml"]))]
        if self.draw.random() < 0.3:
            return ["--schema", self.draw.choice([*PATHS, self.use("people.csv")])]
        text = damage.schema(SCHEMA, self.draw)
        (self.folder / "fuzz.toml").write_text(text, encoding="utf-8", errors="replace")
        return ["--schema", "fuzz.toml"]

    def workload(self) -> list[str]:
        if not self.bad():
            named = ["1-way", "2-way", "w1.json", "w2.json", "w3.json", "w4.json", "w5.json"]
            asked = self.draw.choice(named)
            return ["--workload", self.use(asked) if asked.endswith("json") else asked]
        if self.draw.random() < 0.3:
            return [
                "--workload",
                self.draw.choice(["0-way", "-1-way", "9999-way", "cuboids", "3-way", *PATHS]),
            ]
        name = self.draw.choice(list(WORKLOADS))
        if not name.startswith("bad"):
            value = damage.plain(json.loads(WORKLOADS[name]), self.draw)
            (self.folder / name).write_text(json.dumps(value), encoding="utf-8")
        return ["--workload", self.use(name)]

    def ledger(self, chance: float = 1.0) -> list[str]:
        if self.draw.random() >= chance:
            return []
        if not self.bad():
            return ["--ledger", self.use("good.ledger")]
        kind = self.draw.random()
        if kind < 0.3:
            return ["--ledger", self.draw.choice(PATHS)]
        if kind < 0.6:
            return ["--ledger", self.use(self.draw.choice(["tight.ledger", "people.ledger", "people.csv"]))]
        return ["--ledger", self.damaged("good.ledger")]

    def release_folder(self) -> str:
        if not self.bad() and self.wrong < 0.3:
            return self.use(self.draw.choice(["histogram", "histogram", "graphical", "support"]))
        if self.draw.random() < 0.2:
            return self.draw.choice([*PATHS, self.use("people.csv"), self.use("prior")])
        return self.damaged(self.draw.choice(["histogram", "graphical", "support"]))

    def out(self, name: str, option: str = "--out") -> list[str]:
        taken = ["people.csv", "folder", "histogram"]
        if self.bad() and self.draw.random() < 0.3:
            return [option, self.use(taken[0]) if self.draw.random() < 0.5 else self.draw.choice(taken[1:])]
        return self.option(option, [name], [*PATHS, "/dev/full", "deep/er/" + name])


def _release(m: Maker) -> list[str]:
    mechanism = m.draw.choice(
        ["mwem", "mwem", "aim", "mst", "hdmm", "ladder", "dualquery", "pmw-pub", "barak"]
    )
    argv = ["release", m.table(), *m.schema(), *m.ledger(), *m.workload(), *m.out("made")]
    argv += m.option("--epsilon", ["0.5", "1", "0.1"], NUMBERS)
    argv += m.option("--mechanism", [mechanism], ["nope", "", "jam", "aperture", "mwem-pub", "\0"])
    if mechanism == "pmw-pub" or m.bad():
        argv += ["--public", m.table(public=True) if m.draw.random() < 0.8 else m.damaged("prior")]
    argv += m.option("--set", GOOD_SETTINGS[mechanism], SETTINGS, float(mechanism == "pmw-pub") or 0.5)
    argv += ["--set", m.draw.choice(SETTINGS)] if m.bad() else []
    if m.draw.random() < 0.15:
        argv += ["--checkpoint", _checkpoint(m)]
    argv += ["--yes"] if m.draw.random() < 0.7 else []
    return argv + (["--dry-run"] if m.draw.random() < 0.1 else []) + (["-q"] if m.draw.random() < 0.3 else [])


def _checkpoint(m: Maker) -> str:
    if not m.bad():
        return "journal"
    if m.draw.random() < 0.4:
        return m.draw.choice([*PATHS, m.use("people.csv")])
    m.use("kept")
    m.draw.choice([damage.flip, damage.cut])(m.folder / "kept" / "journal.jsonl", m.draw)
    return "kept"


def _plan(m: Maker) -> list[str]:
    argv = ["plan", *m.schema(), *m.workload(), *m.ledger(0.3)]
    argv += m.option("--epsilon", ["1", "0.1"], NUMBERS) + m.option("--delta", ["1e-6"], NUMBERS, 0.7)
    argv += m.option(
        "--mechanism",
        ["auto", "mwem", "aim", "mst", "hdmm", "ladder", "dualquery", "jam", "aperture", "barak"],
        ["nope", "", "pmw-pub"],
        0.7,
    )
    argv += m.option("--unit", ["replace"], ["add-or-remove", "x", ""], 0.2)
    return argv + m.option("--set", ["rounds=3"], SETTINGS, 0.2)


def _check(m: Maker) -> list[str]:
    return ["schema", "check", m.table(), *m.schema()]


def _draft(m: Maker) -> list[str]:
    argv = ["schema", "draft", m.table(public=True), *m.option("--bins", ["4", "1"], WHOLE, 0.4)]
    return argv + (m.out("drafted.toml") if m.draw.random() < 0.5 else [])


def _ledger_open(m: Maker) -> list[str]:
    where = m.pick(["new.ledger"], [*PATHS, m.use("good.ledger"), "deep/er.ledger"])
    argv = ["ledger", "open", where, *m.option("--epsilon", ["1", "0.5"], NUMBERS)]
    argv += m.option("--delta", ["0", "1e-9"], NUMBERS) + m.option(
        "--unit", ["replace"], ["x", "", "\0"], 0.3
    )
    argv += m.option("--records", ["1", "3"], WHOLE, 0.3)
    return argv + m.option("--name", ["people"], ["", "n\0", "x" * 5000, "é", "bad\udcff", "[red]"], 0.3)


def _ledger_read(m: Maker) -> list[str]:
    kind = m.draw.choice(["show", "verify", "close"])
    where = m.ledger()[1]
    more = {
        "show": ["--events"] if m.draw.random() < 0.4 else [],
        "verify": [],
        "close": ["0123456789abcdef"],
    }[kind]
    if kind == "verify":
        more = m.option("--head", ["0" * 64], ["", "x", "\0", "bad\udcff"], 0.3)
    return ["ledger", kind, where, *more]


def _answer(m: Maker) -> list[str]:
    attrs = (
        m.draw.sample(["age", "sex"], m.draw.randint(1, 2))
        if not m.bad()
        else ["age", "age", "", "nope"][m.draw.randrange(4) :]
    )
    return [
        "answer",
        m.release_folder(),
        *attrs,
        *m.option("--confidence", ["0.9"], [*NUMBERS, "0.99999", "1"], 0.3),
    ]


def _sample(m: Maker) -> list[str]:
    argv = ["sample", m.release_folder(), *m.out("s.csv" if m.draw.random() < 0.6 else "s.parquet", "--to")]
    argv += m.option("--seed", ["1", "0"], WHOLE) + m.option("--records", ["5", "1"], WHOLE, 0.6)
    return argv + (["--safe-cells"] if m.draw.random() < 0.3 else [])


def _report(m: Maker) -> list[str]:
    against = ["--against", m.table()] if m.draw.random() < 0.2 else []
    return ["report", m.release_folder(), *m.out("r.html", "--to"), *against]


def _evaluate(m: Maker) -> list[str]:
    argv = ["evaluate", m.release_folder(), m.table(), *m.workload()]
    argv += m.option("--seed", ["1"], WHOLE, 0.2)
    return argv + (["--against", m.table()] if m.bad() else [])


def _screen(m: Maker) -> list[str]:
    argv = ["screen", m.table(), *m.schema(), "--public", m.table(public=True), *m.workload(), *m.ledger(0.6)]
    argv += ["--public", m.table(public=True)] if m.bad() else []
    argv += m.option("--epsilon", ["0.1", "0.5"], NUMBERS) + m.option("--for-epsilon", ["1"], NUMBERS, 0.2)
    return argv + m.option("--for-delta", ["1e-6"], NUMBERS, 0.2)


def _statistic(m: Maker) -> list[str]:
    command = m.draw.choice(["mean", "mean", "quantile"])
    argv = [command, m.table(), "--value", m.pick(["inc"], ["age", "sex", "nope", "", "name", "\0"])]
    bounds = [("100", "0"), ("0", "0"), ("nan", "1"), ("-inf", "inf"), ("0", "1e308"), ("0", "x"),
              ("0", "1e-320"), ("-1e308", "1e308")]  # fmt: skip
    argv += ["--bounds", *(m.draw.choice(bounds) if m.bad() else ("0", "100"))]
    way = m.draw.random()
    if way < 0.5:
        argv += ["--epsilon", m.pick(["0.5", "1"], NUMBERS)]
        if command == "mean" and m.draw.random() < 0.4:
            argv += [
                "--by",
                m.pick(["who", "sex"], ["nope", "", "name"]),
                "--cell",
                "a",
                "--cell",
                m.pick(["b"], ["a", "", "\0"]),
            ]
    elif way < 0.7:
        argv += ["--epsilon-column", m.pick(["eps"], ["inc", "sex", "nope", "name"])]
    else:
        groups = ["b=public", "a=x", "=1", "a=-1", "zz=1", "a=inf", "a=nan", "a", ""]
        argv += ["--group-column", m.pick(["who"], ["sex", "nope", "name"])]
        argv += ["--group", m.pick(["a=0.1"], groups), "--group", m.pick(["b=0.5", "b=public"], groups)]
    argv += m.option("--public", [m.use("public.csv")], PATHS, 0.2) + m.ledger(0.7)
    argv += m.option("--accounting", ["pure"], ["zcdp", "x", ""], 0.2) + m.option(
        "--delta", ["1e-6"], NUMBERS, 0.1
    )
    argv += m.option("--confidence", ["0.9"], NUMBERS, 0.2) + m.option(
        "--bias", ["0.5", "measure"], NUMBERS, 0.1
    )
    argv += m.out("p.svg", "--svg") if m.draw.random() < 0.1 else []
    if command == "quantile":
        return (
            argv
            + m.option("--q", ["0.5", "0.1"], NUMBERS, 0.6)
            + m.option("--density", ["0.01"], NUMBERS, 0.3)
        )
    return argv + m.option("--variance", ["bound", "5", "private"], ["x", *NUMBERS], 0.3)


def _prior(m: Maker) -> list[str]:
    argv = [
        "prior",
        "fit",
        m.table(public=True),
        *m.schema(),
        *m.out("pr"),
        "--workload",
        m.pick(["1-way"], ["2-way", "x"]),
    ]
    return argv + m.option("--max-model-mb", ["1"], NUMBERS, 0.3)


def _demo(m: Maker) -> list[str]:
    if m.draw.random() < 0.5:
        return ["demo", "--out", m.use("people.csv")]
    return ["demo", "--out", "d", "--epsilon", m.draw.choice(["0", "-1", "nan", "abc", "", "inf"])]


def _junk(m: Maker) -> list[str]:
    words = [
        "",
        "nope",
        "--help",
        "--version",
        "ledger",
        "schema",
        "release",
        "mean",
        "-x",
        "prior",
        "sample",
        "\0",
    ]
    return [
        m.draw.choice(words),
        *m.draw.choices(["--x", "", "people.csv", "--schema", "=", "--"], k=m.draw.randint(0, 2)),
    ]


COMMANDS: dict[str, tuple[float, Callable[[Maker], list[str]]]] = {
    "release": (14, _release),
    "plan": (10, _plan),
    "schema check": (6, _check),
    "schema draft": (5, _draft),
    "ledger open": (6, _ledger_open),
    "ledger": (8, _ledger_read),
    "answer": (9, _answer),
    "sample": (9, _sample),
    "report": (5, _report),
    "evaluate": (5, _evaluate),
    "screen": (6, _screen),
    "statistic": (14, _statistic),
    "prior": (2, _prior),
    "demo": (1, _demo),
    "junk": (3, _junk),
}
"""How often each command is drawn, and what draws it."""
