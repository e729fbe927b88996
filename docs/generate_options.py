"""Write docs/options.md from the option table: ``python docs/generate_options.py`` (a test compares)."""

from __future__ import annotations

from pathlib import Path

from pytest_agenteval.config.options import OPTIONS, Option

PAGE = Path(__file__).with_name("options.md")

HEAD = """\
# Options

<!-- Written by docs/generate_options.py from the option table. Edit the table, not this page. -->

One rule gives an option its names: `--agent-fail-under` on the command line is `agenteval_fail_under` in
the ini file (`pytest.ini`, `[tool.pytest.ini_options]` or pytest 9's `[tool.pytest]` in `pyproject.toml`) and
`AGENTEVAL_FAIL_UNDER` in the environment. Where several places give a value, the first of these holds:
command line, environment, ini file, project file, default.

A value that is not allowed ends the run before anything is collected (exit code 4), and the message says
where it stands and what is allowed. Secrets are never options: they come from the environment alone.

"""


def _default(option: Option) -> str:
    if option.default in (None, (), False):
        return "off" if option.flag else "none"
    if isinstance(option.default, tuple):
        return f"`{', '.join(option.default)}`"
    if isinstance(option.default, bool | str):
        return f"`{str(option.default).lower() if isinstance(option.default, bool) else option.default}`"
    return f"`{option.default:,}`" if isinstance(option.default, int) else f"`{option.default:g}`"


def _section(option: Option) -> str:
    shown = option.cli if "c" in option.places else option.ini
    value = "" if option.flag or "c" not in option.places else f" {option.metavar}"
    if option.bare is not None:
        value = f"[={option.metavar}]"
    names = []
    if "c" in option.places and "i" in option.places:
        names.append(f"ini `{option.ini}`")
    if "e" in option.places:
        names.append(f"environment `{option.env}`")
    if option.project_key is not None:
        names.append(f"project file `{option.project_key}`")
    if option.places == "i":
        names.append("ini file only")
    if option.places == "c":
        names.append("command line only")
    text, where = (_capital(part) for part in (option.help, "; ".join(names)))
    return f"## `{shown}{value}`\n\n{text}.\n\nDefault: {_default(option)}. {where}.\n"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join(_section(option) for option in OPTIONS)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
