/* MicroPython's line editor, which also takes the bytes of UTF-8 at the prompt. */

#include "py/mphal.h"

static int next_character(void);

#define mp_hal_stdin_rx_chr next_character
#include "shared/readline/readline.c"
#undef mp_hal_stdin_rx_chr

/* Puts one byte into the line; at the last one of a character that is seen. */
static void insert(int c) {
    static size_t start, left; /* of the character: where it begins, bytes to come */
    if (c >= 0xC0) {
        start = rl.cursor_pos;
        left = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    } else if (left > 0) {
        left--;
    }
    vstr_ins_byte(rl.line, rl.cursor_pos, (byte)c);
    rl.cursor_pos++;
    if (left == 0) {
        mp_hal_stdout_tx_strn(rl.line->buf + start, rl.line->len - start);
        if (rl.cursor_pos < rl.line->len) {
            mp_hal_move_cursor_back(rl.line->len - rl.cursor_pos);
        }
    }
}

/* The next one that the editor itself knows. */
static int next_character(void) {
    for (;;) {
        int c = mp_hal_stdin_rx_chr();
        if (c < 128) {
            return c;
        }
        insert(c);
    }
}
