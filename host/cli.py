"""The command line: picotorch run | inspect | size | parity | profile | export | firmware | natmod |
repl | boards | examples, and those of connected.commands: deploy | flash | selftest."""

import functools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
from picotorch import PARTS, Error
from picotorch.errors import ACCESS_FAILED, INTERNAL, MEMORY_ALLOCATION_FAILED, NOT_FOUND, fail
from picotorch.memory import LIMIT

from . import (
    bundled,
    c_project,
    compiling,
    etdump,
    examples,
    exporting,
    inspecting,
    kernels_in_flash,
    listing_boards,
    native_module,
    options,
    parity,
    pico,
    ports,
    profiling,
    prompt,
    rp2,
    running,
    running_bundled,
    selective,
    show,
    sizing,
    torchscript,
    torchscript_process,
)
from . import memory_map as memory_map_module
from .boards import load_board
from .connected import commands
from .frozen_models import parse as parse_frozen
from .inputs import random_inputs, read_inputs
from .npz import read_npz, write_npz
from .operators import needed_operators
from .report import result_entry, show_result
from .run import POOL_SIZE, TEMP_SIZE, Request
from .twin import open_program

INTERRUPTED = 130

_HINTS = {"method pool": "--pool-size", "planned buffer": "--planned-size",
          "temp memory": "--temp-size"}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="picotorch")
def cli():
    """Run ExecuTorch programs (.pte) as a microcontroller would, on the host and on emulated boards.

    \b
    Example:
      picotorch run model.pte --board mps2-an386
    """


@cli.command()
@options.model
@click.option("--method", default=None, metavar="M", help="The method of the program.  [default: "
              "forward, of a .bpte all that have test sets]")
@click.option("--board", type=click.Choice(running.board_names()), default=running.HOST,
              show_default=True, metavar="BOARD", help="host: the twin; else an emulated board.")
@options.port
@options.firmware
@options.bare
@options.data
@options.backend
@options.inputs
@options.quantize
@click.option("--outputs", type=click.Path(path_type=Path), metavar="OUT.NPZ",
              help="Write the outputs: out0, out1 ...")
@options.size("--pool-size", POOL_SIZE, "Bytes of the method pool.")
@click.option("--planned-size", "planned", type=options.PlannedSize(), multiple=True,
              help="N bytes for planned buffer I, counted from 0; exactly what the method needs "
                   "by default.")
@options.size("--temp-size", TEMP_SIZE, "Bytes of the kernels' scratch.")
@options.prepare
@click.option("--rtol", type=options.Bounded(min=0), default=running_bundled.RTOL, show_default=True,
              metavar="R", help="Of a .bpte: floats may differ by R * |output| ...")
@click.option("--atol", type=options.Bounded(min=0), default=running_bundled.ATOL, show_default=True,
              metavar="A", help="... and A.")
