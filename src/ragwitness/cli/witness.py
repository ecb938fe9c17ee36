"""``ragwitness attest witness``: sign, for others, that a log only grew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.paths import PathRole


def witness(
    log: Annotated[
        list[str],
        typer.Option(
            metavar="KEY",
            help="The public key of a log that you watch, as ragwitness attest commit prints it"
            " under provider: it stands for all windows of that provider. May be repeated.",
        ),
    ],
    key: Annotated[
        Path, PathRole.KEEPS, typer.Option(help="Your key; it is made if --name is given.")
    ],
    state: Annotated[
        Path,
        PathRole.KEEPS,
        typer.Option(help="The folder in which you keep what you have signed last of each log."),
    ],
    name: Annotated[
        str | None, typer.Option(help="Your name, for a new key, e.g. witness.example.net.")
    ] = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one and prints it.")] = 8767,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Serve as a witness of logs.

    Providers send their checkpoints (C2SP tlog-witness), and you sign those that extend what you
    signed before. Never continue from an old copy of --state: you could sign two histories of one
    log. Give the printed address, URL#KEY, to providers for --witness.
    """
    from ragwitness.cli.attest import key_at
    from ragwitness.crypto.keys import KeyKind, PublicKey
    from ragwitness.kit.server import listen, origin, serve_app
    from ragwitness.tlog.witness import Witness, create_app

    logs = [PublicKey.parse(text) for text in log]
    # The key and what it has signed belong together: one without the other does not start.
    new = not key.exists()
    held = key_at(key, name, KeyKind.COSIGNATURE)
    app = create_app(Witness(state, held, logs, new=new))
    listener = listen(host, port)
    url = origin(host, listener)

    def ready() -> None:
        typer.echo(f"Listening on {url}\n--witness {url}#{held.public.text}")

    serve_app(app, listener, ready)
    typer.echo("Stopped.")
