"""What the viewer refuses, over real HTTP: other hosts, other folders, changes from elsewhere."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from viewer_site import Site, site_of

from pytest_agenteval.viewer.security import Access
from pytest_agenteval.viewer.server import CannotServe, bind


@pytest.fixture(scope="module")
def shop(jaffle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose outputs folder has everything in it that must not be served."""
    root = tmp_path_factory.mktemp("viewed") / "shop"
    shutil.copytree(jaffle, root)
    outputs = root / "tests" / "outputs"
    (name,) = (path.name for path in outputs.glob("results_*.json"))
    (outputs / "secret.json").write_text('{"results": ["secret-1"]}')
    (root / "results_outside.json").write_text('{"results": ["secret-2"]}')
    sibling = root / "tests" / "outputs_private"
    sibling.mkdir()
    shutil.copy(outputs / name, sibling / "results_20200101_000000.json")
    os.symlink(root / "results_outside.json", outputs / "results_20200202_000000.json")
    os.symlink(sibling, outputs / "results_20200303_000000")
    (outputs / ".results_hidden.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def site(shop: Path) -> Iterator[Site]:
    with site_of(shop / "tests" / "outputs", shop, bind(0)) as running:
        yield running


def run_id(shop: Path) -> str:
    found = [
        path.stem for path in (shop / "tests" / "outputs").glob("results_*.json") if not path.is_symlink()
    ]
    return next(name for name in found if "overrides" not in name)


def test_pages_and_their_headers(site: Site, shop: Path) -> None:
    name = run_id(shop)
    for path in ("/", f"/runs/{name}", f"/runs/{name}/attempts/1", "/static/style.css", "/nothing"):
        status, headers, _ = site.ask(path)
        assert status == (404 if path == "/nothing" else 200), path
        assert headers["content-security-policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert not [key for key in headers if key.startswith("access-control-")]
        assert "server" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("[::1]:{port}", 200),
        ("127.0.0.1", 421),
        ("localhost", 421),
        ("localhost:1", 421),
        ("localhost:{port}0", 421),
        ("evil.example:{port}", 421),
        ("127.0.0.1.evil.example:{port}", 421),
        ("localhost.:{port}", 421),
        ("evil.example", 421),
        ("10.0.0.1:{port}", 421),
        ("", 421),
    ],
)
def test_host_header(site: Site, host: str, status: int) -> None:
    found, _, text = site.ask("/", Host=host.format(port=site.port))
    assert found == status
    assert ("does not answer to that host name" in text) == (status == 421)


def test_a_request_without_host_is_refused(site: Site) -> None:
    status, _, text = site.ask("/", Host=None)
    assert status in (400, 421)
    assert "Runs" not in text


def test_both_loopback_families(shop: Path) -> None:
    binding = bind(0)
    with site_of(shop / "tests" / "outputs", shop, binding) as running:
        families = {bound.family.name for bound in binding.sockets}
        if "AF_INET6" not in families:
            pytest.skip("no IPv6 here")
        connection = http.client.HTTPConnection("::1", running.port, timeout=60)
        connection.request("GET", "/", headers={"Host": f"[::1]:{running.port}"})
        assert connection.getresponse().status == 200
        connection.close()


TRAVERSAL = [
    "../secret.json",
    "..%2fsecret.json",
    "..%2Fresults_outside.json",
    "%2e%2e%2f%2e%2e%2fresults_outside.json",
    "%252e%252e%252fresults_outside.json",
    "..%5c..%5cresults_outside.json",
    "..\\..\\results_outside.json",
    "%2e%2e/%2e%2e/results_outside",
    "....//results_outside",
    "..;/results_outside",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "%00",
    "..%c0%af..%c0%afresults_outside",
    "../outputs_private/results_20200101_000000",
    "..%2foutputs_private%2fresults_20200101_000000",
    "results_20200101_000000",
    "results_20200202_000000",
    "results_20200303_000000",
    "secret",
    "secret.json",
    ".results_hidden",
    "results_outside",
]


