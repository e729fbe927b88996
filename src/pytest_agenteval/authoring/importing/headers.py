"""Which column of a table is the question: words in English, German, French and Spanish."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from pytest_agenteval.authoring.importing.sources import ImportFailed

FIELDS: Mapping[str, tuple[str, ...]] = {
    "prompt": (
        "question", "prompt", "frage", "fragestellung", "pregunta", "userquestion", "nlquestion", "nlprompt",
        "naturallanguagequestion", "naturallanguage", "utterance", "questiontext",
    ),
    "sql": (
        "sql", "referencesql", "goldsql", "goldensql", "goldquery", "query", "sqlquery", "expectedsql",
        "sqlstatement", "abfrage", "sqlabfrage", "requete", "requetesql", "consulta", "consultasql",
    ),
    "answer": (
        "answer", "expected", "expectedanswer", "expectedvalue", "expectedresult", "expectedoutput",
        "groundtruth", "result", "value", "correctanswer", "antwort", "erwarteteantwort", "ergebnis",
        "erwartetesergebnis", "wert", "reponse", "reponseattendue", "resultat", "valeur", "respuesta",
        "respuestaesperada", "resultado", "valor",
    ),
    "name": ("name", "title", "case", "casename", "titel", "bezeichnung", "titre", "nom", "titulo", "nombre"),
    "id": ("id", "caseid", "questionid", "key", "schluessel", "identifiant", "identificador"),
    "owner": (
        "owner", "author", "verantwortlich", "verantwortlicher", "besitzer", "zustaendig", "responsable",
        "proprietaire", "auteur", "propietario", "autor",
    ),
    "tags": (
        "tags", "tag", "labels", "label", "topic", "topics", "category", "categories", "schlagworte",
        "schlagwoerter", "schlagwort", "kategorie", "etiquettes", "motscles", "categorie", "etiquetas",
        "categoria",
    ),
    "database": (
        "database", "db", "dbid", "dbname", "datenbank", "basededonnees", "basededatos",
    ),
    "context": ("context", "evidence", "hint", "instructions", "kontext", "hinweis", "contexte", "contexto"),
    "comment": (
        "comment", "comments", "note", "notes", "kommentar", "bemerkung", "commentaire", "comentario",
    ),
}  # fmt: skip
"""Key of a case -> the headers that mean it, without case, spaces and punctuation."""

_GUESSES = ("text", "ask", "request", "anfrage", "texte", "texto", "demande", "peticion")


def plain_header(text: object) -> str:
    """Return a header reduced to its letters: ``Réponse attendue`` is ``reponseattendue``."""
    spelt = str(text).casefold().replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
    return "".join(sign for sign in unicodedata.normalize("NFKD", spelt) if sign.isalnum() and sign.isascii())


def header_row(grid: Sequence[Sequence[object]], mapping: Mapping[str, str], name: str) -> int:
    """Return the number of the first row with a question column. Raises ``ImportFailed``, naming columns."""
    for number, row in enumerate(grid[:50]):
        cells = [cell for cell in row if cell not in (None, "")]
        if len(cells) > 1 or (cells and len(row) == 1):
            found = match_columns([str(cell) if cell is not None else "" for cell in row], mapping)
            if "prompt" in found:
                return number
    shown = next((row for row in grid if sum(cell not in (None, "") for cell in row) > 1), None)
    if shown is None:
        raise ImportFailed(f"{name}: no known format; agenteval import --formats lists what is read")
    columns = [str(cell) for cell in shown if cell not in (None, "")]
    if lost := [column for column in mapping.values() if column not in columns]:
        raise ImportFailed(
            f"{name}: --map names {', '.join(map(repr, lost))}; the columns are {', '.join(columns)[:300]}"
        )
    hint = next((column for column in columns if plain_header(column) in _GUESSES), columns[0])
    raise ImportFailed(
        f"{name}: no question column among: {', '.join(columns)[:300]}; say --map prompt={hint}"
    )


def match_columns(columns: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return key of a case -> column; ``mapping`` (of ``--map``) beats the words, the first column wins."""
    found = {key: column for key, column in mapping.items() if column in columns}
    for key, words in FIELDS.items():
        if key in found or key in mapping:
            continue
        near = [
            column for column in columns if plain_header(column) in words and column not in found.values()
        ]
        if near:
            found[key] = min(near, key=lambda column: words.index(plain_header(column)))
    return found