@options.as_json
def run(model, method, board, port, patience, firmware, bare, files, inputs, sizes, seed, quantize,
        outputs, pool_size, planned, temp_size, prepare, rtol, atol, as_json):
    """Load a method of MODEL, execute it once, and say what it gave and needed.

    With --port the run is on a connected board that has MicroPython and picotorch. A file of MODEL's
    name and content in its file system is used, in place if it is in ROMFS (picotorch deploy puts it
    there); else MODEL is sent. With --board besides, the instructions of this emulated board are shown,
    too: take one of the same core.

    Of a bundled program (.bpte) every test set is executed and held against its expected outputs, of
    all methods where --method names none; exit status 1 where one differs.

    \b
    Examples:
      picotorch run model.pte
      picotorch run model.pte --board mps2-an386 --inputs in.npz --outputs out.npz
      picotorch run model.pte --board mps2-an386 --bare
      picotorch run model.pte --port auto
      picotorch run model.pte --data weights.ptd
      picotorch run model.pte --backend my_module:MyBackend
      picotorch run model.pte --planned-size 0=1024 --json
      picotorch run model.bpte --board mps2-an386 --rtol 1e-3
    """
    _check_options(firmware, bare, board, quantize, inputs, sizes)
    board, beside = (board, None) if port is None else (running.PORT + port, board)
    memories = {"pool_size": pool_size, "planned_sizes": dict(planned), "temp_size": temp_size,
                "prepare": prepare, "firmware": firmware, "bare": bare, "patience": patience}
    if inputs is None and running.is_bundled(model):
        if outputs is not None:
            raise click.UsageError("--outputs of a bundled program: give --inputs, too")
        if sizes:
            raise click.UsageError("--sizes is for random inputs: a bundled program has its own")
        memories["data"] = _read_files(files)
        _run_bundled(model, method, board, memories, rtol, atol, as_json)
    method = method or "forward"
    try:
        data = running.read_program(model)
        values = _request_inputs(data, method, inputs, seed, quantize, dict(sizes))
        request = Request(data, str(model), values, method, **memories, data=_read_files(files))
        if inputs is None and not as_json:
            click.echo(f"The inputs are random (seed {seed}); give your own with --inputs.")
        result = running.run_beside(request, board, beside)
        if result.code == 0 and outputs is not None:
            write_npz(outputs, result.outputs)
    except Error as error:
        result = running.failed(str(model), method, board, error)
    if as_json:
        show.as_json({**result_entry(result), "seed": seed if inputs is None else None})
    else:
        show_result(result)
    running.check_result(result)


def _check_options(firmware, bare, board, quantize, inputs, sizes):
    if firmware is not None and board == running.HOST:
        raise click.UsageError("--firmware is of a board: give --board, too")
    if bare and board == running.HOST:
        raise click.UsageError("--bare is of a board: give --board, too")
    if quantize and inputs is None:
        raise click.UsageError("--quantize is for --inputs")
    if sizes and inputs is not None:
        raise click.UsageError("--sizes is for random inputs: those of --inputs have theirs")


def _read_files(files):
    return [running.read_file(file) for file in files]


def _run_bundled(model, method, board, memories, rtol, atol, as_json):
    """Runs the test sets, and exits."""
    bundle = bundled.read(running.read_file(model))
    request = Request(bytes(bundle.program), str(model), [], **memories)
    tested = running_bundled.run(bundle, method, board, rtol, atol, request)
    if as_json:
        show.as_json(running_bundled.entry(str(model), board, rtol, atol, tested))
    else:
        running_bundled.show_text(tested)
    for method in tested:
        running.check_result(method.result)
    sys.exit(0 if all(method.passed for method in tested) else 1)


def _request_inputs(data, method, path, seed, quantize, sizes):
    """The inputs from a file, or random ones."""
    meta = open_program(data).method_meta(method)
    return random_inputs(meta, seed, sizes) if path is None else read_inputs(path, meta, quantize)


@cli.command()
@options.model
@click.option("--method", default=None, metavar="M", help="Only this method.")
@options.as_json
def inspect(model, method, as_json):
    """Show what MODEL holds: methods, signature, operators, memory plan, instructions.

    \b
    Example:
      picotorch inspect model.pte
    """
    entry = inspecting.inspect(running.read_file(model), str(model), method)
    show.entry(entry, as_json, inspecting.show_text)


@cli.command()
@options.model
@options.method
@options.boards(running.board_names()[1:], "Only this board; may be given more than once.")
@click.option("--port", metavar="P", help=options.PORT_HELP)
@options.data
@options.backend
@options.prepare
@options.as_json
def size(model, method, boards, port, files, prepare, as_json):
    """Say what a method of MODEL needs, to the byte, and which boards have it.

    With --port the heap and the storage of a connected board are held against it, of the others only
    those that --board names.

    \b
    Examples:
      picotorch size model.pte --board mps2-an386
      picotorch size model.pte --port auto
    """
    boards = boards or ([] if port else running.board_names()[1:])
    entry = sizing.measure(running.read_program(model), str(model), method, boards, prepare,
                           _read_files(files))
    if port is not None:
        entry["connected"] = commands.room_of(entry, port)
    show.entry(entry, as_json, sizing.show_text)
    if port is not None and not as_json:
        commands.show_room(entry["connected"])


