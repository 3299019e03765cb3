# picotorch: `make run` after a fresh clone, `make help` for everything else.

BOARD ?= mps2-an386
FIXTURE ?= tests/fixtures/ds_cnn
PYTEST ?= -n auto
CONFORMANCE ?= full
MINUTES ?= 5
JOBS ?= 1
FUZZ_TARGET ?= file
CALLS ?= 200000
KIND ?= boundary

PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
SETUP = $(or $(PYTHON),$(error Python 3.11 or newer is needed; \
	Debian 12 has it: apt-get install python3))  tools/setup_picotorch.py
PICOTORCH = .venv/bin/picotorch
FULL_BOARDS = $(sort $(notdir $(patsubst %/board.toml,%,$(shell \
	grep -L '^full_firmware = false' boards/*/board.toml))))
TEST_BOARDS = $(notdir $(patsubst %/board.toml,%,$(shell grep -l '^in_make_test = true' boards/*/board.toml)))
# Generated headers are held against their source by lint.
C_FOLDERS = kernels kernels/* kernels/*/* port/module port/bare port/firmware port/natmod port/natmod/flash \
	host/_picotorch tests/benchmark tests/on_board/operators tests/hostile/fuzz examples/*
C_FILES = $(filter-out kernels/core/generated/% kernels/include/picotorch/schema.h,$(sort \
	$(wildcard $(foreach end,*.[ch] *.inc,$(addsuffix /$(end),$(C_FOLDERS))))))

# Each target sets up what it needs in one go; the set-up itself uses both cores.
.NOTPARALLEL:
.DEFAULT_GOAL := help

##@ Quick start

.PHONY: run
run: firmware ## Set up, run ds_cnn on an emulated board, compare with the twin and ExecuTorch's outputs
	@echo
	$(PICOTORCH) run $(FIXTURE)/model.pte --board $(BOARD) --inputs $(FIXTURE)/inputs.npz
	@echo
	$(PICOTORCH) parity $(FIXTURE)/model.pte --board $(BOARD)

.PHONY: test
test: python ## Set up, then run the tests on the host and on a board of each kind (PYTEST="-k conv" for some)
	@$(SETUP) bare --board $(BOARD)
	@$(SETUP) firmware $(addprefix --board ,$(TEST_BOARDS)) --variant run
	@$(SETUP) firmware --board $(BOARD) --variant repl
	.venv/bin/python tests/run.py -m "not thorough" $(PYTEST)

##@ Set-up, step by step (each target also does the steps before it)

.PHONY: packages
packages: ## Install the missing Debian packages: compilers and emulator
	@$(SETUP) packages

.PHONY: python
python: ## Create .venv with picotorch, its host extension and the tools of the tests
	@$(SETUP) python

.PHONY: micropython
micropython: ## Get the MicroPython source tree (MICROPYTHON_DIR names an existing one)
	@$(SETUP) micropython

.PHONY: firmware
firmware: ## Build the firmware of a board (BOARD=mps2-an386); MODELS="a.pte b.pte": with their kernels only
ifeq ($(MODELS),)
	@$(SETUP) firmware --board $(BOARD) --variant run
else
	@$(SETUP) python
	$(PICOTORCH) firmware --models $(MODELS) --board $(BOARD)
endif

.PHONY: bare
bare: ## Build the firmware of a board without MicroPython (BOARD=mps2-an386)
	@$(SETUP) bare --board $(BOARD)

.PHONY: natmod
natmod: ## Build the native modules for stock MicroPython (ARCH=armv6m: only one; OPTIMIZE=speed: larger); MODELS="a.pte b.pte": with their kernels only
ifeq ($(MODELS),)
	@$(SETUP) natmod $(addprefix --arch ,$(ARCH)) $(addprefix --optimize ,$(OPTIMIZE))
	@ls -l build/natmod/*/_picotorch.mpy | awk '{printf "%9d B  %s\n", $$5, $$9}'
else
	@$(SETUP) python
	$(PICOTORCH) natmod --models $(MODELS) $(addprefix --arch ,$(ARCH)) $(addprefix --optimize ,$(OPTIMIZE))
endif

.PHONY: all-firmware
all-firmware: ## Build the firmware of all boards, in all variants
	@$(SETUP) firmware

.PHONY: ports
ports: ## Get the MicroPython source tree with its own ports unix, qemu and rp2
	@$(SETUP) ports

.PHONY: riscv
riscv: ## Install compiler and emulator for the tests on RISC-V
	@$(SETUP) riscv

.PHONY: arm64
arm64: python ## Install compiler and emulator for 64-bit Arm (Debian then removes gcc-multilib), and run tests/kernels/test_arm64.py
	@$(SETUP) arm64
	.venv/bin/python -m pytest -q tests/kernels/test_arm64.py

.PHONY: recordings
recordings: ## Install the recordings of spoken words for a test
	@$(SETUP) recordings

.PHONY: rp2
rp2: ## Build the firmware of Raspberry Pi Pico and Pico 2 (MicroPython's port rp2), and get an emulator of the Pico
	@$(SETUP) python
	$(PICOTORCH) firmware --board RPI_PICO
	$(PICOTORCH) firmware --board RPI_PICO2
	PYTHONPATH=tests .venv/bin/python -m support.stock

.PHONY: operators
operators: packages ## Build the program that runs single operators on a board, without MicroPython (BOARD=mps2-an386)
	@$(MAKE) --no-print-directory -j2 -C tests/on_board/operators BOARD=$(BOARD)

##@ Run and measure

.PHONY: repl
repl: ## Open MicroPython's prompt on an emulated board (MODEL=m.pte PORT=pty|tcp:4444; ctrl-A x ends it)
	@$(SETUP) firmware --board $(BOARD) --variant repl
	$(PICOTORCH) repl --board $(BOARD) $(addprefix --model ,$(MODEL)) $(if $(PORT),--listen $(PORT))

.PHONY: parity
parity: all-firmware ## Compare one model on all boards with the twin (FIXTURE=tests/fixtures/ds_cnn)
	$(PICOTORCH) parity $(FIXTURE)/model.pte $(addprefix --board ,$(FULL_BOARDS))

.PHONY: renode
RENODE_BOARD = $(if $(filter command environment,$(firstword $(origin BOARD))),$(BOARD))
renode: python ## Run tests/boards/renode on the emulator Renode (BOARD=mps2-an386 for one; RENODE_TEST=renode-test)
	.venv/bin/python tools/renode.py $(addprefix --board ,$(RENODE_BOARD))

.PHONY: bench
bench: all-firmware ## Count the instructions of the models, compared with ExecuTorch's, as table and JSON
	.venv/bin/python tests/benchmark/bench.py
	.venv/bin/python tests/benchmark/bench_untuned.py
	.venv/bin/python tests/benchmark/bench_ptm.py

.PHONY: bench-ops
bench-ops: python ## Count the instructions of single int8 operators, compared with CMSIS-NN's, as table and JSON
	.venv/bin/python tests/benchmark/bench_ops.py

.PHONY: sweep
sweep: python ## Count the instructions of random int8 operators on all cores, and list those slow for their class
	.venv/bin/python tests/benchmark/sweep.py

.PHONY: cycles
cycles: all-firmware ## Estimate the cycles of the models on all cores, as table and JSON
	.venv/bin/python tests/benchmark/cycles.py

.PHONY: twin-speed
twin-speed: python ## Measure the time of the models on the host twin, by each kind of vectors, as table and JSON
	.venv/bin/python tests/benchmark/twin_speed.py

.PHONY: performance
performance: all-firmware ## Measure everything in docs/performance.md, and write its tables and the sizes in docs/c-projects.md
	.venv/bin/python tests/benchmark/bench.py
	.venv/bin/python tests/benchmark/bench_untuned.py
	.venv/bin/python tests/benchmark/bench_ptm.py
	.venv/bin/python tests/benchmark/bench_c_project.py
	.venv/bin/python tests/benchmark/bench_ops.py --totals
	.venv/bin/python tests/benchmark/bench_ops.py --totals --weights pool --output build/bench_ops_pool.json
	.venv/bin/python tests/benchmark/cycles.py
	.venv/bin/python tests/benchmark/bench_forms.py
	.venv/bin/python tests/benchmark/twin_speed.py
	.venv/bin/python tests/benchmark/performance.py
	.venv/bin/python tools/readme.py

.PHONY: reliability
reliability: all-firmware ## Run the tests that try to break picotorch, and write the figures of docs/reliability.md
	rm -rf build/reliability
	PICOTORCH_SWEEP=all .venv/bin/python tests/run.py $(PYTEST) -m reliability
	.venv/bin/python tools/reliability.py
	.venv/bin/python tools/readme.py

.PHONY: hostile-calls
hostile-calls: python ## Call all operators at the boundary of sizes and numbers, with sanitizers (CALLS=200000 KIND=boundary|hostile); continues at the call where the last run ended
	.venv/bin/python tests/support/run_hostile_calls.py --kind $(KIND) --calls $(CALLS)

.PHONY: ptms
ptms: all-firmware ## Run every fixture and benchmark model as a compiled method on every board (make test-all: a part of them)
	PICOTORCH_SWEEP=all .venv/bin/python -m pytest $(PYTEST) tests/core/test_ptm.py -k "board_outputs or no_pool"

.PHONY: budgets
budgets: all-firmware ## Write tests/budgets.toml: run the tests with limits of bytes and instructions, and set each limit 1 % above the result
	.venv/bin/python tests/support/budgets.py $(PYTEST)

.PHONY: size
size: all-firmware ## Print the bytes of the core, of each kernel family and of the firmware
	.venv/bin/python tools/size_report.py

# Files of which some tests are skipped where torch and executorch are not installed: all of these run,
# and of three others those that need them. make export-check has the others.
NEEDS_TORCH = tests/core/test_schema.py tests/host/test_int8_io.py tests/kernels/test_operators.py \
	$(addprefix tests/runtime/test_,drop_in.py intermediate_outputs.py module.py portable_lib.py runtime.py)
ALSO_NEED_TORCH = tests/conformance/test_releases.py tests/host/test_new_user.py tests/host/test_profile.py

# A part of make export-check that .ci/run has the time for: each kind of model, int8, state, masks, .pt2 files
QUICK_EXPORT = $(addprefix tests/host/test_,export.py export_people.py export_int8_state.py export_masks.py export_moves.py \
	export_sequences.py torchscript.py) \
	-k "people or int8 or unseen or exported_program"

.PHONY: conformance
conformance: build/conformance/installed ## Export programs and compare the twin with ExecuTorch's runtime (CONFORMANCE=quick: a part)
	build/conformance/bin/python tests/conformance/run.py $(if $(filter quick,$(CONFORMANCE)),--quick)
	@$(SETUP) firmware --board mps2-an386 --variant run
	build/conformance/bin/python -m pytest $(PYTEST) -q $(NEEDS_TORCH) -m "not thorough"
	build/conformance/bin/python -m pytest -q $(ALSO_NEED_TORCH) -k "quick_start or export or inspector or executorch_ or of_torch"
	OMP_NUM_THREADS=1 build/conformance/bin/python -m pytest $(PYTEST) -q $(QUICK_EXPORT)

.PHONY: architectures
architectures: build/conformance/architectures ## Export architectures of transformers and timm, compare the twin and a board with ExecuTorch
	@$(SETUP) firmware --board mps2-an386 --variant run
	build/conformance/bin/python tests/architectures/run.py

EXPORT_TESTS = tests/host/test_networks.py $(wildcard tests/host/test_export*.py) tests/host/test_torchscript.py

.PHONY: export-check
export-check: build/conformance/installed ## Test picotorch export with PyTorch: five networks, to int8 for three cores
	@for board in mps2-an385-m0plus mps2-an386 mps3-an547; do $(SETUP) firmware --board $$board --variant run; done
	OMP_NUM_THREADS=1 build/conformance/bin/python -m pytest $(PYTEST) $(EXPORT_TESTS)

REQUIREMENTS = tools/requirements
CONFORMANCE_PIP = build/conformance/bin/python -m pip install -q --no-deps --no-build-isolation
build/conformance/installed: pyproject.toml $(wildcard $(REQUIREMENTS)/*.txt) | python
	.venv/bin/python -m venv build/conformance
	$(CONFORMANCE_PIP) --require-hashes -r $(REQUIREMENTS)/tools.txt
	@echo "torch and executorch, which takes minutes:"
	$(CONFORMANCE_PIP) --require-hashes -r $(REQUIREMENTS)/export.txt
	$(CONFORMANCE_PIP) --require-hashes -r $(REQUIREMENTS)/torch_cpu.txt 2>/dev/null || \
		$(CONFORMANCE_PIP) --require-hashes -r $(REQUIREMENTS)/torch.txt
	$(CONFORMANCE_PIP) -e .
	@touch $@

build/conformance/architectures: $(REQUIREMENTS)/architectures.txt build/conformance/installed
	$(CONFORMANCE_PIP) --require-hashes -r $<
	@touch $@

.PHONY: fuzz
fuzz: python ## Fuzz loader and core with sanitizers (MINUTES=5, JOBS=1, FUZZ_TARGET=file, library, library32 ...)
	.venv/bin/python tools/fuzz.py --target $(FUZZ_TARGET) --minutes $(MINUTES) --jobs $(JOBS)

.PHONY: pages
pages: all-firmware ## Run the commands that pages of docs/ show, and write their output
	.venv/bin/python tools/pages.py $(shell grep -l '```console' docs/*.md)
	.venv/bin/python tests/support/operators_page.py

.PHONY: site
site: build/site-packages/installed ## Build the site of docs/ in build/site, and check its links and its search
	.venv/bin/python tools/build_site.py

build/%-packages/installed: $(REQUIREMENTS)/%.txt | python
	rm -rf $(@D)
	.venv/bin/python -m pip install -q --no-deps --target $(@D) --require-hashes -r $<
	@touch $@

.PHONY: report-pictures
report-pictures: firmware ## Write the pictures of docs/report.md (needs chromium and imagemagick)
	.venv/bin/python tools/report_pictures.py

##@ Before a commit

.PHONY: check venv style types
check: venv style ## Check style, and run the tests that need no firmware (a minute; installs nothing in the system)
	PICOTORCH_TESTS=check .venv/bin/python -m pytest -q $(PYTEST) -m "check and not board and not thorough" \
		$(shell grep -lr --include='test_*.py' 'pytest.mark.check' tests)

everything: all-firmware ports riscv rp2 recordings

.PHONY: test-all everything
test-all: everything ## Run every test: those of make test, long tests, all boards, MicroPython's ports, Pico, RISC-V
	.venv/bin/python tests/run.py $(PYTEST)

.PHONY: test-rest
test-rest: everything ## Run the tests that make test omits
	.venv/bin/python tests/run.py -m thorough $(PYTEST)

.PHONY: lint
lint: python style types ## Check the style of Python and C, and that generated files are up to date

venv:
	@$(SETUP) python --no-packages

style:
	.venv/bin/ruff check .
	.venv/bin/lint-imports
	.venv/bin/mypy
	@echo .venv/bin/clang-format --dry-run -Werror '($(words $(C_FILES)) files)'
	@.venv/bin/clang-format --dry-run -Werror $(C_FILES)
	.venv/bin/python tools/check_headers.py
	.venv/bin/python tools/generate_schema.py --check
	.venv/bin/python tools/generate_operators.py --check

types:
	.venv/bin/python tools/check_types.py

.PHONY: format
format: python ## Write the C sources in the project's style
	@.venv/bin/clang-format -i $(C_FILES)

.PHONY: reproducible
reproducible: all-firmware ## Build wheel and firmware a second time elsewhere, and compare their SHA-256
	.venv/bin/python tools/reproducible.py

.PHONY: prebuilt
prebuilt: ## Build the files that a wheel contains for users without a compiler
	@$(SETUP) firmware --board mps2-an386 --variant run
	@$(SETUP) natmod
	@$(SETUP) natmod --optimize speed
	$(PICOTORCH) natmod --flash RPI_PICO --output build/natmod/RPI_PICO
	$(PICOTORCH) firmware --board RPI_PICO
	$(PICOTORCH) firmware --board RPI_PICO2

.PHONY: wheel
wheel: prebuilt ## Build the wheel, with the firmware of mps2-an386, Pico and Pico 2 and the native modules, in dist
	.venv/bin/python tools/make_wheel.py

.PHONY: try-wheel
try-wheel: wheel ## Install the wheel with each Python from 3.11 to 3.14 that is there, and follow the quick start
	.venv/bin/python tools/try_wheel.py

.PHONY: release
release: prebuilt build/release-packages/installed ## Make the files of a release page in dist/release, and follow the quick start with its wheel
	.venv/bin/python tools/make_release.py
	.venv/bin/python tools/try_wheel.py --wheel dist/release/picotorch-*_$$(uname -m).whl

.PHONY: symbols
symbols: all-firmware ## Check that the kernels have no malloc, no foreign function, no mutable data
	.venv/bin/python tools/check_symbols.py

##@ Other

.PHONY: clean
clean: ## Remove the build results, but not .venv and the MicroPython tree
	rm -rf build/firmware build/firmware-kernels build/upstream build/natmod build/stock build/operators build/mpy-cross build/symbols build/stamps build/log \
		build/pycache build/extension build/wheel dist

.PHONY: distclean
distclean: clean ## Remove everything that the set-up made in this folder
	rm -rf build .venv .pytest_cache .ruff_cache host/*.so

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
