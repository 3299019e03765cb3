"""Provide the registries of operators and backends."""

from picotorch.delegates import get_backend, registered_backend_names
from picotorch.host.operators import built_operators

from .exceptions import RuntimeFailure, raises


class BackendRegistry:
    """The backends that picotorch.register_backend registered."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Return the names of the registered backends."""
        return registered_backend_names()

    @raises(RuntimeFailure)
    def is_available(self, backend_name: str) -> bool:
        """Return whether a backend is registered and can work now."""
        backend = get_backend(backend_name)
        return backend is not None and bool(backend.is_available())


class OperatorRegistry:
    """The operators that this build has kernels for."""

    @property
    def operator_names(self) -> set[str]:
        """Return the names of the operators of this build."""
        return set(built_operators())
