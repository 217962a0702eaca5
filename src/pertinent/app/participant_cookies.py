"""Signed cookies and return codes of the participants in a study."""

from __future__ import annotations

import json
import os
from base64 import b32encode
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from pathlib import Path
from secrets import token_urlsafe

from pertinent.errors import FileError
from pertinent.study.answers import Person
from pertinent.study.design import Study

KEY = "participants.key"
"""File in the folder of a study with the secret that signs cookies and codes."""

_CODE_LETTERS = 12


class ParticipantCookies:
    """Cookies and codes of a study's participants, signed with a secret in the study's folder.

    A signature covers the study, the number and the nickname, so that a cookie of another study, or of a
    participant whose answers were deleted, is invalid.
    """

    def __init__(self, study: Study) -> None:
        self._study = study.description.id
        self._key = read_secret(study.folder / KEY, 32).encode()

    def cookie(self, person: Person) -> str:
        """Return the value of a participant's cookie."""
        return f"{person.number}.{self._sign('cookie', person).hex()}"

    def owner(self, cookie: str, people: Iterable[Person]) -> Person | None:
        """Return the participant of a cookie, ``None`` if the cookie is invalid."""
        number = cookie.partition(".")[0]
        person = next((candidate for candidate in people if str(candidate.number) == number), None)
        if person is None or not compare_digest(cookie.encode(), self.cookie(person).encode()):
            return None
        return person

    def code(self, person: Person) -> str:
        """Return the code with which a participant continues in another browser, such as ABCD-EFGH-IJKL."""
        letters = b32encode(self._sign("code", person)).decode()[:_CODE_LETTERS]
        return "-".join(letters[i : i + 4] for i in range(0, _CODE_LETTERS, 4))

    def accepts(self, person: Person, code: str) -> bool:
        """Return whether a code is a participant's; case, spaces and hyphens do not matter."""
        letters = "".join(filter(str.isalnum, code.upper()))
        return compare_digest(letters.encode(), self.code(person).replace("-", "").encode())

    def _sign(self, purpose: str, person: Person) -> bytes:
        signed = json.dumps([purpose, self._study, person.number, person.name])
        return hmac_digest(self._key, signed.encode(), sha256)


def read_secret(path: Path, n_bytes: int) -> str:
    """Read a secret from a file that only its owner can read; create the file if it is missing."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(token_urlsafe(n_bytes))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        pass
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    secret = path.read_text("utf-8").strip()
    if not secret:
        raise FileError(f"{str(path)!r} is empty: remove it to make a new secret.")
    return secret
