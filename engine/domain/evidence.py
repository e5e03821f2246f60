"""What a batch of statuses proves: the furthest statement about each try.

Statuses arrive repeated and in any order. Folding first makes the order inside a batch meaningless; the rank,
compared again where the row is moved, does the same between batches.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State, rank

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a batch says about one try.

    Known by its token, or by `wamid` alone until somebody looks it up. `rank` is of the furthest positive status,
    0 when there is none. `failed`, `code` and `raw` tell of a refusal, which is kept even when a delivery
    outranks it. Times are Unix seconds by Meta's clock.
    """

    token: Token | None
    wamid: str | None
    number: str | None
    rank: int
    failed: bool
    code: int | None
    raw: str | None
    at: float | None
    sent_at: float | None = None
    delivered_at: float | None = None

    @property
    def key(self) -> Token | str | None:
        """What makes two statements speak of the same try; None when nothing names it."""
        return self.token or self.wamid

    def joined(self, other: "Evidence") -> "Evidence":
        """Both statements about one try as one: the higher rank, the first refusal."""
        further, lesser = (self, other) if self.rank >= other.rank else (other, self)
        refusal = self if self.failed else other
        return replace(
            further,
            wamid=further.wamid or lesser.wamid,
            number=further.number or lesser.number,
            at=further.at or lesser.at,
            failed=refusal.failed,
            code=refusal.code,
            raw=refusal.raw,
            sent_at=further.sent_at or lesser.sent_at,
            delivered_at=further.delivered_at or lesser.delivered_at,
        )


def fold(receipts: Iterable[Receipt]) -> list[Evidence]:
    """The furthest that is said about each try, in the order in which tries first appear.

    A status without a token takes the token that another status of the same message carries. What names
    no message at all is left out.
    """
    receipts = list(receipts)
    tokens = {receipt.wamid: receipt.token for receipt in receipts if receipt.wamid and receipt.token}
    return furthest(
        _evidence(receipt, receipt.token or tokens.get(receipt.wamid or "")) for receipt in receipts
    )


def furthest(statements: Iterable[Evidence]) -> list[Evidence]:
    """One statement for each try. A batch must name a row's try once: an UPDATE would pick an arbitrary one."""
    kept: dict[Token | str, Evidence] = {}
    for statement in statements:
        key = statement.key
        if key is not None:
            kept[key] = kept[key].joined(statement) if key in kept else statement
    return list(kept.values())


def _evidence(receipt: Receipt, token: Token | None) -> Evidence:
    failed = receipt.state is State.FAILED
    return Evidence(
        token=token,
        wamid=receipt.wamid,
        number=receipt.number,
        rank=0 if failed else rank(receipt.state),
        failed=failed,
        code=receipt.code,
        raw=_encode({"code": receipt.code, "title": receipt.title, "details": receipt.details}).decode()
        if failed
        else None,
        at=receipt.at,
        sent_at=receipt.at if receipt.state is State.SENT else None,
        delivered_at=receipt.at if receipt.state is State.DELIVERED else None,
    )
