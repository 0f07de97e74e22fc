"""Stands between a host and one server's process, and leaves nothing of it behind.

    python -I -S supervisor.py HOST_PID LIFELINE_FD KEEP_LOCALE GROUP PROGRAM ARGUMENT...

A program of its own, in the standard library alone, since every server waits for its start. The
server gets stdin, stdout, stderr, environment and folder as they are: nothing is copied. On Linux
it adopts whatever the server orphans (PR_SET_CHILD_SUBREAPER), so that children that begin a
session or fork twice are found and ended too; elsewhere it ends the server's process group. It
learns of the host's end by the lifeline, a pipe that the host alone holds open, and on Linux by
PR_SET_PDEATHSIG as well. Manual pages: prctl(2), signal(7).

SIGTERM: ask everything to end, kill what is left after a while. SIGUSR2: kill at once. In the end
it exits as the server did: with its code, or by its signal. 126: the server could not be started.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:  # `signal` wraps this one in enumerations, which takes 5 ms; so does importing `typing`
    import _signal as signal

CANNOT_START = 126
ASK_S = 1.0
"""The time from the end of stdin to SIGTERM, and from there to SIGKILL; 50 ms is usual."""
LEFTOVERS_S = 0.3
"""The time from SIGTERM to SIGKILL for what outlives the server itself."""
GIVE_UP_S = 2.0
"""The time for the kernel to carry out SIGKILL. What lives on belongs to another user."""
_SWEEP_S = 0.01
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"


class Supervisor:
    """Starts one server and ends it and all that it started, when the time has come."""

    def __init__(self, host: int, lifeline: int) -> None:
        self._host = host
        self._heard: list[int] = []
        self._server = 0
        self._status: int | None = None
        self._stage = 0
        """0: it runs. 1: its stdin ended. 2: SIGTERM was sent. 3: SIGKILL is being sent."""
        self._deadline: float | None = None
        wake, self._wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._wake_write, False)
        self._wake_read = wake
        self._lifeline = lifeline
        os.set_inheritable(lifeline, False)
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._poll.register(lifeline, select.POLLIN)

    def prepare(self) -> None:
        """Sets the signals up before the server exists, so that no orphan or death is missed."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, *_ENDS, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda heard, _: self._heard.append(heard))
        if _LINUX:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
            # Told when the host's *thread* ends too, so the handler looks whether the host did.
            _prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
        if os.getppid() != self._host:
            os._exit(0)  # it died before it could be watched

    def start(
        self, program: str, arguments: list[str], environ: dict[str, str], group: str
    ) -> None:
        """Starts the server in the control group, if any, or exits with `CANNOT_START`."""
        failed, tell = os.pipe()  # closed by exec: then nothing is told
        self._server = os.fork()
        if self._server == 0:
            _enter(group)
            _become(tell, program, arguments, environ)
        os.close(tell)
        if said := os.read(failed, 16):
            os.write(2, f"cannot be started ({os.strerror(int(said))})\n".encode())
            os._exit(CANNOT_START)
        os.close(failed)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for pipe in (0, 1, 2):  # theirs alone: the host must see when the server closes them
            os.dup2(nowhere, pipe)
        os.chdir("/")

    def watch(self) -> int:
        """Waits until nothing is left; gives the server's status as waitpid has it."""
        while True:
            self._reap_children()
            if self._status is not None:
                if not self._any_left():
                    return self._status
                if self._stage < 2:
                    self._enter_stage(2, LEFTOVERS_S)
            if self._deadline is not None and time.monotonic() >= self._deadline:
                if self._stage == 3:
                    return self._status if self._status is not None else signal.SIGKILL
                self._enter_stage(self._stage + 1, ASK_S if self._stage == 1 else GIVE_UP_S)
            elif self._stage == 3:
                self._send(signal.SIGKILL)  # what was born since
            self._listen()

    def _enter_stage(self, stage: int, within_s: float) -> None:
        self._stage = stage
        self._deadline = time.monotonic() + within_s
        if stage > 1:
            self._send(signal.SIGTERM if stage == 2 else signal.SIGKILL)

    def _listen(self) -> None:
        """Waits for a death, a signal, the host's end, or the next step's time."""
        until = _SWEEP_S if self._stage == 3 or self._status is not None else None
        if until is None and self._deadline is not None:
            until = max(self._deadline - time.monotonic(), 0)
        ready = dict(self._poll.poll(None if until is None else until * 1000))
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        host_gone = self._lifeline in ready
        if host_gone:
            self._poll.unregister(self._lifeline)
        while self._heard:
            number = self._heard.pop()
            if number in _ENDS and self._stage < 2:
                self._enter_stage(2, ASK_S)
            elif number == signal.SIGUSR2 and self._stage < 3:
                self._enter_stage(3, GIVE_UP_S)
            elif number == signal.SIGUSR1:
                host_gone = host_gone or os.getppid() != self._host
        if host_gone and self._stage == 0:
            self._enter_stage(1, ASK_S)  # its end of stdin closed with it

    def _reap_children(self) -> None:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._server:
                    self._status = found[1]
        except ChildProcessError:
            pass

    def _any_left(self) -> bool:
        try:
            if _LINUX:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            else:
                os.killpg(self._server, 0)
        except (ChildProcessError, ProcessLookupError):
            return False
        except PermissionError:
            pass
        return True

    def _send(self, number: int) -> None:
        """Signals everything that the server has started; elsewhere than on Linux, its group."""
        for pid in descendants(os.getpid()) or [-self._server]:
            try:  # noqa: SIM105 - contextlib is one more module to import
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass


_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _enter(group: str) -> None:
    """Puts this process into a control group; without one its mark is what it is found by."""
    try:
        if group:
            with open(f"{group}/cgroup.procs", "wb") as file:  # noqa: PTH123 - as below
                file.write(b"0")
    except OSError:
        pass


def _become(tell: int, program: str, arguments: list[str], environ: dict[str, str]) -> None:
    """Turns the child into the server, in a session of its own."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        if _LINUX:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execve(program, [program, *arguments], environ)
    except OSError as error:
        os.write(tell, str(error.errno).encode())
    finally:
        os._exit(CANNOT_START)


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(of: int) -> list[int]:
    """Gives the children of a process, and theirs, as /proc has them now; none without /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib takes 10 ms to import
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    # The name before it may hold anything, brackets too.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it is gone
            children.setdefault(parent, []).append(int(name))
    found = list(children.get(of, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _exit_as(status: int) -> None:
    """Ends this process as the server ended, so that the host reads it from its own child."""
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)  # never reached by a signal that ends a process
    os._exit(128 + number)


def main(
    host: str, lifeline: str, keep_locale: str, group: str, program: str, *arguments: str
) -> None:
    environ = dict(os.environ)
    if keep_locale == "0":
        environ.pop("LC_CTYPE", None)  # Python sets it for itself where the locale is C
    supervisor = Supervisor(int(host), int(lifeline))
    supervisor.prepare()
    supervisor.start(program, list(arguments), environ, group)
    _exit_as(supervisor.watch())


if __name__ == "__main__":
    main(*sys.argv[1:])
