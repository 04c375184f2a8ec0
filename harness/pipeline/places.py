"""Where runs and tables lie: a folder, which may be named as file://…, or an address in an object store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from harness.errors import WrongUse
from harness.results.objects import SCHEMES, Address, address_of


def place_of(given: Path) -> Path | Address:
    """The folder or address that `given` names. Raises WrongUse, with a way out, for hdfs://… and names not in UTF-8.

    `given` has lost one of two slashes already, if it was a path on its way here.
    """
    try:
        str(given.absolute()).encode()
    except UnicodeEncodeError as error:
        raise WrongUse(f"{given}: expected a name in UTF-8; try: a link of such a name to it") from error
    address = address_of(given)
    if address is not None:
        return address
    scheme, colon, rest = str(given).partition(":/")
    if not colon or not scheme.replace("+", "").isalnum() or given.exists():
        return given
    if scheme == "file":
        return Path("/" + unquote(rest).lstrip("/"))
    known = ", ".join(f"{prefix}://" for prefix in dict.fromkeys(SCHEMES.values()))
    raise WrongUse(
        f"expected a folder, file://… or an object store ({known}), got {scheme}://{rest.lstrip('/')}; "
        "try: mount it and give the folder"
    )
