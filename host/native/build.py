"""Builds `_picotorch_c`, the host's binding of kernels/: run by setup.py, through cffi.

What it declares is read from the core's headers.
"""

import pathlib
import re
import sysconfig

import cffi

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "kernels").rglob("*.c"))
FOLDERS = ("core", "portable", "quantized", "cortex_m", "arch")
HEADERS = ("schema.h", "kernel.h", "record.h", "picotorch.h")


def _without_bodies(text):
    """C without the inline functions, whose bodies may hold braces."""
    kept, depth, inline = [], 0, False
    for line in text.splitlines():
        inline = inline or line.startswith("static inline")
        if not inline:
            kept.append(line)
        else:
            depth += line.count("{") - line.count("}")
            inline = depth > 0 or "}" not in line
    return "\n".join(kept)


def _constants(match):
    """An enum as constants whose values the compiler knows."""
    names = re.findall(r"(?m)(?:^|,|\{)\s*([A-Z]\w*)", "{" + match.group(1))
    return "".join(f"#define {name} ...\n" for name in names)


def declarations(header):
    """What a header declares, for cffi."""
    text = re.sub(r"//.*", "", (ROOT / "kernels" / "core" / header).read_text())
    text = re.sub(r"(?m)^#(?:[^\n]*\\\n)*[^\n]*\n", "", text)
    text = _without_bodies(text)
    text = re.sub(r"typedef enum \{([^}]*)\} (\w+);",
                  lambda match: _constants(match) + f"typedef int... {match.group(2)};\n", text)
    text = re.sub(r"\benum \{([^}]*)\};", _constants, text)
    return re.sub(r"\[[^\]]*[A-Z][^\]]*\]", "[...]", text)


SOURCE = """
#define _POSIX_C_SOURCE 199309L
#include "picotorch.h"
#include "record.h"
#include <time.h>

static uint64_t pt_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int handle_signals(pt_context *c);

// Ten times a second, in each thread.
static int pt_poll(pt_context *c) {
    static __thread uint64_t next;
    uint64_t now = pt_nanoseconds();
    if (now < next) {
        return PT_ERROR_OK;
    }
    next = now + 100000000;
    return handle_signals(c);
}
"""

OWN_DECLARATIONS = """
uint64_t pt_nanoseconds(void);
int pt_poll(pt_context *c);
extern "Python" int handle_signals(struct pt_context *c);
extern "Python" int find_delegate(struct pt_method *m, uint32_t delegate, pt_error *error);
extern "Python" int init_delegate(struct pt_method *m, uint32_t delegate, pt_error *error);
extern "Python" int execute_delegate(struct pt_method *m, uint32_t delegate, pt_error *error);
extern "Python" void destroy_delegate(struct pt_method *m, uint32_t delegate);
"""

ffi = cffi.FFI()
ffi.cdef("\n".join([*map(declarations, HEADERS), OWN_DECLARATIONS]))
ffi.set_source(
    "_picotorch_c",
    SOURCE,
    sources=SOURCES,
    include_dirs=[f"kernels/{folder}" for folder in FOLDERS],
    # the plain forms of kernels/arch, also where the host is an Arm core with these extensions
    extra_compile_args=["-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall",
                        "-Wextra", "-U__ARM_FEATURE_DSP", "-U__ARM_FEATURE_SIMD32",
                        "-U__ARM_FEATURE_SAT",
                        # debug information is the same wherever the sources and Python are
                        f"-ffile-prefix-map={ROOT}=.",
                        f"-ffile-prefix-map={sysconfig.get_path('include')}=python"],
)
