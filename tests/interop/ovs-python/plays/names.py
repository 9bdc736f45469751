"""The public names of each module: functions, classes and their methods, with their arguments."""
# differs: pypi: ^ovs\.poller\.(eventlet_patcher|gevent_monkey): the poller works with green threads without asking for them
# more on ours: names of our own harm nobody
# differs: pypi: ^ovs\.stream\.SSLStream __init__: an argument of the class above it too
# not on: debian: the names are those of the newest version
# differs: pypi: ^ovs\.db\.(types|data)\..*(cInit|cDecl|initCDefault|copyCValue|toCType|toAtomicType|to_const_c_type|to_[lr]value_string|escapeCString|returnUnchanged): parts of the generator of C, which ovsdb-idlc is
# differs: pypi: ^ovs\.db\.idl\.Idl (ack_conditions|compose_cond_change|handle_monitor|monitor_map|restart_fsm|send_cond_change|send_request|sync_conditions): the state machine of the session is in the core
# differs: pypi: ^ovs\.timeval\.(CLOCK_MONOTONIC|LIBRT|clock_gettime_name|timespec): Python has a monotonic clock of its own now
# differs: pypi: ^ovs\.json\.Parser c$: the parser in C
# differs: pypi: ^ovs\.(db\.)?\w+\.vlog$: a variable of the module

import importlib
import inspect

MODULES = [
    "ovs", "ovs.daemon", "ovs.dirs", "ovs.fatal_signal", "ovs.json", "ovs.jsonrpc", "ovs.ovsuuid", "ovs.poller", "ovs.process", "ovs.reconnect",
    "ovs.socket_util", "ovs.stream", "ovs.timeval", "ovs.unixctl", "ovs.unixctl.client", "ovs.unixctl.server", "ovs.util", "ovs.version", "ovs.vlog",
    "ovs.db.custom_index", "ovs.db.data", "ovs.db.error", "ovs.db.idl", "ovs.db.parser", "ovs.db.schema", "ovs.db.types",
]


def arguments(function):
    """The names of the arguments, with a mark for those that may be left out."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = [str(p.kind.name)[0] * (p.kind.name.startswith("VAR")) + p.name + "=" * (p.default is not p.empty) for p in parameters]
    return "(" + ", ".join(shown) + ")"


def members(name, of_class):
    """The methods of a class, those of bases in the package included."""
    for member in sorted(dir(of_class)):
        if member.startswith("_") and member != "__init__":
            continue
        value = inspect.getattr_static(of_class, member)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if inspect.isfunction(value):
            print(name, member, arguments(value))
        elif not inspect.isroutine(value):
            print(name, member)


def main():
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        print(module_name)
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or inspect.ismodule(value):
                continue
            if not getattr(value, "__module__", module_name).startswith("ovs"):
                continue
            full = f"{module_name}.{name}"
            if inspect.isclass(value):
                if value.__module__ == module_name:
                    members(full, value)
            elif inspect.isfunction(value):
                if value.__module__ == module_name:
                    print(full, arguments(value))
            else:
                print(full)


main()