@cli.command("parity")
@options.model
@options.method
@options.boards(running.board_names()[1:], f"May be given more than once; {running.DEFAULT_BOARD} "
         "by default, without --port.")
@options.port
@options.firmware
@options.bare
@options.data
@options.inputs
@options.quantize
@options.prepare
@options.as_json
def parity_command(model, method, boards, port, patience, firmware, bare, files, inputs, sizes, seed,
                   quantize, prepare, as_json):
    """Compare a board with the twin, to the bit: outputs and the bytes of the method pool.

    Without --inputs, inputs.npz beside MODEL is taken if it is there, and the outputs are compared
    with expected.npz beside MODEL too. Exit status 1 where something differs.

    \b
    Example:
      picotorch parity model.pte --board mps2-an386 --board mps2-an385
      picotorch parity model.pte --port auto
    """
    boards = [*boards, *([] if port is None else [running.PORT + port])] or [running.DEFAULT_BOARD]
    _check_options(firmware, bare, boards[0], False, inputs, sizes)
    if (firmware is not None or bare) and boards[0].startswith(running.PORT):
        raise click.UsageError("--firmware and --bare are of an emulated board: give --board, too")
    if firmware is not None and len(boards) > 1:
        raise click.UsageError("--firmware is of one board: give --board once")
    data = running.read_program(model)
    request, reference = parity.make_request(data, model, method, inputs, seed, prepare, quantize,
                                             _read_files(files), dict(sizes))
    request.firmware, request.bare, request.patience = firmware, bare, patience
    entry = parity.compare(request, boards, reference)
    show.entry(entry, as_json, parity.show_text)
    sys.exit(0 if entry["agree"] else 1)


@cli.command("profile")
@options.model
@options.method
@click.option("--board", type=click.Choice(running.board_names()), default=running.HOST,
              show_default=True, metavar="BOARD", help="host: the twin; else an emulated board.")
@options.port
@options.firmware
@options.bare
@options.inputs
@options.quantize
@options.prepare
@options.data
@options.backend
@click.option("--sort", type=click.Choice(profiling.SORTED), default=profiling.SORTED[0],
              show_default=True, help="The rows as the program has them, or the largest share first.")
@click.option("--memory-map", type=click.Path(path_type=Path), metavar="OUT.SVG",
              help="Draw the planned memory over the instructions.")
@click.option("--etdump", "etdump_path", type=click.Path(path_type=Path), metavar="OUT.ETDP",
              help="Write an ETDump for the Inspector of executorch.devtools.")
@options.as_json
def profile_command(model, method, board, port, patience, firmware, bare, inputs, sizes, seed, quantize,
                    prepare, files, sort, memory_map, etdump_path, as_json):
    """Say what each instruction of MODEL takes: machine instructions on an emulated board, time on
    the twin, processor cycles or time on a connected board.

    \b
    Examples:
      picotorch profile model.pte --board mps2-an386
      picotorch profile model.pte --port auto
      picotorch profile model.pte --memory-map memory.svg
    """
    _check_options(firmware, bare, board, quantize, inputs, sizes)
    if port is not None and board != running.HOST:
        raise click.UsageError("give --board or --port: one profile is of one of them")
    board = board if port is None else running.PORT + port
    data = running.read_program(model)
    values = _request_inputs(data, method, inputs, seed, quantize, dict(sizes))
    request = Request(data, str(model), values, method, prepare=prepare, firmware=firmware,
                      bare=bare, data=_read_files(files), patience=patience)
    meta = open_program(data).method_meta(method)
    if memory_map is not None:
        memory_map.write_text(memory_map_module.draw(meta, f"{model}, {method}"), encoding="utf-8")
    entry, executions = profiling.profile(request, board)
    if etdump_path is not None:
        etdump_path.write_bytes(etdump.to_bytes(executions))
    show.entry(entry, as_json, profiling.show_text, sort)


@cli.command("compile")
@options.model
@click.option("--board", type=click.Choice(running.board_names()[1:]), metavar="BOARD",
              help="Prepare weights for the core of this board.")
