"""The core, in Rust."""

from typing import Any, Callable, Dict, FrozenSet, Generic, List, Mapping, Optional, Sequence, Tuple, Type, Union, final
from uuid import UUID

from typing_extensions import TypeVar

from ._typing import RowBase

AnyRow = TypeVar("AnyRow", bound=RowBase)

@final
class Schema:
    """A database schema."""

    def __init__(self, json: str) -> None:
        """Reads a schema, as ``ovsdb-client get-schema`` prints it."""

    @staticmethod
    def empty(name: str) -> Schema:
        """A schema without tables."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    def tables(self) -> List[str]:
        """The names of the tables."""

    def columns(self, table: str) -> List[Column]:
        """The columns of a table."""

@final
class Column:
    """A column of a schema."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str:
        """In words: "set of up to 3 strings"."""

    @property
    def is_map(self) -> bool: ...
    @property
    def is_set(self) -> bool: ...
    @property
    def is_optional(self) -> bool: ...
    @property
    def is_mutable(self) -> bool: ...
    @property
    def key_table(self) -> Optional[str]:
        """The table that elements or keys refer to."""

    @property
    def value_table(self) -> Optional[str]:
        """The table that values of a map refer to."""

@final
class Session:
    """The state of a session at one moment."""

    @property
    def is_connected(self) -> bool: ...
    @property
    def remote(self) -> Optional[str]:
        """The remote that is connected, or was tried last."""

    @property
    def is_leader(self) -> Optional[bool]:
        """Whether the server leads its cluster, or is the only one; None until that is known."""

    @property
    def is_synced(self) -> bool:
        """Whether the replica is complete and receives the server's changes."""

    @property
    def has_contents(self) -> bool:
        """Whether contents have ever arrived."""

    @property
    def is_alive(self) -> bool:
        """Whether the client is connected or going to try."""

    @property
    def last_failure(self) -> Optional[str]:
        """The failure that keeps the client from its contents, or from a part of them."""

    @property
    def lock(self) -> str:
        """ "unset", "requested", "contended", "held" or "refused"."""

    @property
    def lock_refusal(self) -> Optional[str]:
        """The server's error, as JSON, if it refused the request for the lock. The next connection asks again."""

class Row(RowBase):
    """A row of a replica. Its columns are attributes, and items by name; assignments need an open transaction.

    A row is a handle: values are read at each access. Rows are equal if they are the same row of the same client. Programs may derive classes of it, with
    methods of their own, for the rows of a table: ``row_classes`` of :func:`corvid.connect`. A method hides the column of its name, which ``row["name"]``
    still reads.
    """

    def __new__(cls, client: Client, table: str, uuid: Union[UUID, RowBase, str, bytes]) -> "Row":
        """The handle of a row, which need not be there."""

    @property
    def uuid(self) -> UUID:
        """The UUID. Until a new row is committed, it is one of the client's own."""

    def as_dict(self) -> Dict[str, Any]:
        """The values of all columns that are replicated, by name."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

OfTable = TypeVar("OfTable", bound=RowBase, covariant=True, default=Row)

class LiveRow(Row):
    """A row by the rules of the package ``ovs``: the base of ``corvid.ovs.db.idl.Row``."""

    def _committed(self, name: str) -> Any:
        """The value of a column without the changes of the open transaction; None of a row that is not there, or that it inserts."""

@final
class Events:
    """The changes of all tables of a client, in the order of the server's messages, for ``corvid.ovs.db.idl``."""

    def __init__(self, client: Client) -> None: ...
    def set_wanted(self, is_wanted: bool) -> None:
        """Whether insertions and updates are collected from now on; deletions always are."""

    def take(self) -> List[Tuple[str, Any, Optional[Any]]]:
        """Takes the changes since the last call: "create", "update" or "delete"; the row; of an update a row of the former values."""

__version__: str

def exists(row: RowBase) -> bool:
    """Whether a row is there, as the open transaction leaves it."""

def table_of(row: RowBase) -> str:
    """The name of a row's table."""

@final
class Index(Generic[OfTable]):
    """The rows of a table in the order of some of its columns. A key is a tuple of values; of one column the value alone."""

    def __len__(self) -> int: ...
    def get(self, key: Any) -> Optional[OfTable]:
        """The first row with this key."""

    def range(self, from_key: Any = None, to_key: Any = None) -> List[OfTable]:
        """The rows from one key to another, both included, in the order of the index; None is without bound."""

