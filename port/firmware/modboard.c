/* MicroPython module _board: the board and the host, for the frozen runner. */

#include <string.h>

#include "counter.h"
#include "fault.h"
#include "interrupt.h"
#include "job.h"
#include "memories.h"
#include "py/builtin.h"
#include "py/mperrno.h"
#include "py/objarray.h"
#include "py/objstr.h"
#include "py/persistentcode.h"
#include "py/runtime.h"
#include "semihosting.h"
#include "stack.h"

#define COMMAND_LINE_SIZE 256

static mp_obj_t read_only_view(const void *data, size_t size) {
    return mp_obj_new_memoryview('B', size, (void *)data);
}

static mp_obj_t writable_view(void *data, size_t size) {
    return mp_obj_new_memoryview('B' | MP_OBJ_ARRAY_TYPECODE_FLAG_RW, size, data);
}

/* job() -> read-only memoryview of the job, or None. */
static mp_obj_t board_job(void) {
    size_t size;
    const uint8_t *job = pt_job(&size);
    return job == NULL ? mp_const_none : read_only_view(job, size);
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_job_obj, board_job);

/* memories() -> tuple of the names for memory(). */
static mp_obj_t board_memories(void) {
    mp_obj_tuple_t *names = MP_OBJ_TO_PTR(mp_obj_new_tuple(pt_memory_count, NULL));
    for (size_t i = 0; i < pt_memory_count; i++) {
        names->items[i] = MP_OBJ_NEW_QSTR(pt_memories[i].name);
    }
    return MP_OBJ_FROM_PTR(names);
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_memories_obj, board_memories);

static const pt_memory *find_memory(mp_obj_t name_in) {
    qstr name = mp_obj_str_get_qstr(name_in);
    for (size_t i = 0; i < pt_memory_count; i++) {
        if (pt_memories[i].name == name) {
            return &pt_memories[i];
        }
    }
    mp_raise_type_arg(&mp_type_KeyError, name_in);
}

/* memory(name) -> writable memoryview of a static memory. KeyError(name). */
static mp_obj_t board_memory(mp_obj_t name_in) {
    const pt_memory *found = find_memory(name_in);
    return writable_view(found->data, found->size);
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_memory_obj, board_memory);

/* place(name) -> str, the memory of board.toml that contains a static memory. KeyError(name). */
static mp_obj_t board_place(mp_obj_t name_in) {
    const char *place = find_memory(name_in)->place;
    return mp_obj_new_str(place, strlen(place));
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_place_obj, board_place);

#define ADDRESS_ZERO_SIZE 64

/* address_zero() -> read-only memoryview of the first bytes of the address space, to which a null
 * pointer leads. */
static mp_obj_t board_address_zero(void) {
    return read_only_view(NULL, ADDRESS_ZERO_SIZE);
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_address_zero_obj, board_address_zero);

/* count_start(): begin to count instructions. Allocates nothing. */
static mp_obj_t board_count_start(void) {
    pt_counter_start();
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_count_start_obj, board_count_start);

