#include <alloca.h>
#include <stdint.h>

// Two variants: run (PT_REPL 0) boots a frozen main and has neither compiler nor REPL; the other
// has both, files, and the features of a stock board.

#if PT_REPL
#include "mpconfigrepl.h"
#else
#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_CORE_FEATURES)
#define MICROPY_PY_IO (0)
#define MICROPY_PY_SYS_STDFILES (0)
#endif

#define MICROPY_ENABLE_COMPILER (PT_REPL)
#define MICROPY_HELPER_REPL (PT_REPL)
#define MICROPY_REPL_AUTO_INDENT (PT_REPL)
#define MICROPY_KBD_EXCEPTION (1)
#define MICROPY_PY_BUILTINS_HELP (PT_REPL)
#define MICROPY_PY_BUILTINS_HELP_MODULES (PT_REPL)
#define MICROPY_PY_MATH (PT_REPL)

// Only bytecode is frozen; the build system turns frozen sources on, which need the compiler.
#undef MICROPY_MODULE_FROZEN_STR
#define MICROPY_MODULE_FROZEN_STR (0)

// The Python code around load and execute takes 10 % fewer instructions for 1,130 bytes, which do
// not fit on mps3-an547 beside the prompt and all kernels.
#define MICROPY_OPT_COMPUTED_GOTO (!PT_REPL)
#define MICROPY_OPT_LOAD_ATTR_FAST_PATH (1)
#define MICROPY_OPT_MAP_LOOKUP_CACHE (1)

#define MICROPY_ENABLE_GC (1)
#define MICROPY_STACK_CHECK (1)
#define MICROPY_STACK_CHECK_MARGIN (2048)
#define MICROPY_PERSISTENT_CODE_LOAD (1)
#define MICROPY_LONGINT_IMPL (MICROPY_LONGINT_IMPL_MPZ)
#define MICROPY_FLOAT_IMPL (MICROPY_FLOAT_IMPL_FLOAT)

// A traceback of an exception that was raised while the heap was locked.
#define MICROPY_ENABLE_EMERGENCY_EXCEPTION_BUF (1)
#define MICROPY_EMERGENCY_EXCEPTION_BUF_SIZE (256)
#define MICROPY_ENABLE_SOURCE_LINE (1)

#define MICROPY_MEM_STATS (0)
#define MICROPY_PY_MICROPYTHON_HEAP_LOCKED (1)
#define MICROPY_PY_MICROPYTHON_MEM_INFO (PT_REPL)
#define MICROPY_PY_BUILTINS_COMPLEX (0)
#define MICROPY_PY_BUILTINS_MEMORYVIEW (1)
#define MICROPY_PY_BUILTINS_STR_UNICODE (1)
#define MICROPY_PY_ARRAY_SLICE_ASSIGN (1)
#define MICROPY_PY_SYS_EXIT (1)
#define MICROPY_PY_SYS_PLATFORM "picotorch"
#define MICROPY_PY_ASYNC_AWAIT (0)

// A frozen program does not use these features: 5 KB.
#define MICROPY_PY_ERRNO (PT_REPL)
#define MICROPY_PY_COLLECTIONS (PT_REPL)
#define MICROPY_PY_BUILTINS_DICT_FROMKEYS (PT_REPL)
#define MICROPY_PY_BUILTINS_FILTER (PT_REPL)
#define MICROPY_PY_BUILTINS_RANGE_ATTRS (PT_REPL)
#define MICROPY_PY_BUILTINS_REVERSED (PT_REPL)
#define MICROPY_PY_BUILTINS_SET (PT_REPL)
#define MICROPY_PY_BUILTINS_STR_COUNT (PT_REPL)
#define MICROPY_PY_GENERATOR_PEND_THROW (PT_REPL)
#define MICROPY_MULTIPLE_INHERITANCE (PT_REPL)
#define MICROPY_GC_ALLOC_THRESHOLD (PT_REPL)

#define MICROPY_BEGIN_ATOMIC_SECTION() pt_irq_disable()
#define MICROPY_END_ATOMIC_SECTION(state) pt_irq_restore(state)

#define MICROPY_HW_BOARD_NAME PT_BOARD_NAME
#define MICROPY_HW_MCU_NAME PT_BOARD_CORE

#include "board.h"
#include "cortex_m.h"

#define UINT_FMT "%lu"
#define INT_FMT "%ld"
typedef int32_t mp_int_t;
typedef uint32_t mp_uint_t;
typedef long mp_off_t;
#define MP_SSIZE_MAX (0x7fffffff)
#define MP_NEED_LOG2 (1)

#define MP_STATE_PORT MP_STATE_VM
