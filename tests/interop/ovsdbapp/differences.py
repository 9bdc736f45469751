"""Where transcripts may differ: (pattern of a line, the form that both sides are brought to, the reason).

Each entry stands for something that the library does better than the original on purpose, or for a text or an order in
which the servers differ; nothing else belongs here. The suite fails when an entry is not needed any more.
"""

EXPECTED = [
    (
        r"(builtins\.KeyError|builtins\.AttributeError|KeyError|AttributeError|ovs\.db\.\w+\.UnknownColumn): (Row instance has no attribute '\w+'|'nosuch')$",
        r"unknown column",
        "a column that is not there: one exception of ours is both the KeyError and the AttributeError of the original",
    ),
    (
        r"\bAssertionError(: .*)?$",
        r"AssertionError",
        "ours says what the assertion is about",
    ),
    (
        r"(idx=\d+\): .* aborted:)( no transaction is open)?$",
        r"\1",
        "the same, as ovsdbapp logs it",
    ),
    (
        r"Atom:<ovs\.db\.data\.Atom object>",
        r"<zero>",
        "a dangling scalar reference reads as the zero uuid instead of an Atom in an Atom",
    ),
    (
        r"already present within the (\\*\"Late\\*\" )?table or deleted (from this table )?within",
        r"already present within the table or deleted within",
        "the server under test has the text of newer servers",
    ),
    (
        r"(failed to retrieve schema from REMOTE: )\{.*\}",
        r"\1{...}",
        "members of an object come in the order of a hash table",
    ),
    (
        r"(expected \w+, got <class )'(int|float)'",
        r"\1number",
        "the original turns a whole float into an integer before it refuses it",
    ),
    (
        r"((?:TypeError|aborted): )('[<>]' not supported between instances of .*|\w+\.\w+: ovsdb error: expected .*|an index entry of \w+ lacks a value)$",
        r"\1a key of another type",
        "a key of another type than the index: ours names the column, the original the comparison that failed",
    ),
    (
        r"^  event create <\w+#\d+> \{\}$",
        r"",
        "the original does not report a new row of a table without scalars when all its columns have their defaults",
    ),
]
