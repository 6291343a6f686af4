"""`comemory dashboards push`: bring the dashboards to a Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from ops.boards import Push, checked_uid, read_boards
from ops.cli import output
from ops.cli.execute import DONE, FAILED, PARTIAL
from ops.cli.options import AsJson, DryRun
from ops.files import secret_in
from ops.grafana import Grafana

FOLDER: Final = Path(__file__).resolve().parent.parent.parent / "dashboards" / "generated"
"""The dashboards of this checkout; where only the package is installed, `--from` names a folder."""

app = typer.Typer(no_args_is_help=True, help="Bring dashboards to Grafana.")

Url = Annotated[str, typer.Option("--url", metavar="URL", help="Where Grafana is.")]
TokenFile = Annotated[
    Path, typer.Option("--token-file", metavar="FILE", help="A file with the token of a service account.")
]
From = Annotated[Path, typer.Option("--from", metavar="FOLDER", help="Where the dashboards are (*.json).")]
FolderTitle = Annotated[str, typer.Option("--folder", metavar="TITLE", help="Grafana's folder; made if needed.")]
FolderUid = Annotated[str, typer.Option("--folder-uid", metavar="UID", help="The uid of that folder.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace also what others made, and what was edited in Grafana.")
]
Message = Annotated[str, typer.Option("--message", metavar="TEXT", help="What the history of versions says.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", help="Certificate authorities to trust.")]


@app.callback()
def dashboards() -> None:
    """Keep `push` a command of its own."""


@app.command()
def push(
    *,
    url: Url,
    token_file: TokenFile,
    boards: From = FOLDER,
    folder: FolderTitle = "Co-Memory",
    folder_uid: FolderUid = "comemory",
    overwrite: Overwrite = False,
    message: Message = "comemory dashboards push",
    ca_file: CaFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create or update the dashboards in a folder of Grafana, and leave alone what people made or edited there.

    Exits with 3 when a dashboard was refused or failed and the others were done, with 1 when all failed.
    """
    read = read_boards(boards)
    checked_uid(folder_uid, "--folder-uid")
    with Grafana(url, secret_in(token_file, "--token-file"), ca=ca_file) as grafana:
        there = grafana.has_folder(folder_uid)
        pushes = grafana.plan(read, folder_uid, overwrite=overwrite)
        made = not there and any(one.action in ("create", "update") for one in pushes)
        if not dry_run:
            if made:
                grafana.make_folder(folder_uid, folder)
            pushes = list(grafana.apply(pushes, folder_uid, message))
    where = {"uid": folder_uid, "title": folder, "action": "create" if made else "unchanged"}
    _show(pushes, where, as_json=as_json, dry_run=dry_run)
    raise typer.Exit(_code(pushes))


def _code(pushes: list[Push]) -> int:
    if all(one.action == "failed" for one in pushes):
        return FAILED
    return PARTIAL if any(one.action in ("refused", "failed") for one in pushes) else DONE


def _show(pushes: list[Push], folder: dict[str, str], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        rows = [
            {"uid": p.board["uid"], "title": p.board["title"], "action": p.action, "why": p.why} for p in pushes
        ]
        output.print_json({"format": 1, "dry_run": dry_run, "folder": folder, "dashboards": rows})
        return
    head = [(f"folder {folder['title']}", folder["uid"], folder["action"], "")]
    output.table(
        ("dashboard", "uid", "would be" if dry_run else "done", "because"),
        [*head, *((p.board["title"], p.board["uid"], p.action, p.why) for p in pushes)],
    )
