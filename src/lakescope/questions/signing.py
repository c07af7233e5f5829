"""Functions whose signature is made: what frameworks read that build commands, routes and tools from functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def parameter(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    """One parameter, by its name; required unless there is a default."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def signed(function: Function, name: str, doc: str, parameters: Sequence[Parameter], answers: Any = None) -> Function:
    """The function under a name and with a signature: it takes what comes as keywords."""
    made: Any = function
    made.__name__ = made.__qualname__ = name.replace("-", "_")
    made.__doc__ = doc
    made.__signature__ = Signature(parameters, return_annotation=answers)
    made.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": answers}
    return function
