"""``sidelight prior``: fit a public model once, to be used by many releases."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import Json, SchemaFile, WorkloadName, talk, tell_json

app = typer.Typer(help="Fit a model of public data once, for use in many releases.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Fit a model of public data once, for use in many releases."""


@app.command(epilog="Example: sidelight prior fit public.csv --schema people.toml --out prior")
def fit(
    public: Annotated[
        list[str], typer.Argument(help="PUBLIC tables (CSV or Parquet), or folders of earlier releases.")
    ],
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("prior"),
    workload: WorkloadName = "3-way",
    max_model_mb: Annotated[
        float, typer.Option(help="Size limit of the model, the same as in the releases that will use it.")
    ] = 80.0,
    as_json: Json = False,
) -> None:
    """Fit a model of PUBLIC data. This costs no privacy; give the folder to `release --public`."""
    from sidelight.releases.prior import prior as fitted

    prior = fitted(public, schema=schema, workload=workload, max_model_mb=max_model_mb, out=out)
    marginals = [list(attrs) for attrs in prior.sets if len(attrs) > 1]
    if as_json:
        tell_json({"out": str(out), "records": prior.records, "marginals": marginals})
    else:
        talk(f"wrote {out}: {len(marginals)} marginals of {prior.records:,.0f} public records.")
        talk(f"next: sidelight release PRIVATE.csv --schema {schema} --public {out} --mechanism aperture …")
