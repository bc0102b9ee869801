"""Report pages of runs that go on: what a run leaves meanwhile, and --serve."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from browser import Page
from program import PROGRAM, environment, run_alone
from report_pages import curve, made_by_hand, needs_chromium, report, show
from runs import assert_says, error_message
from started import Started


def test_a_run_under_way_has_a_page(tmp_path: Path) -> None:
    def status() -> str:
        with suppress(FileNotFoundError):
            return (tmp_path / "run" / "report.html").read_text().split('"status":"')[1].split('"')[0]
        return "none"

    with Started(2, tmp_path, False, "--set", "eval.every_steps=20", "--set", "checkpoint.every_epochs=null") as run:
        run.wait_until_it_trains()
        deadline = time.monotonic() + 30
        while status() == "none" and time.monotonic() < deadline:
            time.sleep(0.02)
        assert status() == "running"
        seen = report(tmp_path / "seen.html", tmp_path / "run").read_text()
        assert '"status":"running"' in seen and "could not be read" not in seen.split('id="data">')[1].split("</script>")[0]
        run.processes[0].send_signal(signal.SIGTERM)
        assert run.wait(60) == [75, 75]
    assert status() == "stopped"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of a run's page, and the process that serves it."""
    process = subprocess.Popen([PROGRAM, "--report", folder, "--serve", "0"], env=environment(), text=True, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0], process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str, subprocess.Popen]]:
    """A run that is under way."""
    folder = made_by_hand(tmp_path / "living", [{"kind": "train", "step": step, "loss": 1 / step} for step in (1, 2)])
    with serving(folder) as (address, process):
        yield folder, address, process


def test_a_run_that_was_killed_is_noticed(tmp_path: Path) -> None:
    """It writes nothing more, not even that it has ended."""
    with Started(1, tmp_path, False, "--set", "checkpoint.every_epochs=null") as run:
        run.wait_until_it_trains()
        with serving(tmp_path / "run") as (address, _):
            assert ask(address, "/stamp")[1].endswith("held,") and '"status":"running"' in ask(address, "/data")[1]
            run.processes[0].kill()
            run.processes[0].wait()
            assert ask(address, "/stamp")[1].endswith("free,") and '"status":"unknown"' in ask(address, "/data")[1]


def ask(address: str, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=30)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def wait_until(page: Page, condition: str) -> None:
    page.run(f"new Promise((done) => {{ const look = () => ({condition} ? done(1) : setTimeout(look, 50)); look(); }})")


@needs_chromium
def test_new_points_come_without_reloading(served: tuple[Path, str, subprocess.Popen], page: Page) -> None:
    folder, address, _ = served
    page.requests.clear()
    page.open(address)
    page.run("window.same = true; document.querySelector('input[value=samples]').click(); document.querySelector('input[value=step]').click()")
    page.run("decentReport.view.zoom([1, 2])")
    assert curve(page, "loss")["ys"] == [1.0, 0.5]
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","step":3,"loss":0.25}\n{"kind":"train","st')  # the next line is being written
    wait_until(page, "document.getElementById('loss').chart.series[0].ys.length > 2")
    assert curve(page, "loss")["ys"] == [1.0, 0.5, 0.25]
    assert page.run("window.same") and page.run("decentReport.view.range") == [1, 2]
    assert {request.removeprefix(address) for request in page.requests} <= {"", "stamp", "data"} and page.console == []


@needs_chromium
def test_what_the_reader_has_done_stays(served: tuple[Path, str, subprocess.Popen], page: Page) -> None:
    """New points, a new chart and a new warning close nothing, and an open table gets the new lines."""
    folder, address, _ = served
    page.open(address)
    page.run("window.before = byId('loss').chart; before.toggleLog(); document.querySelector('#loss summary').click(); "
             "window.rest = document.querySelector('#recipe-title').parentNode.querySelector('details'); rest.open = true; 1")
    rows = "document.querySelectorAll('#loss tbody tr').length"
    wait_until(page, f"{rows} === 2")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","step":3,"loss":0.25,"grad_norm":1.5}\n')
    (folder / "run.log").write_text("2026-01-02 03:04:05.678 W something is odd\n")
    wait_until(page, f"{rows} === 3 && document.getElementById('warnings')")
    assert page.run("before === byId('loss').chart && before.log && rest.open && rest.isConnected")
    assert page.run("document.querySelectorAll('.charts figure').length") == 2
    assert page.console == []