TAILS = ["", "/results.json", "/report.html", "/attempts/1", "/attempts/1/attempt.json"]


@pytest.mark.parametrize("name", TRAVERSAL)
@pytest.mark.parametrize(
    "tail", ["", "/results.json", "/report.html", "/attempts/1", "/attempts/1/attempt.json"]
)
def test_only_listed_results(site: Site, name: str, tail: str) -> None:
    status, _, text = site.ask(f"/runs/{name}{tail}")
    assert status == 404
    assert "secret-" not in text
    assert "root:" not in text


@pytest.mark.parametrize(
    "name", ["../../app.py", "..%2fapp.py", "%2e%2e%2fenvironment.py", "style.css%00", "base.html"]
)
def test_only_known_static_files(site: Site, name: str) -> None:
    status, _, text = site.ask(f"/static/{name}")
    assert status == 404
    assert "import" not in text


def test_names_in_queries_are_looked_up_too(site: Site) -> None:
    for name in TRAVERSAL:
        status, _, text = site.ask(f"/compare?old={name}&new={name}".replace("\\", "%5C"))
        assert status == 404
        assert "secret-" not in text


def test_hidden_and_linked_files_are_not_listed(site: Site) -> None:
    text = site.ask("/")[2]
    assert "1 run in" in text
    for name in ("20200101", "20200202", "20200303", "results_hidden", "secret"):
        assert name not in text


def test_download(site: Site, shop: Path) -> None:
    name = run_id(shop)
    status, headers, text = site.ask(f"/runs/{name}/results.json")
    assert status == 200
    assert headers["content-disposition"].startswith("attachment")
    assert text == (shop / "tests" / "outputs" / f"{name}.json").read_text()
    status, headers, text = site.ask(f"/runs/{name}/report.html")
    assert status == 200
    assert headers["content-disposition"] == f"attachment; filename*=utf-8''{name}.html"
    assert text.rstrip().endswith("</html>")
    status, headers, text = site.ask(f"/runs/{name}/attempts/2/attempt.json")
    assert headers["content-disposition"] == f"attachment; filename*=utf-8''{name}_2.json"
    assert json.loads(text)["attempt"] == 2


@pytest.fixture
def fresh(outputs: Path) -> Iterator[Site]:
    """A viewer over a copy that may be changed."""
    with site_of(outputs, outputs.parents[1], bind(0)) as running:
        yield running


def token_of(site: Site, path: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', site.ask(path)[2])
    assert found is not None
    return found[1]


VERDICT = {"verdict": "passed", "note": "n", "label": "the case is wrong"}


def test_a_change_from_our_own_page(fresh: Site, results: Path) -> None:
    path = f"/runs/{results.stem}/attempts/1"
    form = {**VERDICT, "form_token": token_of(fresh, path)}
    status, headers, _ = fresh.post(f"{path}/override", form, Origin=f"http://{fresh.host}")
    assert (status, headers["location"]) == (303, path)
    assert results.with_suffix(".overrides.json").exists()
    assert "A person says passed" in fresh.ask(path)[2]


Refused = Callable[[str], dict[str, str | None]]


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({}, ""),
        ({}, "guess"),
        ({"Origin": "http://evil.example"}, "right"),
        ({"Origin": "null"}, "right"),
        ({"Origin": "http://127.0.0.1:1"}, "right"),
        ({"Origin": "https://{host}"}, "right"),
        ({"Sec_Fetch_Site": "cross-site"}, "right"),
        ({"Sec_Fetch_Site": "same-site"}, "right"),
        ({"Host": "evil.example"}, "right"),
    ],
)
@pytest.mark.parametrize("action", ["override", "save"])
def test_a_change_from_elsewhere(
    fresh: Site, results: Path, headers: dict[str, str], token: str, action: str
) -> None:
    path = f"/runs/{results.stem}/attempts/1"
    before = sorted(results.parents[2].rglob("*"))
    right = token_of(fresh, path)
    form = {**VERDICT, "name": "x", "form_token": right if token == "right" else token}
    sent = {name: value.format(host=fresh.host) for name, value in headers.items()}
    status, _, _ = fresh.post(f"{path}/{action}", form, **sent)
    assert status in (403, 421)
    assert sorted(results.parents[2].rglob("*")) == before


