# Flags of all code that runs on a board, after BOARD_CFLAGS. Debug information names sources as they
# are below the repository, wherever that is.
PT_CFLAGS = -std=gnu99 -g -Wall -Werror -Wpointer-arith -Wdouble-promotion -Wfloat-conversion \
	-ffunction-sections -fdata-sections -fstack-usage \
	-fno-asynchronous-unwind-tables -mno-unaligned-access -masm-syntax-unified -ffp-contract=off \
	-ffile-prefix-map=$(ROOT)=.
# tools/stack_bounds.py looks at the relocations; they are no part of what is flashed.
PT_LDFLAGS = -nostdlib -T $(BUILD)/board.ld -Wl,--gc-sections -Wl,--emit-relocs -Wl,-Map=$(@:.elf=.map)
