/* MicroPython's functions of console and time, in the variant with the REPL. */

#include "py/mphal.h"

#include "board.h"
#include "py/runtime.h"
#include "py/stream.h"
#include "systick.h"
#include "uart.h"

int mp_hal_stdin_rx_chr(void) {
    return pt_uart_read();
}

uintptr_t mp_hal_stdio_poll(uintptr_t poll_flags) {
    uintptr_t ready = MP_STREAM_POLL_WR;
    if (pt_uart_can_read()) {
        ready |= MP_STREAM_POLL_RD;
    }
    return poll_flags & ready;
}

mp_uint_t mp_hal_ticks_ms(void) {
    return pt_systick_ms();
}

mp_uint_t mp_hal_ticks_us(void) {
    return (mp_uint_t)(pt_systick_ticks() * 1000000u / PT_SYSTICK_HZ);
}

/* Returns instructions, as _board.count_stop() does. */
mp_uint_t mp_hal_ticks_cpu(void) {
    return (mp_uint_t)(pt_systick_ticks() * PT_SYSTICK_INSTRUCTIONS /
                       PT_SYSTICK_INSTRUCTIONS_TICKS);
}

uint64_t mp_hal_time_ns(void) {
    return pt_systick_ms() * UINT64_C(1000000);
}

void mp_hal_delay_ms(mp_uint_t ms) {
    mp_uint_t start = mp_hal_ticks_ms();
    while (mp_hal_ticks_ms() - start < ms) {
        mp_event_wait_ms(1);
    }
}

void mp_hal_delay_us(mp_uint_t us) {
    mp_uint_t start = mp_hal_ticks_us();
    while (mp_hal_ticks_us() - start < us) {
        mp_event_handle_nowait();
    }
}
