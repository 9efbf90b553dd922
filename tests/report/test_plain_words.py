"""Three sentences: counts and names computed again from the answers."""

from __future__ import annotations

from theodolite.report import Answer, Standing
from theodolite.report.answer import gather
from theodolite.report.plain_words import three_sentences

LETTERS: dict[str, Standing] = {"y": "yes", "n": "no", "p": "partly", "o": "unlearnt", "u": "unknown", "f": "failed"}


def told(nets: tuple[str, ...], **abilities: str) -> list[str]:
    """One letter per net for each ability; a blank net was not asked."""
    asked = [
        ("s", Answer(net, name, LETTERS[letter], "", ability=name.replace("_", " ")))
        for name, letters in abilities.items()
        for net, letter in zip(nets, letters, strict=True)
        if letter != " "
    ]
    return three_sentences(gather(asked), nets)


def test_who_has_most_what_sets_them_apart_and_how_the_users_own_fares() -> None:
    nets = ("lstm", "mlp", "a.py:Mine")
    first, second, third = told(nets, recall="ynn", parity="yno", state_size="yyy", counting="nnn", order="nny")
    assert first == "Of 5 abilities lstm shows the most, 3, and mlp the fewest, 1."
    assert second == (
        "They differ most in recall (only lstm), parity (only lstm) and order (only Mine); all show state size; "
        "none shows counting here."
    )
    assert third == "Yours, Mine, shows 2 of 5; it alone shows order."


def test_what_most_others_have_is_named_and_what_failed_is_counted() -> None:
    nets = ("lstm", "mlp", "rnn", "a.py:Mine")
    assert told(nets, recall="yyyn", parity="nnnf")[2] == (
        "Yours, Mine, shows 0 of 2; it lacks recall, which most others show; 1 could not be measured of it."
    )


def test_nothing_is_said_of_what_was_not_decided() -> None:
    assert told(("lstm", "mlp"), recall="uf") == ["Each network shows 0 of the 1 abilities asked for."]
    assert told(("lstm",), recall="y") == ["lstm shows 1 of 1 abilities."]
    assert (
        told(
            (),
        )
        == []
    )
    assert not any("cannot" in sentence for sentence in told(("lstm", "mlp"), recall="oo", parity="on"))
