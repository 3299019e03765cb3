"""Run the job's script, or the runner, after boot."""

import _board
import counter
import job

counter.calibrate()
sections = job.sections(_board.job())
if "script" in sections:
    _board.run_mpy(sections["script"])
else:
    import picotorch  # noqa: F401  before runner: a small board's stack has no room for so deep an import
    import runner

    _board.exit(runner.main(sections))