@final
class Change(Generic[OfTable]):
    """A row that was inserted, updated or deleted."""

    @property
    def kind(self) -> str:
        """ "insert", "update" or "delete"."""

    @property
    def row(self) -> OfTable:
        """The row; of a deletion with its last values."""

    @property
    def table(self) -> str: ...
    @property
    def columns(self) -> FrozenSet[str]:
        """The columns that an update changed."""

    @property
    def old(self) -> Dict[str, Any]:
        """The values before, of the columns that an update changed."""

    def added(self, column: str) -> Any:
        """The elements that an update put into a column, as a value of the column. Costs what changed."""

    def removed(self, column: str) -> Any:
        """The elements that an update took from a column, as a value of the column. Costs what changed."""

@final
class Watch:
    """The changes of some tables from one moment on. It ends with the object; changes that are not taken are kept until then."""

    def take(self) -> List[Change]:
        """Takes the changes since the last call."""

@final
class History:
    """A reading of the history, or a query of a moment, under way."""

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""

    def is_ready(self) -> bool:
        """Whether ``take`` has something to do."""

    def take(self) -> Optional[Tuple[List[str], Optional[int], float]]:
        """Takes the next page, or asks for it: None then, and at the end. Lines, the date that it has reached in ms, and the part that has been read."""

    def cancel(self) -> None:
        """Ends it, also at the server. Nothing is awaited."""

# Not final for type checkers: generated modules narrow its methods to the names of a schema. A program cannot derive of it.
class Transaction:
    """A transaction: open until it is committed or aborted, then a record of its outcome."""

    def insert(self, table: str, /, **values: Any) -> Row:
        """Inserts a row. Columns that are not named have their defaults."""

    def insert_as(self, table: str, uuid: UUID, persistent: bool) -> Any:
        """Inserts a row that goes by a UUID of the caller's: until it is committed, or for good with ``persistent``."""

    def add_operation(self, json: str) -> None:
        """Adds an operation of RFC 7047 5.2, as JSON, behind all others."""

    def delete(self, row: RowBase) -> None:
        """Deletes a row. One of a table that is not a root goes when nothing refers to it any more."""

    def add(self, row: RowBase, column: str, /, *elements: Any) -> None:
        """Adds elements to a set. Other clients may add others at the same time."""

    def remove(self, row: RowBase, column: str, /, *elements: Any) -> None:
        """Removes elements from a set, or keys from a map."""

    def set_key(self, row: RowBase, column: str, key: Any, object: Any) -> None:
        """Sets the value of a key of a map."""

    def verify(self, row: RowBase, /, *columns: str) -> None:
        """Commits only if columns still have the values that they have now. Call it before they are written."""

    def increment(self, row: RowBase, column: str, *, force: bool = False) -> None:
        """Adds one to a column at the end, if anything else changes or with ``force``."""

    def comment(self, text: str) -> None:
        """Adds a line to the comment that the server logs."""

    def set_dry_run(self) -> None:
        """Has the server try the transaction and undo it."""

    def commit(self) -> str:
        """Sends the changes. Returns the status."""

    def abort(self) -> None:
        """Gives the transaction up. One that was sent may be committed all the same."""

    def touched_rows(self) -> List[Any]:
        """The rows that it inserts, changes or deletes, while it is open."""

    def written_columns(self, row: RowBase) -> List[str]:
        """The names of the columns of a row that it has changed, while it is open."""

    @property
    def status(self) -> str:
        """ "uncommitted", "unchanged", "incomplete", "aborted", "success", "try again", "not locked" or "error"."""

    @property
    def refusal(self) -> Optional[Tuple[Optional[str], str, Optional[int]]]:
        """Why the server refused it: the tag of the error, its details, the place of the operation."""

    @property
    def error(self) -> Optional[str]:
        """The first result with an error, as JSON, or why there is none."""

    def inserted_uuid(self, row: RowBase) -> Optional[UUID]:
        """The UUID of the row that an inserted row has become."""

    def inserted(self, row: AnyRow) -> AnyRow:
        """The row that an inserted row has become, after success."""

    @property
    def incremented_to(self) -> Optional[int]:
        """The value of the incremented column, after success."""