@click.option("--core", type=click.Choice(compiling.cores()), metavar="CORE",
              help="The same for a core: cortex-m0plus, cortex-m4, ...  [default: cortex-m4]")
@options.data
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.PTM",
              help="The image to write.  [default: MODEL with .ptm]")
@click.option("--c", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Write a C project with the image instead: sources, Makefile, CMakeLists.txt.")
@click.option("--no-prepare", is_flag=True,
              help="Store no prepared weights: less flash, a slower run.")
@click.option("--int8-io", is_flag=True,
              help="Take off the operators that quantize inputs and dequantize outputs.")
@click.option("--keep-plan", is_flag=True, help="Keep the program's memory plan.")
@options.as_json
def compile_command(model, board, core, files, output, folder, no_prepare, int8_io, keep_plan,
                    as_json):
    """Compile MODEL ahead of time: an image, which runs from flash without a loader.

    An image has what loading the program would write to the pool, the constants, and the weights in
    the form that the kernels of the core like best. All but what changes stays in flash: of most models
    the pool is empty. Memory is planned again where ExecuTorch's exporter is installed. It runs
    wherever a .pte file runs: picotorch run, parity, size and deploy take it.

    \b
    Examples:
      picotorch compile model.pte --board mps2-an386
      picotorch compile model.pte --core cortex-m0plus -o model.ptm
      picotorch run model.ptm --board mps2-an386
      picotorch compile model.pte --core cortex-m4 --c project
    """
    if folder and output:
        raise click.UsageError("Give --output or --c, not both.")
    if board and core:
        raise click.UsageError("Give --board or --core, not both.")
    if int8_io and keep_plan:
        raise click.UsageError("--int8-io changes the memory plan: leave out --keep-plan.")
    output = output or compiling.default_output(Path(model))
    if output.resolve() == Path(model).resolve():
        raise click.UsageError(f"--output {output} is the model itself.")
    core = compiling.core_of(board) if board else core or "cortex-m4"
    data = running.read_program(model)
    if not folder:
        selective.check_output(output)
    image, entry = compiling.compile_file(data, str(model), _read_files(files), core,
                                          not no_prepare, int8_io, keep_plan)
    if folder:
        c_project.write(image.data, folder, note=f"{Path(model).name}, for {core}")
    else:
        output.write_bytes(image.data)
    show.entry({"output": str(folder or output), **entry}, as_json, compiling.show_text)


@cli.command()
@click.option("--models", "first", multiple=True, type=click.Path(path_type=Path),
              metavar="MODEL...", help="Link only the kernels that these .pte files need.")
@click.argument("models", nargs=-1, type=click.Path(path_type=Path), metavar="")
@click.option("--board", type=click.Choice([*running.board_names()[1:], *rp2.BOARDS, *ports.boards()]),
              default=running.DEFAULT_BOARD, show_default=True, metavar="BOARD",
              help="For this board; also one of MicroPython's own, as RPI_PICO or PYBV11, with all "
              "kernels where no models are given.")
@click.option("--frozen-model", "frozen", multiple=True, metavar="[NAME=]MODEL",
              help="Put this file into the flash of MicroPython's own board: "
              "picotorch_models.NAME, its bytes where they lie.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FW.ELF",
              help="Where to write it, with its map; build/firmware/BOARD-selected.elf by default, "
              "with --bare BOARD-bare-selected.elf; of a Pico a UF2 file, BOARD.uf2.")
@click.option("--bare", is_flag=True, help="Without MicroPython.")
@click.option("--with", "parts", multiple=True, type=click.Choice([name for name, _ in PARTS]),
              help="A part of the runtime that the firmware has besides those that the models need: "
              "what Python code of your own on the board imports.")
@click.option("--operators", type=click.Path(path_type=Path), metavar="OPERATORS.DEF",
              help="Only write the list of operators, for a build of one's own (examples/c).")
@options.as_json
def firmware(first, models, board, frozen, output, bare, parts, operators, as_json):
    """Build the firmware of a board with only the kernels that some models need.

    The operators keep their numbers, so outputs, memory needs and the bytes of a loaded method are
    those of the firmware with all kernels (make firmware). Run it with --firmware. Of the runtime it
    has delegates and external data only where a model needs them.

    For Raspberry Pi Pico and Pico 2 it is MicroPython's own port with picotorch inside, as a UF2 file,
    and the models are in it, used in place in flash as /rom/NAME. Without --models it has all kernels.

    \b
    Example:
      picotorch firmware --models a.pte b.pte --board mps2-an386 --output fw.elf
      picotorch firmware --board RPI_PICO --models a.pte
      picotorch run a.pte --board mps2-an386 --firmware fw.elf
      picotorch firmware --bare --models a.pte --board mps2-an386
      picotorch firmware --models a.pte --operators operators.def
      picotorch firmware --board PYBV11 --models a.pte --frozen-model a.pte
    """
    models = [*first, *models]
    is_port, is_rp2 = board in ports.boards(), board in rp2.BOARDS
    if frozen and not is_port:
        raise click.UsageError(f"--frozen-model is not for {board}: " + (
            "models of --models are in its flash, as /rom/NAME" if is_rp2 else
            "it takes a model with each run"))
    if not models and not is_port and not is_rp2:
        raise click.UsageError("Give --models; make firmware builds with the kernels of all operators.")
    if bare and is_rp2:
        raise click.UsageError(f"--bare: {board} has a firmware of MicroPython's own port only")
    if is_port:
        ports.check(board, bare, output)
    suffix = ".uf2" if is_rp2 else ".elf"
    if output is not None and output.suffix != suffix:
        raise click.UsageError(f"--output {output}: the name has to end in {suffix}")
    files = {str(model): running.read_program(model) for model in models}
    programs = {name: open_program(file) for name, file in files.items()}
    if operators is not None:
        operators.write_text(selective.operator_file(
            needed_operators(programs), selective.has_images(programs)))
        return
    if is_port:
        entry = ports.build(board, programs, _read_frozen(frozen), parts)
        show.entry(entry, as_json, ports.show_text)
        return
    if is_rp2:
        entry = rp2.build(board, programs, files, output or rp2.default_output(board, models), parts)
        show.entry(entry, as_json, rp2.show_text)
        return
    entry = selective.build(board, programs, output or selective.default_output(board, bare), bare,
                            parts)
    show.entry(entry, as_json, selective.show_text)


@cli.command()
@click.option("--models", "first", multiple=True, type=click.Path(path_type=Path),
              metavar="MODEL...", help="Link only the kernels that these .pte files need.")
@click.argument("models", nargs=-1, type=click.Path(path_type=Path), metavar="")
@click.option("--arch", "arches", multiple=True, type=click.Choice(list(native_module.ARCHES)),
              help="For this architecture; once for each, all by default.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/natmod/package"),
              show_default=True, metavar="FOLDER", help="Where to write the files for the board.")
