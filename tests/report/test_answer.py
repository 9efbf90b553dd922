import pytest

from theodolite.report import Answer
from theodolite.report.answer import MARKS, agreement, gather, own, short_names, short_value, tally


def asked(question: str, standing: str, agrees: bool | None = None, ability: str = "", net: str = "lstm") -> Answer:
    return Answer(net, question, standing, "measured", "theory", agrees, ability)  # type: ignore[arg-type]


def test_silence_is_not_called_agreement() -> None:
    assert tally([asked("Can it add?", "yes")]) == ""
    assert tally([asked("Can it add?", "yes", True)]) == "the one prediction of theory agrees"
    assert tally([asked("Can it add?", "no", False)]) == "the one prediction of theory differs"
    assert [agreement(value) for value in (True, False, None)] == ["✓ agrees", "✗ differs", "–"]


def test_questions_keep_their_order_and_every_net_that_was_asked() -> None:
    first, second = asked("Can it add?", "yes"), asked("Can it add?", "no", net="mlp")
    other = asked("Can it count?", "yes")
    found = gather([("a", first), ("a", other), ("a", second), ("b", first)])
    assert [(q.section, q.text) for q in found] == [("a", "Can it add?"), ("a", "Can it count?"), ("b", "Can it add?")]
    assert found[0].answers == {"lstm": first, "mlp": second}


@pytest.mark.parametrize(
    ("nets", "short"),
    [
        (("lstm", "a/b.py:Mine"), ["lstm", "Mine"]),
        (("a.py:Mine", "b.py:Mine"), ["a.py:Mine", "b.py:Mine"]),
        (("Mine", "b.py:Mine"), ["Mine", "b.py:Mine"]),
    ],
)
def test_a_short_name_never_stands_for_two_nets(nets: tuple[str, ...], short: list[str]) -> None:
    assert list(short_names(nets).values()) == short


def test_no_two_standings_share_a_mark_or_a_word() -> None:
    assert len({mark for mark, _ in MARKS.values()}) == len({word for _, word in MARKS.values()}) == len(MARKS)


@pytest.mark.parametrize(
    ("text", "value", "short"),
    [
        ("4 of 4 seeds, longer 0.54 (share 0.51–1.00)", "", "4 of 4 seeds"),
        ("4 of 4 seeds, longer 0.54 (share 0.51–1.00)", "0.54", "0.54"),
        ("1,234.5 (1,000–2,000)", "", "1,234.5"),
        ("6 of 8 seeds [41, 93 %]", "", "6 of 8 seeds"),
        ("no other row and no earlier call and no weight moves it", "", ""),
    ],
)
def test_a_small_cell_never_shows_a_part_of_a_number(text: str, value: str, short: str) -> None:
    assert short_value(Answer("lstm", "Can it add?", "yes", text, value=value)) == short


def test_a_net_from_a_file_is_the_users_own() -> None:
    assert [own(net) for net in ("lstm", "a/b.py:Mine")] == [False, True]
