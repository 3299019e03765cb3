"""Write outside an allocated memory, or to address 0. Section: write, with none, beside or null."""

write = str(sections["write"], "utf-8")
take("pool", 24)
if write == "beside":
    _board.memory("pool")[24] = 0
elif write == "null":
    try:
        _board.address_zero()[0] ^= 0xFF
    except TypeError:
        print("is read-only")
