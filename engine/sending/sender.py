"""One row's story: build the request, pass the last check, leave, read the answer."""

from collections.abc import Callable

from pydantic import SecretStr

from engine.clients.whatsapp import Prepared, WhatsApp
from engine.domain.errors import MEANINGS, UNBUILT
from engine.domain.message import Template, Token, template_message
from engine.domain.outcome import Ambiguous, Answer, NotSent, Refused, Withdrawn
from engine.sending.gate import Gate
from engine.sending.work import Work


class Sender:
    """Sends the rows of one number.

    `access_token` gives the number's token, or the sentence that says why there is none.
    `stopped` gives the reason why nothing may leave now, or None.
    """

    def __init__(
        self,
        whatsapp: WhatsApp,
        gate: Gate,
        number: str,
        access_token: Callable[[], SecretStr | str],
        stopped: Callable[[], str | None],
    ) -> None:
        self._whatsapp = whatsapp
        self._gate = gate
        self._number = number
        self._access_token = access_token
        self._stopped = stopped

    async def send(self, work: Work) -> Answer:
        """The answer to this row's request; NotSent, Refused or Withdrawn of our own when it did not leave.

        Once the request was handed over, whatever goes wrong is ambiguous, also a fault of our own.
        """
        try:
            request = self._prepare(work)
        except Exception as fault:  # noqa: BLE001  nothing left; a row that nobody settles would block the gate
            request = NotSent(f"fault while building the request: {type(fault).__name__}")
        if isinstance(request, NotSent | Refused):
            self._gate.stay()
            return request
        why_not = self._stopped()
        if why_not is not None:  # the lease's deadline, a pause: checked in the same tick as the hand-over
            self._gate.stay()
            return Withdrawn(why_not)
        self._gate.leave(work)
        try:
            return await self._whatsapp.send(request)
        except Exception as fault:  # noqa: BLE001  it may have left, so the row must not be sent again
            return Ambiguous(f"fault while sending: {type(fault).__name__}: {fault}"[:500])

    def _prepare(self, work: Work) -> Prepared | NotSent | Refused:
        token = self._access_token()
        if isinstance(token, str):
            return NotSent(token)
        campaign, row = work.campaign, work.row
        template = Template(campaign.template, campaign.language, campaign.body, campaign.content)
        try:
            body = template_message(
                row.phone, template, row.params, Token(campaign.random_id, row.id, work.n)
            )
        except KeyError as missing:
            return Refused(UNBUILT, MEANINGS[UNBUILT], raw=f"the row has no value for {missing}")
        return self._whatsapp.request(self._number, token.get_secret_value(), body)
