"""Check failing calls of the command line."""


def assert_error(result, name, *words):
    """Assert exit status 1 and one line on stderr that begins with name and code."""
    status, _, error = result
    assert status == 1
    assert error.count("\n") == 1 and error.endswith("\n")
    assert error.startswith(name + " (0x"), error
    for word in words:
        assert word in error


def assert_usage(result, *words):
    status, out, error = result
    assert (status, out) == (2, "")
    assert "Usage: picotorch" in error and "Traceback" not in error
    for word in words:
        assert word in error