@final
class Client:
    """A client without a way to wait; the fronts have one of these as ``native``."""

    def __init__(
        self,
        schema: Schema,
        remotes: str,
        columns: Dict[str, Dict[str, str]],
        *,
        leader_only: bool = True,
        retry: bool = True,
        shuffle: bool = True,
        probe_interval: Optional[float] = None,
        lock: Optional[str] = None,
        private_key: Optional[str] = None,
        certificate: Optional[str] = None,
        ca_cert: Optional[str] = None,
        check_remotes: bool = True,
        row_classes: Optional[Mapping[str, Type[RowBase]]] = None,
        live_rows: Optional[Callable[[Client, str, bytes], RowBase]] = None,
        read_only: Optional[Sequence[Tuple[str, str]]] = None,
        unregistered: Optional[Sequence[Tuple[str, str, str]]] = None,
    ) -> None: ...
    def set_tls_files(
        self, private_key: Optional[str] = None, certificate: Optional[str] = None, ca_cert: Optional[str] = None
    ) -> None:
        """Sets the files for TLS, from the next connection on."""

    def show_messages(self, shows_messages: bool) -> None:
        """Whether each message of the session is logged at level DEBUG, from now on."""

    def run(self) -> bool:
        """Does all work that needs no waiting. Returns whether something changed."""

    def run_until_change(self) -> bool:
        """As ``run``, but returns as soon as something has changed: call it again until it returns False."""

    def check_process(self) -> None:
        """Raises ``UsageError`` in a process that was forked after the client began to connect."""

    def wait(self) -> Tuple[Optional[int], bool, bool, Optional[float]]:
        """The events to wait for: descriptor, readable, writable, seconds."""

    def close(self) -> None:
        """Ends the session."""

    @property
    def schema(self) -> Schema: ...
    def server_schema(self) -> Optional[Schema]:
        """The schema of the last server."""

    @property
    def seqno(self) -> int: ...
    @property
    def session(self) -> Session: ...
    def set_remotes(self, remotes: str) -> None: ...
    def set_leader_only(self, leader_only: bool) -> None: ...
    def set_probe_interval(self, interval: Optional[float]) -> None: ...
    def set_lock(self, name: Optional[str]) -> None: ...
    def reconnect(self) -> None: ...
    def rows(self, table: str) -> List[Any]: ...
    def row_count(self, table: str) -> int: ...
    def row(self, table: str, uuid: Union[UUID, RowBase, str]) -> Optional[Any]: ...
    def begin(self) -> Transaction: ...
    def add_index(self, table: str, columns: Sequence[str]) -> Index[Any]: ...
    def set_condition(self, table: str, clauses: Optional[Sequence[Tuple[str, str, Any]]]) -> int: ...
    def condition_refusal(self, promise: int) -> Optional[str]: ...
    def set_condition_json(self, table: str, json: str) -> int:
        """As ``set_condition``, with a condition as JSON: an array of clauses and booleans."""

    def set_cluster_id(self, cluster_id: Optional[str]) -> None: ...
    @property
    def remotes(self) -> List[str]: ...
    @property
    def last_id(self) -> str:
        """The id of the last transaction that the contents include."""

    @property
    def resync_epoch(self) -> int:
        """Grows whenever rows were dropped without a notification."""

    def forget_row(self, row: RowBase) -> None:
        """The object of a row is not that of the row any more."""

    def row_class(self, table: str, base: Type[RowBase]) -> Type[RowBase]:
        """The class of a table's rows: ``base`` with an attribute for each column."""

    def forget_rows(self) -> None: ...
    def has_row(self, table: str, uuid: Union[UUID, RowBase, str]) -> bool: ...
    def uuids(self, table: str) -> List[UUID]:
        """The UUIDs of a table's rows."""

    @property
    def condition_seqno(self) -> int: ...
    def watch(self, tables: Sequence[str]) -> Watch: ...
    def fetch(self, table: str, column: Optional[str], row: Optional[RowBase]) -> int: ...
    def fetch_outcome(self, fetch: int) -> Tuple[bool, Optional[str]]: ...
    def read_history(self, read: str, members: Sequence[Tuple[str, str]], newest: Optional[int]) -> History:
        """Begins to read the history: what to read, and the members of the question."""

    def select_at(self, moment: str, operations: str) -> History:
        """Begins to query the contents at a moment; the operations are a JSON array."""

    def metrics(self) -> List[Tuple[str, int]]: ...

def inherit_connections() -> None:
    """Gives the clients that the parent has connected to this process, a child that was just forked.

    For daemons that detach after they have run a client. The parent must not use its clients any more.
    """

def take_log_messages() -> List[Tuple[int, str, str]]:
    """Takes the messages since the last call: level, name of the logger, text."""