static void store_u32(uint8_t *to, uint32_t value) {
    for (size_t i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

/* count_stop(buffer, index): store the instructions since count_start() as little-endian u32
 * at byte index; 0xffffffff if there were more. Allocates nothing. */
static mp_obj_t board_count_stop(mp_obj_t buffer_in, mp_obj_t index_in) {
    uint64_t count = pt_counter_stop();
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_WRITE);
    mp_int_t index = mp_obj_get_int(index_in);
    if (index < 0 || buffer.len < 4 || (size_t)index > buffer.len - 4) {
        mp_raise_type(&mp_type_IndexError);
    }
    store_u32((uint8_t *)buffer.buf + index, count > UINT32_MAX ? UINT32_MAX : (uint32_t)count);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(board_count_stop_obj, board_count_stop);

/* count_overhead(instructions): set the overhead that count_stop() subtracts. */
static mp_obj_t board_count_overhead(mp_obj_t instructions_in) {
    pt_counter_set_overhead(mp_obj_get_int_truncated(instructions_in));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_count_overhead_obj, board_count_overhead);

/* stack_paint(): mark the unused stack, for stack_used(). */
static mp_obj_t board_stack_paint(void) {
    pt_stack_paint();
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_stack_paint_obj, board_stack_paint);

/* stack_used() -> bytes below the stack pointer that were touched since stack_paint(). */
static mp_obj_t board_stack_used(void) {
    return MP_OBJ_NEW_SMALL_INT(pt_stack_used());
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_stack_used_obj, board_stack_used);

/* stack_untouched() -> bytes at the end of the stack that were not touched since stack_paint(). */
static mp_obj_t board_stack_untouched(void) {
    return MP_OBJ_NEW_SMALL_INT(pt_stack_untouched());
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_stack_untouched_obj, board_stack_untouched);

/* write_file(path, buffer): write a file of the host. OSError(EIO). */
static mp_obj_t board_write_file(mp_obj_t path_in, mp_obj_t buffer_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    if (!pt_write_file(mp_obj_str_get_str(path_in), buffer.buf, buffer.len)) {
        mp_raise_OSError(MP_EIO);
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(board_write_file_obj, board_write_file);

/* exit(status): end the run at once. */
static mp_obj_t board_exit(mp_obj_t status_in) {
    pt_exit(mp_obj_get_int(status_in));
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_exit_obj, board_exit);

/* fault(kind): cause a real fault, to test its report: "unaligned", "address", "null",
 * "undefined", "stack". ValueError for another kind. */
static mp_obj_t board_fault(mp_obj_t kind_in) {
    if (!pt_fault_provoke(mp_obj_str_get_str(kind_in))) {
        mp_raise_ValueError(MP_ERROR_TEXT("unknown kind of fault"));
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_fault_obj, board_fault);

#if !PT_REPL

/* interrupt_after(ticks): KeyboardInterrupt after these ticks of the processor's clock, as
 * ctrl-C raises it; 0 cancels it. ValueError for more than 24 bits. Allocates nothing. */
static mp_obj_t board_interrupt_after(mp_obj_t ticks_in) {
    mp_int_t ticks = mp_obj_get_int(ticks_in);
    if (ticks < 0 || ticks > (mp_int_t)PT_INTERRUPT_MAX) {
        mp_raise_ValueError(MP_ERROR_TEXT("ticks"));
    }
    pt_interrupt_after((uint32_t)ticks);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_interrupt_after_obj, board_interrupt_after);

#endif

/* cmdline() -> str, the command line the host gave. OSError(EIO) if there is none. */
static mp_obj_t board_cmdline(void) {
    char line[COMMAND_LINE_SIZE];
    if (!pt_command_line(line, sizeof(line))) {
        mp_raise_OSError(MP_EIO);
    }
    return mp_obj_new_str(line, strlen(line));
}
static MP_DEFINE_CONST_FUN_OBJ_0(board_cmdline_obj, board_cmdline);

/* run_mpy(buffer): run a compiled .mpy as module __main__. ValueError if it is not one. */
static mp_obj_t board_run_mpy(mp_obj_t buffer_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    mp_module_context_t *context = m_new_obj(mp_module_context_t);
    context->module.base.type = &mp_type_module;
    context->module.globals = mp_globals_get();
    mp_compiled_module_t compiled = {.context = context};
    mp_raw_code_load_mem(buffer.buf, buffer.len, &compiled);
    mp_call_function_0(mp_make_function_from_proto_fun(compiled.rc, context, MP_OBJ_NULL));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(board_run_mpy_obj, board_run_mpy);

static const mp_rom_map_elem_t board_globals_table[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR__board)},
    {MP_ROM_QSTR(MP_QSTR_job), MP_ROM_PTR(&board_job_obj)},
    {MP_ROM_QSTR(MP_QSTR_memories), MP_ROM_PTR(&board_memories_obj)},
    {MP_ROM_QSTR(MP_QSTR_memory), MP_ROM_PTR(&board_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_place), MP_ROM_PTR(&board_place_obj)},
    {MP_ROM_QSTR(MP_QSTR_address_zero), MP_ROM_PTR(&board_address_zero_obj)},
    {MP_ROM_QSTR(MP_QSTR_count_start), MP_ROM_PTR(&board_count_start_obj)},
    {MP_ROM_QSTR(MP_QSTR_count_stop), MP_ROM_PTR(&board_count_stop_obj)},
    {MP_ROM_QSTR(MP_QSTR_count_overhead), MP_ROM_PTR(&board_count_overhead_obj)},
    {MP_ROM_QSTR(MP_QSTR_stack_paint), MP_ROM_PTR(&board_stack_paint_obj)},
    {MP_ROM_QSTR(MP_QSTR_stack_used), MP_ROM_PTR(&board_stack_used_obj)},
    {MP_ROM_QSTR(MP_QSTR_stack_untouched), MP_ROM_PTR(&board_stack_untouched_obj)},
    {MP_ROM_QSTR(MP_QSTR_write_file), MP_ROM_PTR(&board_write_file_obj)},
    {MP_ROM_QSTR(MP_QSTR_exit), MP_ROM_PTR(&board_exit_obj)},
    {MP_ROM_QSTR(MP_QSTR_fault), MP_ROM_PTR(&board_fault_obj)},
#if !PT_REPL
    {MP_ROM_QSTR(MP_QSTR_interrupt_after), MP_ROM_PTR(&board_interrupt_after_obj)},
#endif
    {MP_ROM_QSTR(MP_QSTR_cmdline), MP_ROM_PTR(&board_cmdline_obj)},
    {MP_ROM_QSTR(MP_QSTR_run_mpy), MP_ROM_PTR(&board_run_mpy_obj)},
};
static MP_DEFINE_CONST_DICT(board_globals, board_globals_table);

const mp_obj_module_t board_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t *)&board_globals,
};
MP_REGISTER_MODULE(MP_QSTR__board, board_module);
