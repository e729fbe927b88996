"""The viewer's pages and actions, as a starlette application."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pytest_agenteval.authoring.save_case import case_folder, caution_of, draft_of, save_case
from pytest_agenteval.errors import AgentEvalError, ResultsError
from pytest_agenteval.reports.html.attempt_view import attempt_view
from pytest_agenteval.reports.html.environment import make_environment, static_text
from pytest_agenteval.reports.html.filters import PageQuery
from pytest_agenteval.reports.html.links import ServerLinks
from pytest_agenteval.reports.html.markup import json_text
from pytest_agenteval.reports.html.one_file import page_values, report_parts
from pytest_agenteval.reports.html.run_view import attempt_numbers, neighbours, run_view
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.overrides import (
    LABELS,
    Override,
    read_overrides,
    row_id,
    write_override,
)
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.viewer.library import Library, ListedRun, ReadFile, unreadable
from pytest_agenteval.viewer.pages import (
    PAGE,
    comparing,
    equal_attempts,
    history_of,
    run_lines,
    side_by_side,
    trends,
)
from pytest_agenteval.viewer.security import Access, Guard, read_form

STATIC = {"style.css": "text/css", "app.js": "text/javascript", "theme.js": "text/javascript"}
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, TemplateError)
"""What a damaged or hostile results file may cause anywhere on a page."""

ROWS = 200
"""Rows of a table on a page."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """What the pages work with: the library, the project's root for saved tests, who may do what."""

    library: Library
    root: Path
    access: Access
    environment: Environment

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a template as a response."""
        text = self.environment.get_template(template).render(
            **page_values(),
            static=False,
            folder=str(self.library.folder),
            read_only=self.access.read_only,
            form_token="" if self.access.read_only else self.access.form_token,
            **values,
        )
        return HTMLResponse(text, status)

    def message(self, status: int, title: str, text: str, refresh: int = 0) -> HTMLResponse:
        """Return a page that says one thing."""
        return self.page("message.html", status, title=title, text=text, refresh=refresh)

    def listed(self, run_id: str) -> ListedRun:
        """Return the run of that id. Raises ``HTTPException`` 404: only what is listed can be opened."""
        found = self.library.listing().get(run_id)
        if found is None:
            raise HTTPException(404, f"There is no run {run_id!r} in this folder.")
        return found


class _Waiting(Exception):
    """A file is still being read."""

    def __init__(self, reading: ReadFile) -> None:
        super().__init__(reading.id)
        self.reading = reading


def make_app(folder: Path, root: Path, access: Access) -> Guard:
    """Return the ASGI application for the results in ``folder``, every request guarded by ``access``."""
    viewer = Viewer(Library(folder), root, access, make_environment())
    pages: list[tuple[str, Callable[[Viewer, Request], Response]]] = [
        ("/", runs_page),
        ("/runs/{run}", run_page),
        ("/runs/{run}/results.json", results_file),
        ("/runs/{run}/report.html", report_file),
        ("/runs/{run}/attempts/{number:int}", attempt_page),
        ("/runs/{run}/attempts/{number:int}/attempt.json", attempt_file),
        ("/runs/{run}/attempts/{number:int}/models", models_page),
        ("/compare", compare_page),
        ("/history", history_page),
        ("/static/{name}", static_file),
    ]
    routes = [Route(path, _page(viewer, make), methods=["GET"]) for path, make in pages]
    for name, act in (("override", override), ("save", save)):
        path = f"/runs/{{run}}/attempts/{{number:int}}/{name}"
        routes.append(Route(path, _action(viewer, act), methods=["POST"]))

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return viewer.message(
            error.status_code, "Not found" if error.status_code == 404 else "Not possible", error.detail
        )

    return Guard(Starlette(routes=routes, exception_handlers={HTTPException: refused}), access)


def _page(viewer: Viewer, make: Callable[[Viewer, Request], Response]) -> Callable[[Request], Any]:
    """Return a page made in a thread: reading files must not hold up other pages."""

    async def endpoint(request: Request) -> Response:
        try:
            return await run_in_threadpool(make, viewer, request)
        except _Waiting as waiting:
            share = f"{100 * waiting.reading.share:.0f} %"
            return viewer.message(200, "Reading", f"{waiting.reading.id} is being read: {share} so far.", 1)
        except (ResultsError, OSError) as error:
            return viewer.message(200, "This file cannot be shown", unreadable(error))
        except _DAMAGE as error:
            text = f"It is not as a results file should be ({type(error).__name__}: {error})."
            return viewer.message(500, "This file cannot be shown", text)

    return endpoint


def _action(
    viewer: Viewer, act: Callable[[Viewer, Request, Mapping[str, str]], Response]
) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        form = await read_form(request.receive, viewer.access, request.headers.get("content-type", ""))
        if form is None:
            raise HTTPException(
                403, "The form was not one of this viewer's pages; reload the page and try again."
            )
        try:
            return await run_in_threadpool(act, viewer, request, form)
        except _Waiting:
            raise HTTPException(409, "The file is being read; try again in a moment.") from None
        except (AgentEvalError, OSError) as error:
            raise HTTPException(
                409, unreadable(error) if isinstance(error, OSError) else str(error)
            ) from None

    return endpoint


def _document(viewer: Viewer, listed: ListedRun) -> Document:
    opened = viewer.library.open(listed)
    if isinstance(opened, ReadFile):
        raise _Waiting(opened)
    return opened


def runs_page(viewer: Viewer, request: Request) -> Response:
    """Show the list of runs, with trends."""
    query = request.query_params.get("q", "")[:200]
    every = run_lines(viewer.library)
    lines = [line for line in every if all(word in line.text for word in query.casefold().split())]
    page = PageQuery.read(request.query_params).page
    pages = max(1, -(-len(lines) // PAGE))
    page = min(page, pages)
    return viewer.page(
        "runs.html",
        lines=lines[(page - 1) * PAGE : page * PAGE],
        total=len(every),
        found=len(lines),
        page=page,
        pages=pages,
        q=query,
        trends=trends(lines),
        links={line.listed.id: ServerLinks(line.listed.id) for line in lines},
        refresh=1 if any(line.share is not None for line in lines) else 0,
    )


def run_page(viewer: Viewer, request: Request) -> Response:
    """Return one run."""
    listed = viewer.listed(request.path_params["run"])
    document = _document(viewer, listed)
    every = list(viewer.library.listing())
    others = [other for other in every if other != listed.id]
    older = every[every.index(listed.id) + 1 :] if listed.id in every else []
    return viewer.page(
        "run.html",
        view=run_view(listed.id, document, PageQuery.read(request.query_params)),
        links=ServerLinks(listed.id),
        listed=listed,
        others=others[:200],
        suggested=_readable(viewer, older or others),
        refresh=5 if listed.live else 0,
    )


def _readable(viewer: Viewer, ids: Sequence[str]) -> str | None:
    """Return the first run that can be compared with, among the next few."""
    listing = viewer.library.listing()
    for run_id in ids[:5]:
        try:
            if not isinstance(viewer.library.header(listing[run_id], 0.0), ReadFile):
                return run_id
        except (ResultsError, OSError, KeyError):
            continue
    return None


def attempt_page(viewer: Viewer, request: Request) -> Response:
    """Return one attempt."""
    listed, document, number, row = _attempt(viewer, request)
    query = PageQuery.read(request.query_params)
    view = run_view(listed.id, document, query)
    entry = document.entry(number - 1)
    siblings = next(line.attempts for line in view.lines if number in line.numbers)
    numbers = attempt_numbers(view.chosen)
    before, after = neighbours(numbers if number in numbers else attempt_numbers(view.lines), number)
    raw = json_text(entry, ROWS * 1000)
    it = attempt_view(number, row, entry, rows=ROWS, raw=raw, sql_tools=document.sql_tools)
    overridden = read_overrides(listed.path).get(row_id(row))
    return viewer.page(
        "attempt.html",
        it=it,
        view=view,
        links=ServerLinks(listed.id),
        listed=listed,
        query=query,
        siblings=siblings,
        previous=before,
        next=after,
        overridden=overridden,
        equal=equal_attempts(document, number),
        labels=LABELS,
        saved=_shown_place(viewer, request.query_params.get("saved")),
        cases=_cases_shown(viewer, row),
        caution=caution_of(row),
        refresh=0,
    )


def _shown_place(viewer: Viewer, saved: str | None) -> str | None:
    """Return the file that was just saved, when the address names one that is there."""
    if not saved:
        return None
    place = (viewer.root / saved).resolve()
    inside = place.is_relative_to(viewer.root.resolve()) and place.suffix == ".yml" and place.is_file()
    return saved if inside else None


def _cases_shown(viewer: Viewer, row: Row) -> str:
    return shown_path(case_folder(viewer.root, row.path), viewer.root)


def _attempt(viewer: Viewer, request: Request) -> tuple[ListedRun, Document, int, Row]:
    listed = viewer.listed(request.path_params["run"])
    document = _document(viewer, listed)
    number = request.path_params["number"]
    if not 1 <= number <= len(document.rows):
        raise HTTPException(404, f"{listed.id} has {len(document.rows):,} attempts, and no number {number}.")
    return listed, document, number, document.rows[number - 1]


def models_page(viewer: Viewer, request: Request) -> Response:
    """Return the models' answers to the case of an attempt, side by side."""
    listed, document, number, row = _attempt(viewer, request)
    return viewer.page(
        "models.html",
        columns=side_by_side(document, number, ROWS // 10),
        row=row,
        number=number,
        links=ServerLinks(listed.id),
        listed=listed,
        refresh=0,
    )


def attempt_file(viewer: Viewer, request: Request) -> Response:
    """Return an attempt's entry as JSON."""
    listed, document, number, _ = _attempt(viewer, request)
    body = json.dumps(document.entry(number - 1), indent=1, ensure_ascii=True, default=str)
    return Response(body, media_type="application/json", headers=_attachment(f"{listed.id}_{number}.json"))


def results_file(viewer: Viewer, request: Request) -> Response:
    """Return the results file, to download."""
    listed = viewer.listed(request.path_params["run"])
    if listed.unfinished:
        raise HTTPException(404, "This run is not finished; it has no results file yet.")
    return FileResponse(
        listed.path,
        media_type="application/json",
        filename=f"{listed.id}.json",
        content_disposition_type="attachment",
    )


def report_file(viewer: Viewer, request: Request) -> Response:
    """Return the one-file report, to download: its own styles and scripts have no place in this site."""
    listed = viewer.listed(request.path_params["run"])
    document = _document(viewer, listed)
    parts = (part.encode() for part in report_parts(document, listed.id))
    return StreamingResponse(parts, media_type="text/html", headers=_attachment(f"{listed.id}.html"))


def _attachment(name: str) -> dict[str, str]:
    from urllib.parse import quote

    return {"content-disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}"}


def compare_page(viewer: Viewer, request: Request) -> Response:
    """Return two runs side by side."""
    ids = [request.query_params.get(name, "") for name in ("old", "new")]
    if not all(ids):
        raise HTTPException(404, "Choose two runs to compare, in the list of runs.")
    old, new = (viewer.listed(run_id) for run_id in ids)
    documents = [_document(viewer, listed) for listed in (old, new)]
    return viewer.page(
        "compare.html", it=comparing(old.id, documents[0], new.id, documents[1]), old=old, new=new, refresh=0
    )


def history_page(viewer: Viewer, request: Request) -> Response:
    """Show one case over runs."""
    path, name = (request.query_params.get(key, "") for key in ("path", "name"))
    it = history_of(viewer.library, path, name)
    if not it.moments and not it.waiting:
        raise HTTPException(404, f"No run in this folder has a case {name!r}.")
    links = {moment.listed.id: ServerLinks(moment.listed.id) for moment in it.moments}
    return viewer.page("history.html", it=it, links=links, refresh=1 if it.waiting else 0)


def static_file(viewer: Viewer, request: Request) -> Response:
    """Return a style sheet or script."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404, "There is no such file.")
    return Response(static_text(name), media_type=STATIC[name])


def override(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Keep, or take back, a person's verdict."""
    listed, document, number, row = _attempt(viewer, request)
    verdict, label = form.get("verdict", ""), form.get("label") or None
    if verdict not in ("passed", "failed", "none"):
        raise HTTPException(400, "A verdict is passed or failed; choose one.")
    if label is not None and label not in LABELS:
        raise HTTPException(400, f"A label is one of: {', '.join(LABELS)}.")
    rows = [row]
    if form.get("all"):
        rows += [document.rows[other - 1] for other in equal_attempts(document, number)]
    kept = None
    if verdict != "none":
        now = datetime.now(UTC).isoformat(timespec="seconds")
        note = form.get("note", "").strip()[:2000]
        kept = Override("passed" if verdict == "passed" else "failed", note, label, now)
    for one in rows:
        write_override(listed.path, one, kept)
    return RedirectResponse(ServerLinks(listed.id).attempt(number), 303)


def save(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Write a case file from the answer."""
    from urllib.parse import urlencode

    listed, document, number, row = _attempt(viewer, request)
    entry = document.entry(number - 1)
    if not entry.get("turns") and not entry.get("prompt"):
        entry = {**entry, "prompt": form.get("prompt", "").strip()}
    name = form.get("name", "").strip() or None
    draft = draft_of(
        entry,
        {"results": listed.path.name},
        name,
        caution=caution_of(row),
        sql_tools=document.sql_tools,
    )
    place, _ = save_case(case_folder(viewer.root, row.path), draft)
    shown = place.resolve().relative_to(viewer.root.resolve()).as_posix()
    target = f"{ServerLinks(listed.id).attempt(number)}?{urlencode({'saved': shown})}#save"
    return RedirectResponse(target, 303)
