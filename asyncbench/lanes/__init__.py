"""Two other ways to ask: in batches of a provider, and as a load of calls at drawn times."""

PUBLIC = (
    "batches.context",
    "batches.harvest",
    "batches.lane",
    "batches.ledger",
    "batches.packing",
    "batches.polling",
    "batches.spending",
    "batches.status",
    "batches.switching",
    "load.earlier_steps",
    "load.measuring",
    "load.open_lane",
    "load.searching",
    "load.steps",
)
