"""One run on many machines: whole lanes on workers, dollars on lease, one coordinator."""

PUBLIC = (
    "cluster_worker",
    "coordinator",
    "messages",
    "ray_actors",
)
