"""Freeze picotorch into a firmware that has the C module _picotorch (port/module). In its manifest:

    include("/path/to/picotorch/port/manifest.py", parts="module files")

`parts` lists the optional parts to freeze (PARTS in picotorch/__init__.py); without it all are frozen.
Line numbers, which take 2.5 KB, are left out: a traceback names the functions.
"""

_CORE = "__init__ errors memory method method_meta program schema tensor"
_PARTS = "data delegates files module tracer"

_modules = _CORE + " " + (_PARTS if options.parts is None else options.parts)
package("picotorch", files=[name + ".py" for name in sorted(_modules.split())], base_path="../host",
        opt=3)
