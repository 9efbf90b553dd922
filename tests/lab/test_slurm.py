"""Slurm jobs, as processes of this machine and through a Slurm of four scripts: same rows, nothing lost."""

from __future__ import annotations

import os
import signal
import stat
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from theodolite.bench.learn import learn
from theodolite.cli.main import run as command
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener
from theodolite.lab.engines import slurm_job
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.engines.mailbox import Mailbox
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store
from theodolite.lab.work import Update

from .small_runs import MLP, checkpoints, held, keyed, net_file, rows_of

pytestmark = pytest.mark.skipif(find_spec("submitit") is None, reason="needs the extra slurm")

TWO_LANES = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}}

# What submitit asks of Slurm. A job is a process of this machine, and dies with its last task.
SLURM = {
    "sbatch": """
grep -q 'partition=small' "$1" || { echo "sbatch: error: invalid partition specified" >&2; exit 1; }
cp "$1" "$FAKE_SLURM/script"
SLURM_JOB_ID=77 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 \
SLURM_JOB_NODELIST=here nohup bash "$1" >/dev/null 2>&1 &
echo $! > "$FAKE_SLURM/pid"
echo "Submitted batch job 77"
""",
    "srun": """
while [ "${1#-}" != "$1" ]; do case "$1" in --output|--error) shift 2;; *) shift;; esac; done
exec "$@"
""",
    "sacct": """
state=COMPLETED; kill -0 "$(cat "$FAKE_SLURM/pid")" 2>/dev/null && state=RUNNING
printf 'JobID|State|NodeList\\n77|%s|here\\n' $state
""",
    "scancel": 'touch "$FAKE_SLURM/cancelled"\n',
}


def workers_of(folder: Path) -> list[int]:
    """The processes that run groups: submitit is told a folder below this one."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"submitit.core._submit" in words and any(word.startswith(bytes(folder)) for word in words):
            found.append(int(file.parent.name))
    return found


def test_jobs_give_the_rows_of_this_process_also_when_one_is_killed_and_one_has_no_time_left(tmp_path):
    run = {**TWO_LANES, "net": net_file(tmp_path / "mine", held(tmp_path / "go")), "steps": 300, "every": 100}
    saved: dict[str, int] = {}
    sent: list[int] = []
    resumed: dict[str, int] = {}

    def disturb(group: Group, news: Update) -> None:
        if sent and news.number == 0:
            resumed[group.id] = news.step
        if news.checkpoint and not sent:
            saved[group.id] = news.step
        if len(saved) == 2 and not sent:
            sent.extend(workers_of(tmp_path))
            for pid, number in zip(sent, (signal.SIGKILL, signal.SIGUSR2), strict=True):
                os.kill(pid, number)
            (tmp_path / "go").touch()

    out = tmp_path / "jobs"
    found = learn(**run, out=out, engine="slurm-local", workers=2, threads=1, listener=Listener(update=disturb))
    assert len(sent) == 2
    assert not found.failures
    expected = rows_of(run, tmp_path / "here")
    assert keyed(found.rows) == expected
    assert len(expected) == 8
    assert resumed.keys() == saved.keys()
    assert all(resumed[group] > saved[group] > 0 for group in saved), "a group began again"
    with Store(out, must_exist=True) as left:
        [failure] = left.failures()  # a job whose time is up is no failure
    assert failure["retried"]
    assert failure["sentence"].startswith("a worker died (job ")
    assert checkpoints(out) == []
    assert list((out / "jobs").iterdir()) == []
    assert workers_of(tmp_path) == []


def test_slurm_itself_is_handed_the_options_and_gives_the_same_rows(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in SLURM.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}")
        (tools / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(tmp_path))
    run = {**MLP, "steps": 60}
    with pytest.raises(BadInput, match=r"Slurm did not take a job: .*invalid partition"):
        learn(**run, out=tmp_path / "runs", engine="slurm", workers=1, cluster=Cluster(slurm={"partition": "none"}))
    at = Cluster(slurm={"partition": "small", "time": 90, "account": "lab"}, shared=tmp_path / "shared")
    found = learn(**run, out=tmp_path / "runs", engine="slurm", workers=1, threads=1, cluster=at)
    assert keyed(found.rows) == rows_of(run, tmp_path / "here")
    script = (tmp_path / "script").read_text()
    assert "--time=90" in script
    assert "--account=lab" in script
    assert "--cpus-per-task=1" in script
    assert "gpus" not in script
    assert (tmp_path / "cancelled").exists()


def test_a_job_leaves_when_told_when_its_time_is_up_and_when_its_command_is_gone(tmp_path, monkeypatch):
    signals = (signal.SIGUSR2, signal.SIGTERM)
    before = [signal.getsignal(number) for number in signals]
    folder = tmp_path / "0"
    folder.mkdir()
    try:
        for number in signals:
            reasons = slurm_job._Reasons(folder)
            assert not reasons.to_leave()
            os.kill(os.getpid(), number)
            assert reasons.to_leave()
        reasons = slurm_job._Reasons(folder)
        monkeypatch.setattr(slurm_job, "_ORPHAN", -1.0)
        assert reasons.to_leave()
        monkeypatch.setattr(slurm_job, "_ORPHAN", 1000.0)
        assert not reasons.to_leave()
        (folder / slurm_job.STOP).touch()
        assert reasons.to_leave()
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def test_a_mailbox_keeps_the_order_and_never_shows_half_a_letter(tmp_path):
    ours, theirs = Mailbox(tmp_path / "box"), Mailbox(tmp_path / "box")
    assert not theirs.waiting
    for number in range(12):
        ours.put({"number": number})
    (tmp_path / "box" / "00000012.part").write_bytes(b"half")
    assert [letter["number"] for letter in theirs.take()] == list(range(12))
    assert theirs.take() == []
    ours.put("next")
    assert theirs.take() == ["next"]
    assert stat.S_IMODE((tmp_path / "box").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--engine", "slurm"], "there is no 'sbatch' here"),
        (["--engine", "slurm-local", "--slurm", "tim=3"], "did you mean 'time'"),
        (["--engine", "slurm-local", "--slurm", "time=2:00:00"], "is not a number of minutes"),
        (["--engine", "slurm-local", "--slurm", "time"], "is not KEY=VALUE"),
        (["--slurm", "time=3"], "is for jobs: use it with --engine slurm"),
        (["--engine", "slrum"], "did you mean 'slurm'"),
        (["--address", "head:6379"], "is Ray's: use it with --engine ray"),
        (["--engine", "ray", "--address", "127.0.0.1:1"], "nobody answers at --address '127.0.0.1:1'"),
    ],
)
def test_a_command_that_cannot_reach_its_cluster_says_why_and_ends_with_2(
    tmp_path, monkeypatch, capsys, words, sentence
):
    monkeypatch.setenv("PATH", str(tmp_path))
    size = ["--net", "mlp", "--task", "parity", "--seeds", "1", "--steps", "10", "--out", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", ["theodolite", "learn", *size, *words])
    with pytest.raises(SystemExit) as end:
        command()
    told = capsys.readouterr()
    assert end.value.code == 2
    assert sentence in " ".join(told.err.split())
    assert told.out == ""


def test_jobs_need_a_folder_to_meet_in_and_submitit(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="need a folder that every node sees"):
        learn(**MLP, engine="slurm-local")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"file' cannot be used .*: give another --shared"):
        learn(**MLP, engine="slurm-local", cluster=Cluster(shared=tmp_path / "file"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'theodolite\[slurm\]'"):
        learn(**MLP, out=tmp_path / "runs", engine="slurm-local")