def test_other_methods_and_types(fresh: Site, results: Path) -> None:
    path = f"/runs/{results.stem}/attempts/1"
    form = urlencode({**VERDICT, "form_token": token_of(fresh, path)})
    assert fresh.ask(f"{path}/override?{form}")[0] == 405
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert fresh.ask(f"{path}/override", method=method)[0] == 405
    connection = http.client.HTTPConnection("127.0.0.1", fresh.port, timeout=60)
    sent = {"Host": fresh.host, "Content-Type": "text/plain"}
    connection.request("POST", f"{path}/override", form, sent)
    assert connection.getresponse().status == 403
    connection.close()
    assert not results.with_suffix(".overrides.json").exists()


def test_a_huge_form_is_refused(fresh: Site, results: Path) -> None:
    path = f"/runs/{results.stem}/attempts/1"
    form = {**VERDICT, "note": "x" * 300_000, "form_token": token_of(fresh, path)}
    assert fresh.post(f"{path}/override", form)[0] == 403


def test_read_only(outputs: Path, results: Path) -> None:
    with site_of(outputs, outputs.parents[1], bind(0, read_only=True)) as running:
        path = f"/runs/{results.stem}/attempts/1"
        text = running.ask(path)[2]
        assert '<form class="act"' not in text
        assert running.access.form_token not in running.ask("/")[2]
        form = {**VERDICT, "form_token": running.access.form_token}
        status, _, text = running.post(f"{path}/override", form)
        assert (status, text) == (403, "This viewer is read-only.\n")


def test_a_host_beyond_loopback_asks_for_its_token(outputs: Path, results: Path) -> None:
    binding = bind(0, host="0.0.0.0")
    assert binding.access.read_only
    token = str(binding.access.token)
    assert binding.url.endswith(f"/?token={token}")
    with site_of(outputs, outputs.parents[1], binding) as running:
        for path in ("/", f"/runs/{results.stem}", "/static/style.css", f"/runs/{results.stem}/results.json"):
            assert running.ask(path)[0] == 401
            assert running.ask(f"{path}?token=guess")[0] == 401
            assert running.ask(path, Cookie=f"{running.access.cookie}=guess")[0] == 401
        status, headers, _ = running.ask(f"/runs/{results.stem}?show=failures&token={token}")
        assert (status, headers["location"]) == (303, f"/runs/{results.stem}?show=failures")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert running.ask("/", Cookie=f"other=1; {cookie.partition(';')[0]}")[0] == 200
        assert running.ask("/", Host=f"10.1.2.3:{running.port}", Cookie=cookie.partition(";")[0])[0] == 200
        assert (
            running.ask("/", Host=f"evil.example:{running.port}", Cookie=cookie.partition(";")[0])[0] == 421
        )
        status, headers, _ = running.ask(f"//evil.example/?token={token}")
        assert (status, headers["location"]) == (303, "/evil.example/")
        assert running.post(f"/runs/{results.stem}/attempts/1/override?token={token}", VERDICT)[0] == 401


def test_read_only_can_be_lifted_with_a_host() -> None:
    binding = bind(0, host="0.0.0.0", read_only=False)
    for bound in binding.sockets:
        bound.close()
    assert not binding.access.read_only
    assert binding.access.token


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.2"])
def test_loopback_needs_no_token(host: str) -> None:
    binding = bind(0, host=host)
    for bound in binding.sockets:
        bound.close()
    assert binding.access.token is None
    assert not binding.access.read_only


def test_a_taken_port_is_said() -> None:
    binding = bind(0)
    try:
        with pytest.raises(
            CannotServe, match=r"cannot listen on 127\.0\.0\.1 port \d+: .*; choose another with -p"
        ):
            bind(binding.access.port)
    finally:
        for bound in binding.sockets:
            bound.close()


def test_the_form_token_is_of_this_server_alone() -> None:
    assert Access(1).form_token != Access(1).form_token
