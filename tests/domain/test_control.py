"""Control phones: what may be one, and how long one has waited for a message that has left."""

import pytest

from engine.domain.content import Content
from engine.domain.control import Control, ControlRefused, ControlSend, by_phone, checked

ANA, BOB = "+5511988880001", "+5511988880002"
NAMED = Content.of_columns(["name"])


def test_phones_are_kept_in_one_spelling_once() -> None:
    found = checked(Control(("+55 (11) 98888-0001", ANA, BOB), {"name": "Ana"}), NAMED)
    assert found.phones == (ANA, BOB)


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (Control(("11988880001",), {"name": "Ana"}), "has no +"),
        (Control(("+551",), {"name": "Ana"}), "a control phone"),
        (Control((ANA,)), "give --control-values name=…"),
        (Control((ANA,), {"name": "Ana", "day": "12"}), "'day', which the template does not take"),
        (Control((ANA,), {"name": "two\nlines"}), "the control value of name holds a line break"),
        (Control((ANA,), {"name": "Ana"}, every_s=10.0), "--control-every is 60s or more"),
        (Control(tuple(f"+55119888800{n:02d}" for n in range(21)), {"name": "Ana"}), "21 control phones"),
    ],
)
def test_what_could_not_be_sent_as_it_is_is_refused_in_one_sentence(control: Control, why: str) -> None:
    with pytest.raises(ControlRefused, match=why.replace("+", r"\+")):
        checked(control, NAMED)


@pytest.mark.parametrize(
    ("sends", "waiting"),
    [
        ([("sent", 400.0)], 400.0),
        ([("failed", 400.0)], 400.0),
        ([("delivered", 400.0)], None),
        ([("pending", None)], None),
        ([("suppressed", None)], None),
        ([("sent", 900.0), ("sent", 300.0)], 900.0),
        ([("sent", 900.0), ("read", 300.0)], None),
        ([("delivered", 900.0), ("sent", 300.0)], 300.0),
        ([("sent", 900.0), ("delivered", 600.0), ("unknown", 300.0)], 300.0),
    ],
)
def test_a_phone_waits_since_the_oldest_message_that_nothing_later_made_up_for(
    sends: list[tuple[str, float | None]], waiting: float | None
) -> None:
    [phone] = by_phone(ControlSend(ANA, n, state, age) for n, (state, age) in enumerate(sends, start=1))
    assert phone.waiting_s == waiting
    assert phone.last_round == len(sends)


def test_a_phone_that_was_sent_nothing_yet_stands_in_the_list() -> None:
    [phone] = by_phone([], [ANA])
    assert (phone.sent, phone.last_state, phone.waiting_s) == (0, None, None)
