"""Which operators and backends there are."""

import _picotorch


class BackendRegistry:
    """picotorch has no backends: programs with delegates are refused at load."""

    @property
    def registered_backend_names(self) -> list[str]:
        return []

    def is_available(self, backend_name: str) -> bool:
        return backend_name in self.registered_backend_names


class OperatorRegistry:
    """The operators that this build has kernels for."""

    @property
    def operator_names(self) -> set[str]:
        return {_picotorch.operator_name(i) for i in range(_picotorch.operator_count())}
