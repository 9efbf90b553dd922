"""The tables of a store, and how each version of them is made from the one before."""

from __future__ import annotations

APPLICATION = 0x7468656F  # "theo": SQLite keeps it in the file's header, so another program's file is recognised

# Version n is what the first n entries make; an entry that was released is never changed. One statement a string,
# because sqlite3's executescript would commit the transaction a migration runs in.
#
# `groups` holds open groups only: one that is done or has failed is removed, and its unfinished cells are free again.
# Two rules are kept by the database itself: a cell has at most one row, and is in at most one open group.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE cells (key TEXT PRIMARY KEY, measure TEXT NOT NULL, config TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE rows (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL UNIQUE REFERENCES cells,
            result TEXT NOT NULL,
            error TEXT NOT NULL,
            facts TEXT NOT NULL)""",
        """CREATE TABLE owners (
            token TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            place TEXT NOT NULL,
            pid INTEGER NOT NULL,
            start TEXT,
            seen REAL NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE groups (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            settings TEXT NOT NULL,
            step INTEGER NOT NULL DEFAULT 0,
            checkpoint TEXT,
            attempts INTEGER NOT NULL DEFAULT 0,
            owner TEXT REFERENCES owners ON DELETE SET NULL)""",
        "CREATE INDEX groups_by_owner ON groups (owner)",
        """CREATE TABLE members (
            number INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
            place INTEGER NOT NULL,
            key TEXT NOT NULL UNIQUE REFERENCES cells,
            PRIMARY KEY (number, place)) WITHOUT ROWID""",
        """CREATE TABLE failures (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            time TEXT NOT NULL,
            "group" TEXT NOT NULL,
            cells TEXT NOT NULL,
            sentence TEXT NOT NULL,
            traceback TEXT NOT NULL,
            retried INTEGER NOT NULL,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL)""",
        "CREATE TABLE trials (key TEXT PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID",
    ),
    # What the rows of trained members come to, written together with them: `digest.py` says what and how. All of it
    # follows from `rows` and `cells`, so a store without it, or behind, can be read.
    (
        """CREATE TABLE conditions (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            config TEXT NOT NULL,
            first INTEGER NOT NULL,
            members INTEGER NOT NULL,
            seeds INTEGER NOT NULL)""",
        """CREATE TABLE tallies (
            condition INTEGER NOT NULL,
            lr REAL NOT NULL,
            weight_decay REAL NOT NULL,
            status TEXT NOT NULL,
            tally TEXT NOT NULL,
            UNIQUE (condition, lr, weight_decay, status))""",
        """CREATE TABLE scores (
            condition INTEGER NOT NULL,
            seed INTEGER NOT NULL,
            number INTEGER NOT NULL,
            score BLOB NOT NULL,
            PRIMARY KEY (condition, seed, number)) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX scores_by_number ON scores (number)",
        """CREATE TABLE digested (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            number INTEGER NOT NULL,
            key TEXT,
            left_out INTEGER NOT NULL)""",
        "INSERT INTO digested VALUES (1, 0, NULL, 0)",
    ),
)
READABLE = 1  # the first version that can be read as it is: what later ones add follows from its tables
DIGEST = 2  # the version that brought what rows come to
