"""Build `_picotorch_c`, the C part of CPython's binding of kernels/, through cffi.

The declarations come from the core's headers. hatch_build.py calls build(). From a shell:

    python host/_picotorch/build.py FOLDER    # CC, CFLAGS and LDFLAGS of the environment apply
"""

import os
import pathlib
import re
import sys
import sysconfig

import cffi

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [*sorted(str(path.relative_to(ROOT)) for path in (ROOT / "kernels").rglob("*.c")),
           "host/_picotorch/threads.c"]
INCLUDES = ("kernels/include", "kernels")
HEADERS = ("include/picotorch/schema.h", "include/picotorch/kernel.h", "core/record.h",
           "include/picotorch/picotorch.h", "core/format/ptm.h")

# Without DSP and others, an Arm host uses no variants of microcontrollers
FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra",
         "-DPT_ANY_CORE", "-DPT_HOST", "-U__ARM_FEATURE_DSP", "-U__ARM_FEATURE_SIMD32",
         "-U__ARM_FEATURE_SAT"]


def declarations(header: str) -> str:
    """Return the declarations of a header for cffi.

    Comments, preprocessor lines and inline functions are removed. The compiler fills in the values of
    constants and the lengths of arrays.
    """
    text = re.sub(r"//.*", "", (ROOT / "kernels" / header).read_text())
    text = re.sub(r"(?ms)^#ifdef __cplusplus\n.*?^#endif\n", "", text)
    text = re.sub(r"(?m)^#(?:[^\n]*\\\n)*[^\n]*\n", "", text)
    text = re.sub(r"(?ms)^(PT_MUST_USE )?static inline .*?^\}\n", "", text).replace("PT_MUST_USE ", "")
    text = re.sub(r"(?<=enum \{)[^}]*", lambda match: _names(match[0]) + ", ...", text)
    return re.sub(r"\[[^\]]*[A-Z][^\]]*\]", "[...]", text)


def _names(constants: str) -> str:
    return ", ".join(re.findall(r"(?m)(?:^|,)\s*([A-Z]\w*)", constants))


SOURCE = """
#define _POSIX_C_SOURCE 199309L
#include <picotorch/picotorch.h>
#include "core/record.h"
#include "core/format/ptm.h"
#include "arch/vectors.h"
#include <time.h>

static uint64_t pt_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int pt_execute_by_threads(pt_method *method, int threads, pt_error *error);
int pt_context_execute_by_threads(pt_context *c, int threads);
int64_t pt_share_from(int64_t steps);

static int handle_signals(struct pt_method *m);
static int ask(struct pt_method *m, int what, uint32_t delegate, pt_error *error);

static int find(pt_method *m, uint32_t i, pt_error *error) { return ask(m, 0, i, error); }
static int init(pt_method *m, uint32_t i, pt_error *error) { return ask(m, 1, i, error); }
static int execute(pt_method *m, uint32_t i, pt_error *error) { return ask(m, 2, i, error); }
static void destroy(pt_method *m, uint32_t i) { ask(m, 3, i, NULL); }

static const pt_delegates delegates = {NULL, 0, 0, find, init, execute, destroy};

#if defined(PT_HAS_HOST_VECTORS)
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

static int vectors;

static bool has_upper(void) {
#if defined(__x86_64__)
    // Not __builtin_cpu_supports: a compiler's own library may report that there is no AVX2 anywhere.
    // Bits of Intel's manual, volume 1, 14.7: AVX and its state saved by the system, then AVX2
    unsigned a, b, c, d, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_AVX) == 0 || (c & bit_OSXSAVE) == 0) {
        return false;
    }
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    return (saved & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) != 0;
#elif defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
    return true;
#else
    return false;
#endif
}

// Takes these vectors (PT_VECTORS_...), or the widest below them that the processor has.
static int pt_use_vectors(int most) {
    int upper = has_upper() ? PT_VECTORS_UPPER : PT_VECTORS_LOWER;
    return vectors = most < upper ? most : upper;
}

int pt_vectors(void) { return vectors; }

__attribute__((constructor)) static void use_all_vectors(void) {
    pt_use_vectors(PT_VECTORS_UPPER);
}
#else
static int pt_use_vectors(int most) { (void)most; return PT_VECTORS_NONE; }
#endif

// Ten times a second, in each thread.
static int pt_poll(pt_context *c) {
    static __thread uint64_t next;
    uint64_t now = pt_nanoseconds();
    if (now < next) {
        return PT_ERROR_OK;
    }
    next = now + 100000000;
    return handle_signals((struct pt_method *)c); // its first member
}
"""

OWN_DECLARATIONS = """
#define PT_NO_BYTES ...
uint64_t pt_nanoseconds(void);
enum { PT_VECTORS_NONE, PT_VECTORS_LOWER, PT_VECTORS_UPPER, ... };
int pt_use_vectors(int most);
int pt_poll(pt_context *c);
int pt_execute_by_threads(pt_method *method, int threads, pt_error *error);
int pt_context_execute_by_threads(pt_context *c, int threads);
int64_t pt_share_from(int64_t steps);
extern "Python" int handle_signals(struct pt_method *m);
extern "Python" int ask(struct pt_method *m, int what, uint32_t delegate, pt_error *error);
static const pt_delegates delegates;
"""

ffi = cffi.FFI()
ffi.cdef("\n".join([*map(declarations, HEADERS), OWN_DECLARATIONS]))
ffi.set_source(
    "_picotorch_c",
    SOURCE,
    sources=SOURCES,
    include_dirs=list(INCLUDES),
    extra_link_args=["-pthread"],
    extra_compile_args=[*FLAGS, "-pthread",
                        # Debug information does not depend on the folders of the sources and of Python
                        f"-ffile-prefix-map={ROOT}=.",
                        f"-ffile-prefix-map={sysconfig.get_path('include')}=python"],
)


def build(folder: pathlib.Path | str, objects: pathlib.Path | str) -> pathlib.Path:
    """Compile the extension into a folder, with object files in another one, and return its path.

    The current folder has to be ROOT.
    """
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):  # type: ignore[misc]  # without types
        def build_extensions(self) -> None:
            """Leave this machine's Python folders out of the extension, which needs libc only."""
            linker = self.compiler.linker_so
            self.compiler.linker_so = [word for word in linker if not word.startswith("-Wl,-rpath")]
            super().build_extensions()

    distribution = Distribution({"name": "_picotorch_c", "cmdclass": {"build_ext": BuildExtension},
                                 "cffi_modules": ["host/_picotorch/build.py:ffi"]})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp, command.force = str(folder), str(objects), True
    if sys.platform == "win32":
        command.compiler = "mingw32"  # gcc: the sources use its attributes
    command.ensure_finalized()
    command.run()
    (built,) = command.get_outputs()
    return pathlib.Path(built)


if __name__ == "__main__":
    os.chdir(ROOT)
    output = pathlib.Path(sys.argv[1]).resolve()
    build(output, output / "objects")