@click.option("--flash", "board", type=click.Choice(list(kernels_in_flash.BOARDS)),
              help="Have the kernels in the flash that this board's stock firmware leaves free.")
@click.option("--frozen-model", "frozen", multiple=True, metavar="[NAME=]MODEL",
              help="With --flash: have this model there, too, as picotorch_models.NAME, to be used in "
              "place.")
@click.option("--firmware", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="FW.UF2", help="With --flash: look whether this firmware leaves the flash free.")
@options.as_json
def natmod(first, models, arches, output, board, frozen, firmware, as_json):
    """Build the native module, with which stock MicroPython runs models: nothing is flashed.

    Without models it has all kernels. FOLDER gets ARCH/_picotorch.mpy, ARCH/package.json for mip, the
    runtime as bytecode in picotorch/, and install.py, which picks the architecture on the board.

    MicroPython copies the module into its heap, but for the texts of errors: an error that is shown
    reads them from the file. With --flash the kernels, and models, are in flash: kernels.uf2 and
    models.uf2, which the board's boot loader takes; firmware and files stay.

    \b
    Example:
      picotorch natmod --models a.pte --arch armv6m
      picotorch natmod --output natmod
      picotorch natmod --flash RPI_PICO --models a.pte --frozen-model a.pte
    """
    programs = {str(model): open_program(running.read_program(model)) for model in [*first, *models]}
    if not board and (frozen or firmware):
        raise click.UsageError("--frozen-model and --firmware go with --flash")
    if board:
        if arches:
            raise click.UsageError("--arch does not go with --flash")
        entry = kernels_in_flash.build(board, programs, _read_frozen(frozen), firmware, output)
        show.entry(entry, as_json, kernels_in_flash.show_text)
        return
    entry = native_module.build(arches or tuple(native_module.ARCHES), programs, output)
    show.entry(entry, as_json, native_module.show_text)


