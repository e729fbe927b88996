"""What a process opens while it runs cases, and how all of it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Resources:
    """Closes what was opened, the last first; thread-safe.

    ``interrupt`` ends what is under way in them (requests, queries) and leaves them open.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._stack = ExitStack()
        self._interrupts: list[Callable[[], object]] = []

    def add(self, close: Callable[[], object], *, interrupt: Callable[[], object] | None = None) -> None:
        """Remember how something that was just opened is closed, and how it is interrupted."""
        with self.lock:
            self._stack.callback(close)
            if interrupt is not None:
                self._interrupts.append(interrupt)

    def interrupt(self) -> None:
        """End what is under way."""
        with self.lock:
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            interrupt()

    def close(self) -> None:
        """Close everything; a second call has nothing left to close."""
        with self.lock:
            stack = self._stack.pop_all()
            self._interrupts.clear()
        stack.close()


class resource(Generic[T]):
    """A property that is made once, at its first use; two threads that come together get the same one.

    The owner has a ``resources`` with the lock that is held meanwhile.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> resource[T]: ...

    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> T | resource[T]:
        if instance is None:
            return self
        with instance.resources.lock:
            # without a __set__ the instance's own attribute is found first from now on
            if self._name not in instance.__dict__:
                instance.__dict__[self._name] = self._make(instance)
            made: T = instance.__dict__[self._name]
            return made
