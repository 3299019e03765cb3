# Start-up, console, counter, faults, job and semihosting of a board, which need no MicroPython: below
# this folder. BOARD_CLOCK, which a board may lack, BOARD_COUNTER, BOARD_PROTECT and BOARD_UART are board.mk's.
PT_BOARD_C = \
	$(BOARD_CLOCK:%=clock_%.c) \
	counter.c \
	counter_$(BOARD_COUNTER).c \
	fault.c \
	job.c \
	memory_copy.c \
	protect.c \
	protect_$(BOARD_PROTECT).c \
	semihosting.c \
	stack.c \
	startup.c \
	uart_$(BOARD_UART).c
