"""What keeps a number from sending faster, in one word."""


def bound_by(closed: str | None, waited_for: str, ceiling: float, rate: float) -> str:
    """hold, provider, database, bucket, rows, slots or lease.

    `closed`: why nothing may leave now, if so. `waited_for`: what the pacer waited for most of late. Below the
    configured `rate` its own pace is the provider's doing: raising the rate would change nothing.
    """
    if closed is not None:
        return closed
    return "provider" if waited_for == "bucket" and ceiling < rate else waited_for
