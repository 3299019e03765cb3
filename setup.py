from setuptools import setup

setup(cffi_modules=["host/native/build.py:ffi"])
