"""What a survey says before anything of it was measured."""

from theodolite.lab.campaign import Listener
from theodolite.surveys.progress import Progress


def test_from_its_start_a_survey_says_what_is_asked_and_about_how_long_it_takes():
    told: list[tuple[float, float, str]] = []
    titles = {"a": "Cost", "b": "Cost", "c": "Rank"}
    for costs, finished in (
        ((30, 20, 1), ()),
        ((100, 100, 100), ("b",)),
        ((9000, 9000, 0), ("c",)),
        ((1, 1, 1), "abc"),
    ):
        seconds = dict(zip(titles, costs, strict=True))
        Progress(Listener(lambda *line: told.append(line)), titles).begin(seconds, finished)
    assert [line[:2] for line in told] == [(0, 51), (0, 300), (0, 18000), (0, 3)]
    asked = "3 measurements in 2 sections"
    assert [line[2] for line in told] == [
        f"{asked}, about a minute on one core",
        f"{asked}, 1 of them measured before, about 3 minutes on one core",
        f"{asked}, 1 of them measured before, about 5 hours on one core",
        f"{asked}, 3 of them measured before",
    ]
