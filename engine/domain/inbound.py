"""Messages that people write to a number: who wrote, what it answers, and whether it says stop.

    "Parar", a button with the payload STOP, a list's choice "Unsubscribe"  →  nothing more is sent to this person

A stop word counts when it is all that was written: within a sentence it may mean anything.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.domain import lenient

STOP_WORDS: Mapping[str, tuple[str, ...]] = {
    "pt": ("PARAR", "PARE", "SAIR", "CANCELAR", "DESCADASTRAR", "REMOVER"),
    "es": ("BAJA", "ALTO", "DETENER", "DETENGA", "CANCELAR", "SALIR"),
    "en": ("STOP", "STOPALL", "STOP ALL", "UNSUBSCRIBE", "OPT OUT", "OPTOUT", "QUIT"),
    "fr": ("ARRET", "ARRÊT", "ARRETER", "ARRÊTER", "DESABONNER", "DÉSABONNER", "DESINSCRIRE", "DÉSINSCRIRE"),
    "it": ("FERMA", "CANCELLAMI", "DISISCRIVI", "ANNULLA ISCRIZIONE"),
    "de": ("STOPP", "ABMELDEN", "ABBESTELLEN"),
    "nl": ("AFMELDEN", "UITSCHRIJVEN"),
    "id": ("BERHENTI",),
    "tr": ("DUR", "IPTAL", "İPTAL"),
    "ar": ("إيقاف", "توقف"),
    "hi": ("रोकें", "बंद करें"),
}
"""What ends a conversation, by language. All languages count at once: nobody says which one they write in."""

_ID_CHARS = 512
_WORD_CHARS = 64
"""Longer texts are no stop word, and nothing else of them is of interest here."""

_AROUND = " \t\r\n.,;:!?¡¿\"'*_~()[]…"


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message of a person. `number`: Meta's phone number id. `context`: the wamid that it answers.

    `phone` is E.164 with its +, or None: people with a username may write without one. `says`: the texts that may
    be a stop word (the text, a button's payload and label, a choice's id and title).
    """

    number: str | None
    wamid: str | None
    phone: str | None = field(repr=False)
    context: str | None = None
    says: tuple[str, ...] = field(default=(), repr=False)


class StopWords:
    """A set of words that say stop, compared without regard to case, form of writing, or marks around them."""

    def __init__(self, words: Iterable[str] | None = None) -> None:
        """None: the defaults of every language."""
        chosen = [word for several in STOP_WORDS.values() for word in several] if words is None else words
        self._words = frozenset(filter(None, map(_plain, chosen)))

    def said(self, message: Inbound) -> str | None:
        """The stop word that a message consists of, or None."""
        for text in message.says:
            word = _plain(text)
            if word in self._words:
                return word
        return None


def read(item: object, contacts: Iterable[object], number: str | None) -> Inbound:
    """One item of `messages`. Whatever cannot be read is absent; nothing is raised."""
    message = lenient.mapping(item)
    return Inbound(
        number=number,
        wamid=lenient.text(message.get("id"), _ID_CHARS),
        phone=phone(message.get("from")) or _known(message.get("from_user_id"), contacts),
        context=lenient.text(lenient.mapping(message.get("context")).get("id"), _ID_CHARS),
        says=tuple(_said(message)),
    )


def phone(wa_id: object) -> str | None:
    """E.164 from WhatsApp's own id, which is its digits; None for anything else."""
    digits = lenient.text(wa_id, 24)
    if digits is None:
        return None
    digits = digits.removeprefix("+")
    return f"+{digits}" if digits.isascii() and digits.isdigit() and 6 <= len(digits) <= 15 else None


def _known(user: object, contacts: Iterable[object]) -> str | None:
    """The phone of a contact of the same body, where the message names only a user."""
    if not isinstance(user, str):
        return None
    for contact in map(lenient.mapping, contacts):
        if contact.get("user_id") == user:
            return phone(contact.get("wa_id"))
    return None


def _said(message: Mapping[str, Any]) -> Iterable[str]:
    button, interactive = lenient.mapping(message.get("button")), lenient.mapping(message.get("interactive"))
    texts = [lenient.mapping(message.get("text")).get("body"), button.get("payload"), button.get("text")]
    for kind in ("button_reply", "list_reply"):
        reply = lenient.mapping(interactive.get(kind))
        texts += [reply.get("id"), reply.get("title")]
    for text in texts:
        if isinstance(text, str) and 0 < len(text) <= _WORD_CHARS:
            yield text


def _plain(text: str) -> str:
    """Upper and lower case alike, one form of accents, one blank between words, no marks around."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return " ".join(visible.casefold().split()).strip(_AROUND)
