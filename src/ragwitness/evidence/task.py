"""The task of a verification: does a sealed file hold what it says?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, AskedAs, Only, Opt, PathRole, declared

if TYPE_CHECKING:
    from ragwitness.attest.verdict import BundleVerdict

_SMALL, _MOST_FILES = 1 << 20, 100_000
_DRAFT = "Begin with the trust.json that ragwitness attest commit writes next to the window."
_MADE_BY = "Give the file that ragwitness seal or ragwitness attest prove wrote."
_TOLD, _BUNDLE = "Your knowledge", "For the bundle of an audit window alone"


@dataclass(frozen=True)
class VerifyTask:
    """Check a sealed file by itself: no network, no index.

    Attributes:
        bundle: A sealed file: an evidence pack that ragwitness seal wrote, or the bundle that
            ragwitness attest prove wrote.
        trust: For a bundle: your own trust.json with log and beacon. Without it no bundle
            can pass.
        receipt: For a bundle: an account's receipt, or a folder of them. May be repeated.
        checkpoint: A checkpoint of this log that somebody else was shown. May be repeated.
        embedder: For a bundle: embed the opened texts again, by minilm, hf:NAME, URL#MODEL or
            hashing:DIMENSION.
        key: For a pack: the public key of whoever ran the audit, as they published it.
        seal: For a pack: the seal that was published before the answers came.
        roots: For a pack: the certificates (PEM) of the timestamp authorities that you trust; or,
            for --sigstore, a trusted_root.json in place of the packaged one.
        models: For a pack: load this model, too, where the pack names it just so, or ask this
            server for it. Without it only packaged models are loaded. May be repeated.
        sigstore: For a pack: a Sigstore bundle over it. Needs --identity, --issuer and the extra
            [sigstore].
        identity: For --sigstore: whose certificate it must be, a mail address or a URI.
        issuer: For --sigstore: the URL that vouches for the identity.

    Raises:
        InputError: A file cannot be read, or an option says nothing about this kind of file.
        MissingExtraError: The extra ``verify`` is not installed.
    """

    bundle: Annotated[
        Path | str,
        PathRole.READS,
        Arg(),
        AskedAs("File", "The sealed file", "An evidence pack, or a window's bundle.", "documents"),
    ]
    trust: Annotated[
        Path | str | None,
        PathRole.READS,
        Only("bundle"),
        AskedAs(_BUNDLE, "Your trust.json", "Without it no bundle can pass.", "documents"),
    ] = None
    _: KW_ONLY
    receipt: Annotated[list[Path] | None, PathRole.READS, Only("bundle")] = None
    checkpoint: Annotated[
        list[Path] | None,
        PathRole.READS,
        AskedAs(_TOLD, "Checkpoints of the log", "As you, or others, have seen it.", "documents"),
    ] = None
    embedder: Annotated[str | None, PathRole.ADDRESS, Only("bundle")] = None
    key: Annotated[
        str | None,
        Opt(metavar="TEXT"),
        Only("pack"),
        AskedAs(
            _TOLD,
            "Public key of the auditor",
            "As they published it. Anybody can make a pack with an own key: without the key, the"
            " seal or a checkpoint no pack passes.",
        ),
    ] = None
    seal: Annotated[
        str | None,
        Opt(metavar="SHA256"),
        Only("pack"),
        AskedAs(_TOLD, "Seal", "The hash that you received before the answers came."),
    ] = None
    roots: Annotated[
        Path | None,
        PathRole.READS,
        Only("pack"),
        AskedAs(_TOLD, "Certificates of time stamps", "Those that you trust, PEM.", "documents"),
    ] = None
    models: Annotated[list[str] | None, Opt(metavar="NAME"), Only("pack")] = None
    sigstore: Annotated[Path | None, PathRole.READS, Only("pack")] = None
    identity: Annotated[str | None, Opt(metavar="TEXT"), Only("pack")] = None
    issuer: Annotated[str | None, Opt(metavar="URL"), Only("pack")] = None

    def opened(self) -> tuple[str, Callable[..., BundleVerdict]]:
        """Read everything; return what the file deals in, and what judges it."""
        from ragwitness.attest.archive import MAX_ARCHIVE
        from ragwitness.core.files import map_file, read_file
        from ragwitness.evidence.verifiers import SEALED, sealed_kind

        # Step 1: the file, of a bounded size before anything in it is believed, and what it is.
        data = map_file(Path(self.bundle), MAX_ARCHIVE, _MADE_BY)
        kind = sealed_kind(data)
        judge, of = partial(SEALED.load(kind), data), kind.removesuffix(".json")
        for option in declared(type(self)):
            # An option without meaning for this kind of file would seem to be checked.
            if (only := option.mark(Only)) and of not in only.traits and getattr(self, option.name):
                raise InputError(f"{option.option} does not apply to a {of}.", "Leave it out.")
        # Step 2: what the auditor brings. It comes from elsewhere than the file.
        checkpoints = [read_file(path, _SMALL) for path in _files(self.checkpoint or ())]
        if of == "pack":
            from ragwitness.crypto.keys import PublicKey
            from ragwitness.evidence.case import PackKnown

            whose = None if self.key is None else PublicKey.parse(self.key.strip())
            knowledge = PackKnown(whose, self.seal, checkpoints, self.roots, self.models or ())
            if self.sigstore is not None:
                from ragwitness.evidence.statement import SigstoreKnown

                root = self.roots if str(self.roots).endswith(".json") else None
                bundle = read_file(self.sigstore, _SMALL)
                signer = SigstoreKnown(bundle, self.identity or "", self.issuer or "", root)
                knowledge = replace(knowledge, signed_by=signer.check(bytes(data)))
            return "documents", partial(judge, known=knowledge)
        from ragwitness.attest.trust import parse_trust

        keywords: dict[str, object] = {"seen": checkpoints}
        keywords["trust"] = self.trust and parse_trust(read_file(Path(self.trust), _SMALL, _DRAFT))
        keywords["receipts"] = [read_file(path, _SMALL) for path in _files(self.receipt or ())]
        if self.embedder is not None:
            from ragwitness.models.model_registry import load_embedder

            keywords["embed"] = load_embedder(self.embedder).embed
        return "proofs", partial(judge, **keywords)

    def carry_out(self) -> BundleVerdict:
        """Do it, and return the verdict."""
        return self.opened()[1]()


def _files(given: Sequence[Path]) -> list[Path]:
    """Return files, and those in folders in the order of their names."""
    files: list[Path] = []
    for path in map(Path, given):
        files += sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    if len(files) > _MOST_FILES:
        raise InputError(f"{len(files):,} files are too many.", "Check a sample of the receipts.")
    return files


# Sealing a run before its first query, and packing it afterwards.
