"""The records that flow through a sweep: Draft → Problem → Trial → Request → Reply → Grade → Result.

Each is made from the ones before it and never changed. They know nothing of Parquet or of providers.
"""

from asyncbench.errors import (
    Allowance as Allowance,
)
from asyncbench.records.events import (
    FOREIGN_EVENTS as FOREIGN_EVENTS,
    GRADER_ERROR as GRADER_ERROR,
    LEFT_SWEEP as LEFT_SWEEP,
    LOST_WITH_IT as LOST_WITH_IT,
    NO_VERSION as NO_VERSION,
    RESENT as RESENT,
    TOLD_NOTES as TOLD_NOTES,
    UNKNOWN_FINISH as UNKNOWN_FINISH,
    UNSTORED as UNSTORED,
    UNTRUE_USAGE as UNTRUE_USAGE,
    Attempt as Attempt,
    Ended as Ended,
    Event as Event,
    Grade as Grade,
    History as History,
    LaneMinute as LaneMinute,
    Reply as Reply,
    ReplyTimes as ReplyTimes,
    Result as Result,
    Sent as Sent,
    Skipped as Skipped,
    StepResult as StepResult,
    Stop as Stop,
    StopWhen as StopWhen,
    Usage as Usage,
    outcome_of as outcome_of,
)
from asyncbench.records.finish_reasons import (
    Finish as Finish,
    documented_finish as documented_finish,
    finish_of as finish_of,
    says_cut as says_cut,
    says_nothing as says_nothing,
)
from asyncbench.records.trials import (
    AUTO as AUTO,
    BATCH as BATCH,
    MOST_IN_FLIGHT as MOST_IN_FLIGHT,
    OF_CONDITIONS as OF_CONDITIONS,
    REALTIME as REALTIME,
    SDK as SDK,
    Cell as Cell,
    ClientCertificate as ClientCertificate,
    Condition as Condition,
    Draft as Draft,
    Limits as Limits,
    Message as Message,
    Model as Model,
    Outcome as Outcome,
    Price as Price,
    Problem as Problem,
    Request as Request,
    RetryPolicy as RetryPolicy,
    Timeouts as Timeouts,
    Trial as Trial,
    accepted_answers as accepted_answers,
)

PUBLIC = ("waits",)
