# Flags of all code that runs on a board, after BOARD_CFLAGS. Debug information names sources as they
# are below the repository, wherever that is.
PT_CFLAGS = -std=gnu99 -g -Wall -Werror -Wpointer-arith -Wdouble-promotion -Wfloat-conversion \
	-ffunction-sections -fdata-sections \
	-fno-asynchronous-unwind-tables -mno-unaligned-access -masm-syntax-unified -ffp-contract=off \
	-ffile-prefix-map=$(ROOT)=.
PT_LDFLAGS = -nostdlib -T $(BUILD)/board.ld -Wl,--gc-sections -Wl,-Map=$(@:.elf=.map)
