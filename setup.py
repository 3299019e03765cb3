"""Build the C extension, and the same wheel from the same sources: pyproject.toml can do neither.

PICOTORCH_PREBUILT in the environment names a folder of firmware and native modules for the wheel to
bring, laid out as build/ is; tools/make_wheel.py fills one.
"""

import os
import shutil

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

# Every file of the wheel has this date, the firmware's, and the rights that these commands give it.
os.environ["SOURCE_DATE_EPOCH"] = "1744675200"
os.umask(0o022)


class BuildPython(build_py):
    def run(self):
        """Starts from nothing, so that no file of an earlier build gets in."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if "PICOTORCH_PREBUILT" in os.environ and not self.editable_mode:
            shutil.copytree(os.environ["PICOTORCH_PREBUILT"], f"{self.build_lib}/picotorch/build",
                            copy_function=shutil.copyfile)

    def copy_file(self, infile, outfile, preserve_mode=False, **options):
        """Copies without the rights that a file has in this checkout."""
        return super().copy_file(infile, outfile, preserve_mode=preserve_mode, **options)


class BuildExtension(build_ext):
    def build_extensions(self):
        """Leaves the folders of this machine's Python out of the extension: it needs libc only."""
        linker = self.compiler.linker_so
        self.compiler.linker_so = [word for word in linker if not word.startswith("-Wl,-rpath")]
        super().build_extensions()


setup(
    cffi_modules=["host/native/build.py:ffi"],
    cmdclass={"build_py": BuildPython, "build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
