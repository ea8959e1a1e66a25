"""Two other ways to ask: in batches of a provider, and as a load of calls at drawn times."""

PUBLIC = (
    "batches.books",
    "batches.desk",
    "batches.harvest",
    "batches.lane",
    "batches.ledger",
    "batches.packing",
    "batches.polling",
    "batches.standing",
    "batches.switching",
    "load.measuring",
    "load.open_lane",
    "load.resuming",
    "load.searching",
    "load.steps",
)
