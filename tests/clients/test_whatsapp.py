"""Answers of the Cloud API, read leniently: what is definite, what is not, and never an exception."""

import json
from datetime import timedelta
from email.utils import format_datetime

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.clients.whatsapp import LONGEST_RETRY_AFTER, RAW_BYTES, WhatsApp, read_answer, retry_after
from engine.clock import now
from engine.domain.errors import Scope
from engine.domain.outcome import Accepted, Ambiguous, Answer, NotSent, Refused

URL = "https://graph.test/v25.0/"
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


def read(status: int, body: object, headers: dict[str, str] | None = None) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_answer(status, httpx.Headers(headers or {}), content)


def refusal(answer: Answer) -> Refused:
    assert isinstance(answer, Refused)
    return answer


def error(code: object, **more: object) -> dict[str, object]:
    return {"error": {"message": "(#x) no", "code": code, **more}}


def test_an_accepted_message_has_its_id() -> None:
    body = {"messaging_product": "whatsapp", "contacts": [], "messages": [{"id": "wamid.abc"}]}
    assert read(200, body) == Accepted("wamid.abc")
    assert read(202, body) == Accepted("wamid.abc")


@pytest.mark.parametrize("status", ["held_for_quality_assessment", "paused"])
def test_a_message_that_is_held_back_is_assessing(status: str) -> None:
    assert read(200, {"messages": [{"id": "w", "message_status": status}]}) == Accepted("w", assessing=True)


def test_an_accepted_message_is_not_assessing() -> None:
    assert read(200, {"messages": [{"id": "w", "message_status": "accepted"}]}) == Accepted("w")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        7,
        "ok",
        {"messages": []},
        {"messages": None},
        {"messages": [None]},
        {"messages": [{}]},
        {"messages": [{"id": ""}]},
        {"messages": [{"id": 7}]},
        {"messages": [{"id": None}]},
        {"messages": [{"id": "w" * 257}]},
        {"messages": [{"id": "w\0"}]},
        {"messages": {"id": "w"}},
        {"messages": "wamid"},
    ],
)
def test_a_success_without_an_id_is_ambiguous(body: object) -> None:
    assert isinstance(read(200, body), Ambiguous)


@pytest.mark.parametrize("status", [200, 400, 403, 429, 500, 503])
@pytest.mark.parametrize("code", [130429, "130429", " 130429 "])
def test_an_error_is_definite_at_any_status_and_its_code_may_be_quoted(status: int, code: object) -> None:
    answer = refusal(read(status, error(code)))
    assert answer.code == 130429
    assert answer.meaning.scope is Scope.NUMBER_THROUGHPUT


def test_an_error_inside_a_success_outranks_its_message() -> None:
    body = {"messages": [{"id": "w"}], **error(131026)}
    assert refusal(read(200, body)).code == 131026


@pytest.mark.parametrize("error_data", [None, "text", 7, [], {}, {"details": None}, {"details": ["x"]}])
def test_error_data_may_be_anything(error_data: object) -> None:
    assert refusal(read(400, error(131009, error_data=error_data))).code == 131009


@pytest.mark.parametrize(
    "more",
    [
        {"error_data": {"details": "Object with ID '1' does not exist"}},
        {"error_data": "Object with ID '1' does not exist"},
        {"message": "(#100) Object with ID '1' does not exist"},
    ],
)
def test_a_wrong_number_s_id_is_found_wherever_it_is_said(more: dict[str, object]) -> None:
    assert refusal(read(400, error(100, **more))).meaning.scope is Scope.NUMBER


@pytest.mark.parametrize("code", [None, True, 1.5, "abc", "", [], {}, -5, 2**31, "9" * 5000])
def test_an_error_without_a_usable_code_is_ambiguous(code: object) -> None:
    assert isinstance(read(400, error(code)), Ambiguous)


@pytest.mark.parametrize("body", [HTML, b"", b"{", error(None), {"error": "text"}, {}, error(987654)])
def test_429_is_a_throttle_whatever_its_body_says(body: object) -> None:
    answer = refusal(read(429, body, {"Retry-After": "3"}))
    assert answer.meaning.scope is Scope.NUMBER_THROUGHPUT
    assert answer.retry_after == 3.0


