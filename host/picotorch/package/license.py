"""Read the license that stands in each project."""

from importlib import metadata

from picotorch.errors import NOT_FOUND, fail


def license_text() -> str:
    """Read the license of the library from the installed package. Raises NotFound if it is missing."""
    text = metadata.distribution("picotorch").read_text("licenses/LICENSE")
    if text is None:
        raise fail(NOT_FOUND, "is not in the installed package", "licenses/LICENSE",
                   remedy="install picotorch again")
    return text