def _read_frozen(texts):
    """Name and bytes of each --frozen-model."""
    try:
        named = [parse_frozen(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(f"--frozen-model: {error}") from None
    return [(name, running.read_program(path)) for name, path in named]


@cli.command()
@options.model
@click.option("--int8-io", is_flag=True,
              help="Take off the operators that quantize inputs and dequantize outputs.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.PTE",
              help="The program to write.")
@click.option("--shape", "shapes", multiple=True, type=options.Shape(),
              help="Of TorchScript: sizes of an input, and its dtype (float32 by default); once for "
              "each input.")
@click.option("--inputs", type=click.Path(path_type=Path), metavar="IN.NPZ",
              help="Of TorchScript: example inputs, arrays in0, in1 ..., of 128 MB at most.")
@click.option("--unconfined", is_flag=True,
              help="Of TorchScript: let its code do all that you may, where nothing confines it.")
@options.as_json
def export(model, int8_io, output, shapes, inputs, unconfined, as_json):
    """Make of TorchScript a program, or of the program MODEL one that needs less memory.

    TorchScript is a file that torch.jit.save wrote, of a traced or scripted module; the program is for
    inputs of the shapes given. Of a program (.pte) values that no instruction names are dropped, and
    the planned memory is planned anew. With --int8-io the inputs and outputs of a quantized program are
    the integers themselves; their scale and zero point can be read with
    method_meta.input_quantization(i) and output_quantization(i). Needs the packages torch and
    executorch (pip install -e '.[export]').

    TorchScript is code, and torch runs it, in a process that can change none of your files (Linux 5.13
    and newer, by Landlock). It can read them. Elsewhere nothing confines it: export only what you
    trust, with --unconfined.

    \b
    Examples:
      picotorch export model.pt --shape 1,3,224,224 -o model.pte
      picotorch export model.pte -o smaller.pte
      picotorch export model.pte --int8-io -o model_int8.pte
    """
    data = running.read_file(model)
    if torchscript.is_meant(data, model):
        if int8_io:
            raise click.UsageError("--int8-io is for a quantized program (.pte)")
        if shapes and inputs is not None:
            raise click.UsageError("give --shape or --inputs, not both")
        tell = None if as_json else functools.partial(click.echo, nl=False)
        given = list(shapes) if inputs is None else read_npz(inputs, [LIMIT])
        written, entry = torchscript_process.export_file(data, str(model), given, tell, unconfined)
    else:
        if shapes or inputs is not None or unconfined:
            raise click.UsageError("--shape, --inputs and --unconfined are for TorchScript")
        written, entry = exporting.export_file(bundled.program_of(data), str(model), int8_io)
    output.write_bytes(written)
    entry["output"] = str(output)
    text = torchscript.show_text if torchscript.is_meant(data, model) else exporting.show_text
    show.entry(entry, as_json, text)


@cli.command()
@click.option("--board", type=click.Choice([*running.board_names()[1:], pico.BOARD]),
              default=running.DEFAULT_BOARD, show_default=True, metavar="BOARD",
              help="This emulated board.")
@click.option("--listen", type=options.Listen(), help="Have the prompt on a port instead: pty, or "
              "tcp:PORT on this computer, where mpremote and others connect.")
@click.option("--romfs", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="IMAGE", help="Have this ROMFS image at /rom, as mpremote romfs build writes it.")
@click.option("--firmware", multiple=True, type=click.Path(path_type=Path), metavar="FW.UF2",
              help="Of RPI_PICO, with --listen tcp:PORT: what picotorch firmware wrote; by default "
              "with the kernels of all operators (make rp2). Once for each file.")
def repl(board, listen, romfs, firmware):
    """Give MicroPython's prompt on an emulated board, with files and picotorch.

    ctrl-D is a soft reset, which keeps the files; `import _board; _board.exit(0)` ends the board, so do
    in this terminal ctrl-A x and the end of an input that is a file.

    \b
    Examples:
      picotorch repl
      picotorch repl --board netduinoplus2 --listen tcp:4444
      mpremote connect socket://localhost:4444 cp model.pte : exec "import picotorch"
      picotorch repl --board RPI_PICO --listen tcp:4444
    """
    if board == pico.BOARD:
        if not listen or listen == "pty" or romfs:
            raise click.UsageError(f"{board} takes --listen tcp:PORT; its ROMFS is in its firmware")
        command = pico.command(*(firmware or [rp2.default_output(board, [])]),
                               port=int(listen.removeprefix("tcp:")))
        sys.exit(subprocess.run(command).returncode)
    if firmware:
        raise click.UsageError(f"--firmware is of {pico.BOARD}")
    with running.named_errors(board, f"make repl BOARD={board} in picotorch's repository"):
        start = load_board(board)
        if not start.full_firmware:
            raise click.UsageError(f"{board} has no room for a prompt")
        sys.exit(prompt.serve(start, listen, romfs) if listen else prompt.run(start, romfs))


@cli.command("boards")
@click.option("--connected", is_flag=True,
              help="Those that are attached: ports and boot loaders' drives, and which way fits.")
@options.as_json
def boards_command(connected, as_json):
    """List the boards.

    \b
    Examples:
      picotorch boards
      picotorch boards --connected
    """
    if connected:
        commands.list_attached(as_json)
        return
    entries = listing_boards.boards()
    show.entry(entries, as_json, listing_boards.show_text)


@cli.command("examples")
@click.argument("name", required=False, metavar="[NAME")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[FOLDER]]")
@options.as_json
def examples_command(name, folder, as_json):
    """List the examples, or copy the one called NAME into a new folder, by default of its name.

    \b
    Examples:
      picotorch examples
      picotorch examples gesture my_gesture
    """
    if name is None:
        show.entry(examples.examples(), as_json, examples.show_list)
    else:
        show.entry(examples.copy(name, folder or Path(name)), as_json, examples.show_copied)


for command in (commands.deploy, commands.flash, commands.selftest):
    cli.add_command(command)


# ---- errors


def _complain(error):
    """The error in one line on stderr."""
    text = show.printable(" ".join(str(error).split()))
    for subject, option in _HINTS.items():
        if error.code == MEMORY_ALLOCATION_FAILED and error.message.startswith(subject):
            text += f" ({option})"
    if error.code == NOT_FOUND and "no method of this name" in error.message:
        text += " (--method)"
    click.echo(text, err=True)
    return 1


def _drop_output():
    """Sends what stdout still holds nowhere: Python would fail on it once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _call(arguments):
    try:
        return cli.main(arguments, prog_name="picotorch", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 1
    except Error as error:
        return _complain(error)
    except OSError as error:
        _drop_output()
        return _complain(fail(ACCESS_FAILED, error.strerror or str(error), error.filename))
    except MemoryError:
        return _complain(fail(MEMORY_ALLOCATION_FAILED, "the host has not as much memory"))
    except Exception as error:
        return _complain(fail(INTERNAL, f"{type(error).__name__}: {error}",
                              remedy="this is a fault of picotorch: please report it"))


def main(arguments: list[str] | None = None) -> None:
    """The console script: exits with 0, 1 for an error, 2 for wrong usage. SIGTERM is as ctrl-C, after
    which no emulator and no compiler is left running."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(_call(arguments) or 0)


