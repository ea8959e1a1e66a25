"""What is wrong with wrong answers, one at a time, and by model and task over a results folder."""

from asyncbench.results.anatomy.alignment import Part as Part, aligned as aligned
from asyncbench.results.anatomy.carries import (
    GROUP as GROUP,
    MOST_PROBLEMS as MOST_PROBLEMS,
    CarryBin as CarryBin,
    Group as Group,
)
from asyncbench.results.anatomy.counts import (
    ErrorFindings as ErrorFindings,
    ExaminedAnswer as ExaminedAnswer,
    WrongExample as WrongExample,
    error_of as error_of,
    errors_in as errors_in,
    examined_in as examined_in,
    kinds_of as kinds_of,
    most_of_a_group as most_of_a_group,
    type_of as type_of,
)
from asyncbench.results.anatomy.error import Error as Error, anatomy as anatomy
from asyncbench.results.anatomy.kinds import (
    KINDS as KINDS,
    OF_REPLIES as OF_REPLIES,
    ORDER as ORDER,
    UNCLASSIFIED as UNCLASSIFIED,
)
from asyncbench.results.anatomy.numbers import sign_of as sign_of
