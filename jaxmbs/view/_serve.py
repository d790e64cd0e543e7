"""The viewer: a page on this machine alone, and its address."""

import contextlib
import functools
import io
import socket
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from jaxtyping import Float

from .. import _settings
from .._custom_types import Setting
from .._dynamics import Trajectory
from .._errors import ModelError, optional
from .._ranges import AbstractBound
from .._system import Model
from ._page import Page
from ._session import Session


HOST = "127.0.0.1"

_LARGEST_PORT = 65535


class Viewer:
    """A mechanism in browsers of this machine, until it is closed.

    `address`: of the page. It is a context manager, which closes it.
    """

    def __init__(self, session: Session, server: Any, page: Page):
        self.address = f"http://{HOST}:{server.get_port()}"
        self._session, self._server, self._page = session, server, page
        self._closed = threading.Event()

    def __repr__(self) -> str:
        return f"Viewer({self._session.model.name!r} at {self.address})"

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def q(self) -> Float[np.ndarray, " nq"]:
        """The configuration (nq,) that is shown, in m and rad, as the model's system has it."""
        return self._session.q.copy()

    @property
    def values(self) -> dict[str, float]:
        """The values of all controls, by the names that `Cases` takes, in the units of the model
        file: m and rad for drivers and coordinates of joints."""
        return dict(self._session.values)

    def wait(self) -> None:
        """Wait until it is closed, or Ctrl-C."""
        # (Without an end, a wait could not be interrupted on all systems.)
        while not self._closed.wait(0.5):
            pass

    def close(self) -> None:
        """End the pages."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._page.worker.end()
        with _silent():
            self._server.stop()


def serve(
    model: Setting[Model],
    *,
    trajectory: Setting[Trajectory | None] = None,
    bounds: Setting[Sequence[AbstractBound | str]] = (),
    port: Setting[int | None] = None,
    browser: Setting[bool] = True,
) -> Viewer:
    """Show a mechanism in the browser, to be moved by hand.

    Every driver, every independent coordinate of joints and every parameter of the model file has a
    slider. Moving one closes the mechanism again, on the branch on which it is (see `assemble`); if
    its loops cannot be closed, the page names the open joints and keeps the last closed
    configuration. Verdicts and forces, those
    at rest, follow; a number that is not unique is not shown. A motion is computed on request, or
    given, and played.

    The page can be reached from this machine alone and asks for nothing from a network. All pages
    at its address show the same mechanism.

    **Arguments:**

    - `trajectory`: a motion of the model, to be played.
    - `bounds`: what is known of reactions, as `jaxmbs.ranges` takes it.
    - `port`: of the address, 1 to 65535; default a free one.
    - `browser`: open the page in the browser of this machine.

    **Returns:** a `Viewer`, which lives in threads of its own: `with` or `close()` end it, `wait()`
    waits for Ctrl-C.

    **Raises:** `ModelError` (a `ValueError`) for a missing extra (`view`), a port that is in use,
    bounds that the system does not understand, and a trajectory of another model or of one with
    other numbers. `ValueError` for a mesh that cannot be read; `TypeError` for arguments of wrong
    types. `AnalysisError` if the model does not assemble.
    """
    _settings.instance(model, Model, "model", "jaxmbs.mechanisms.door()")
    if trajectory is not None:
        _settings.instance(trajectory, Trajectory, "trajectory", "simulate(...)")
    if port is not None:
        port = _settings.whole_number(port, "port", least=1, most=_LARGEST_PORT)
    browser = _settings.flag(browser, "browser")
    chosen = free_port(port)
    session = Session(model, bounds)
    if trajectory is not None:
        session.play(trajectory)
    viewer = open_page(session, chosen)
    if browser:
        webbrowser.open(viewer.address)
    return viewer


def check_extra() -> None:
    """**Raises:** `ModelError` where the extra is missing."""
    optional("viser", "view")


def free_port(port: int | None) -> int:
    """The port, if it is free; any free one for None.

    **Raises:** `ModelError`, also for a missing extra.
    """
    check_extra()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
        # As the server will.
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind((HOST, port or 0))
        except OSError as error:
            raise _refused(port or 0, error.strerror or str(error)) from None
        return own.getsockname()[1]


def _refused(port: int, why: str) -> ModelError:
    return ModelError(
        f"port {port} of {HOST} cannot be used ({why[:1].lower()}{why[1:]}); give another one, or "
        "none for any that is free."
    )


def open_page(session: Session, port: int) -> Viewer:
    """Serve the page of a session.

    **Raises:** `ModelError` where the port is taken meanwhile.
    """
    viser = optional("viser", "view")
    with _silent(), _own_pages_only(port):
        server = viser.ViserServer(host=HOST, port=port, label=session.model.name, verbose=False)
    if server.get_port() != port:
        with _silent():
            server.stop()
        raise _refused(port, "address already in use")
    # Pages could ask for a public address.
    server.request_share_url = _no_share
    page = Page(server, session)
    page.worker.start()
    return Viewer(session, server, page)


def _no_share(verbose: bool = True) -> None:
    del verbose


_STARTING = threading.Lock()


@contextlib.contextmanager
def _own_pages_only(port: int) -> Iterator[None]:
    """A server that starts within the block refuses connections from pages of other addresses than
    its own: any page in a browser of this machine could open one. (The server's own options do not
    say whom it answers.)"""
    serving: Any = optional("websockets.asyncio.server", "view")
    own = [f"http://{HOST}:{port}", f"http://localhost:{port}", None]
    with _STARTING:
        before = serving.serve
        serving.serve = functools.partial(before, origins=own)
        try:
            yield
        finally:
            serving.serve = before


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """The server prints nothing: the command says what there is to say."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