@pytest.mark.parametrize("status", [301, 400, 403, 500, 502, 503, 504])
@pytest.mark.parametrize("body", [HTML, b"", {"error": "down"}, {"ok": False}, [1]])
def test_an_answer_that_is_not_the_provider_s_is_ambiguous(status: int, body: object) -> None:
    assert isinstance(read(status, body), Ambiguous)


def test_html_with_200_is_ambiguous() -> None:
    assert isinstance(read(200, HTML), Ambiguous)


def test_an_unknown_code_is_kept_and_not_known() -> None:
    answer = refusal(read(400, error(987654)))
    assert (answer.code, answer.meaning.scope) == (987654, Scope.UNLISTED)
    assert refusal(read(503, error(987654))).meaning.scope is Scope.TRANSIENT


def test_evidence_is_bounded_and_storable() -> None:
    huge = b'{"error": {"code": 131026, "message": "' + b"x" * 2_000_000 + b'"}}'
    answer = refusal(read(400, huge))
    assert len(answer.raw) <= RAW_BYTES
    nul = read(500, b"a\0b\xff" + b"\xc3" * 5000)
    assert isinstance(nul, Ambiguous)
    assert "\0" not in nul.raw
    assert len(nul.raw) <= RAW_BYTES


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"error":' * 50_000, b'"\xff\xfe"', b"\xef\xbb\xbf{}"])
def test_a_hostile_body_is_ambiguous(body: bytes) -> None:
    assert isinstance(read(200, body), Ambiguous)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["error", "code", "messages", "id", "error_data", "details", "x"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(deadline=None)  # the clock is no judge
@given(st.integers(100, 599), st.one_of(json_values, st.binary(max_size=60)))
def test_no_answer_raises_and_success_always_has_an_id(status: int, body: object) -> None:
    answer = read(status, body)
    assert isinstance(answer, Accepted | Refused | Ambiguous)
    if isinstance(answer, Accepted):
        assert 200 <= status < 300
        assert 0 < len(answer.wamid) <= 256


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("99999", LONGEST_RETRY_AFTER),
        ("inf", LONGEST_RETRY_AFTER),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", None),  # a time without a zone says nothing
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None),
        (None, None),
    ],
)
def test_retry_after_is_read_or_ignored(header: str | None, seconds: float | None) -> None:
    assert retry_after(header) == seconds


def test_retry_after_may_be_a_date() -> None:
    later = retry_after(format_datetime(now() + timedelta(seconds=90), usegmt=True))
    assert later is not None
    assert 80 < later <= 90


async def test_a_request_is_what_the_provider_wants() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"messages": [{"id": "w"}]})

    api = WhatsApp(httpx.MockTransport(answer), URL)
    assert await api.send(api.request("1065", "SECRET", {"to": "+55é"})) == Accepted("w")
    [request] = seen
    assert (request.method, str(request.url)) == ("POST", "https://graph.test/v25.0/1065/messages")
    assert request.headers["authorization"] == "Bearer SECRET"
    assert request.headers["content-type"] == "application/json"
    assert msgspec.json.decode(request.content) == {"to": "+55é"}
    assert request.headers["content-length"] == str(len(request.content))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (httpx.ConnectError("refused"), NotSent),
        (httpx.ConnectTimeout("slow"), NotSent),
        (httpx.PoolTimeout("busy"), NotSent),
        (httpx.ReadTimeout("slow"), Ambiguous),
        (httpx.ReadError("reset"), Ambiguous),
        (httpx.WriteError("reset"), Ambiguous),
        (httpx.RemoteProtocolError("half a reply"), Ambiguous),
    ],
)
async def test_a_transport_s_fault_is_an_answer(fault: httpx.TransportError, kind: type[Answer]) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise fault

    api = WhatsApp(httpx.MockTransport(fail), URL)
    answer = await api.send(api.request("1065", "SECRET", {}))
    assert isinstance(answer, kind)
    assert "SECRET" not in repr(answer)