@needs_chromium
def test_table_of_results_is_renewed_with_the_focus_in_it(page: Page, tmp_path: Path) -> None:
    folders = [made_by_hand(tmp_path / name, [{"kind": "train", "step": 1, "loss": 1.0}], f"name: {name}\n") for name in ("one", "two")]
    show(page, report(tmp_path / "page.html", *folders))
    page.run("document.querySelector('#train-loss summary').click()")
    page.run("window.box = document.querySelectorAll('#results input')[1]; box.focus(); box.click()")
    assert page.run("[...document.querySelectorAll('#train-loss th[scope=col]')].map((cell) => cell.textContent)") == ["step", "one"]
    page.run("(() => { const data = JSON.parse(byId('data').textContent); data.runs[0].train.step[0] = 7; decentReport.update(data); })()")
    assert page.run("document.querySelector('#results tbody tr').cells[2].textContent") == "7"
    assert page.run("document.activeElement === document.querySelectorAll('#results input')[1] && !document.activeElement.checked")
    assert page.run("document.querySelector('#train-loss tbody th').textContent") == "7"


@needs_chromium
def test_an_error_of_the_page_is_not_taken_for_a_missing_server(served: tuple[Path, str, subprocess.Popen], page: Page) -> None:
    folder, address, process = served
    page.open(address)
    page.run("window.updates = 0; Page.prototype.update = () => { ++window.updates; throw new Error('it is broken'); }; 1")
    said = "document.getElementById('gone').checkVisibility() ? document.getElementById('gone').textContent : ''"
    page.run("new Promise((done) => setTimeout(done, 2500))")
    assert page.run("window.updates") == 0 and page.run(said) == ""  # nothing is new
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","step":3,"loss":0.25}\n')
    wait_until(page, "window.updates === 1")
    assert page.run(said) == "The new figures cannot be shown: it is broken."
    process.kill()
    wait_until(page, f"({said}).includes('does not answer')")


def test_server_is_for_this_machine(served: tuple[Path, str, subprocess.Popen]) -> None:
    _, address, process = served
    port = address.rstrip("/").rpartition(":")[2]
    assert address == f"http://127.0.0.1:{port}/"
    assert ask(address, "/")[0] == 200 and "connect-src 'self'" in ask(address, "/")[1]
    assert ask(address, "/data", f"localhost:{port}")[0] == 200
    assert ask(address, "/data", f"127.0.0.1:{port} ")[0] == 200  # blanks around it are no part of it
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1"):  # names that lead here by DNS
        assert ask(address, "/data", host)[0] == 403, host
    assert ask(address, "/data", method="POST")[0] == 405 and ask(address, "/../etc/passwd")[0] == 404
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", int(port))):
        pass
    with socket.create_connection(("127.0.0.1", int(port))) as silent:  # keeps nobody else from an answer
        assert ask(address, "/stamp")[0] == 200
        silent.sendall(b"nonsense\r\n\r\n")
        assert silent.recv(100).startswith(b"HTTP/1.1 400 ")
    for hosts, status in ((f"Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n", b"400"), ("Host:\r\n", b"403"), ("", b"403")):
        with socket.create_connection(("127.0.0.1", int(port))) as asking:
            asking.sendall(f"GET /data HTTP/1.1\r\n{hosts}\r\n".encode())
            assert asking.recv(100).startswith(b"HTTP/1.1 " + status), hosts
    ended = run_alone("--report", served[0], "--serve", port)
    assert_says(error_message([ended], 2), f"--serve {port}: cannot listen on this port", "Address already in use")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0


def held(address: str, request: bytes, stack: ExitStack, count: int) -> list[socket.socket]:
    """Connections that begin so and then do nothing; few bytes of an answer fit into them."""
    made = []
    for _ in range(count):
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", int(address.rstrip("/").rpartition(":")[2])))
        with suppress(OSError):  # it has made room for a later one already
            connection.sendall(request)
        made.append(connection)
    return made


@pytest.mark.parametrize("request_of", ["", "GET /data HT", "GET /data HTTP/1.1\r\nHost: {host}\r\n\r\n"],
                         ids=["silent", "half a request", "reads no answer"])
def test_others_are_answered_beside_held_connections(request_of: str, tmp_path: Path) -> None:
    """Whoever holds many connections holds them against himself only; they end by themselves."""
    lines = [{"kind": "train", "step": step, "loss": 1 / step} for step in range(1, 200_000)]
    folder = made_by_hand(tmp_path / "long", lines)  # more than the system keeps for a connection
    with serving(folder) as (address, process), ExitStack() as stack:
        assert len(ask(address, "/data")[1]) > 5_000_000
        host = address.removeprefix("http://").rstrip("/")
        connections = held(address, request_of.format(host=host).encode(), stack, 207)
        for _ in range(5):
            begin = time.monotonic()
            assert ask(address, "/stamp")[0] == 200
            assert time.monotonic() - begin < 1
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        assert threads <= 40, threads  # 32 and the one that listens, and some that are just ending
        if "\r\n\r\n" not in request_of:
            connections[-1].settimeout(10)
            assert connections[-1].recv(10) in (b"", b"HTTP/1.1 4")  # a time-out of 3 s
