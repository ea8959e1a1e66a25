"""The commands: their arguments, the room that answers each, and what is printed.

In: arguments, keys of the environment or a file. Out: lines on standard output, and an exit code where it is
not 0. Other rooms are imported inside the commands: `--help` must not wait for SDKs and Arrow.
"""

from asyncbench.commands.controlling import (
    pause as pause,
    resume as resume,
    set_limits as set_limits,
)
from asyncbench.commands.keeping import (
    compact as compact,
    export_results as export_results,
    import_results as import_results,
    merge as merge,
    regrade as regrade,
)
from asyncbench.commands.loading import load as load
from asyncbench.commands.making import (
    generate as generate,
    problems as problems,
    schema as schema,
    suites as suites,
)
from asyncbench.commands.parsing import Command as Command
from asyncbench.commands.providers import doctor as doctor, models as models, simulate as simulate
from asyncbench.commands.reading import (
    compare_two as compare_two,
    reconcile as reconcile,
    report as report,
    sql as sql,
    view as view,
)
from asyncbench.commands.run_flags import RunCommand as RunCommand
from asyncbench.commands.running import (
    cancel as cancel,
    plan as plan,
    run as run,
    status as status,
)
from asyncbench.commands.starting import init as init
from asyncbench.commands.sweep_flags import SweepCommand as SweepCommand
from asyncbench.commands.terminal import harmless as harmless, withheld as withheld
