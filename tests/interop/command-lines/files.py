"""Files that tables begin with: a database, its likes, and what is none."""

import pathlib

SCHEMA = pathlib.Path(__file__).resolve().parent / "mydb.ovsschema"

SETUP = (
    f"cp {SCHEMA} s; ovsdb-tool create good.db s; cp good.db same.db; ln -s good.db link.db;"
    " sed s/mydb/_my/ s > t; ovsdb-tool create under.db t; sed s/mydb/other/ s > t; ovsdb-tool create other.db t;"
    " echo hello > text.db; : > empty.db; mkdir dir; printf garbage > torn; cat good.db torn > torn.db"
)
