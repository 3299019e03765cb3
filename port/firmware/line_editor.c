/* MicroPython's line editor, extended by UTF-8 characters at the prompt. */

#include "py/mphal.h"

static int next_character(void);

#define mp_hal_stdin_rx_chr next_character
#include "shared/readline/readline.c"
#undef mp_hal_stdin_rx_chr

/* Inserts one byte into the line, and shows a character at its last byte. */
static void insert(int c) {
    static size_t start, left; /* the position of the character, and its missing bytes */
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

/* Returns the next character that the editor handles itself. */
static int next_character(void) {
    for (;;) {
        int c = mp_hal_stdin_rx_chr();
        if (c < 128) {
            return c;
        }
        insert(c);
    }
}
