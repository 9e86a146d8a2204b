# Runs one skill class inside its cell: what to run and its params on descriptor 3, one frame out on
# descriptor 4. Without params it loads the skill, says so and waits for them, to be resumed from an
# image of that moment as often as there are calls.
# Start-up time is imports and compiling: only builtin modules are imported, `json` alone would cost
# more than the whole cell, and what a plain call doesn't need is in runner_cold.py, as text.
# Plain values travel as marshal, which the supervisor reads as hostile input.
import marshal, posix, sys
external = sys.modules["_frozen_importlib_external"]


def cold(name, *args):
    space = {"call": call, "finish": finish, "receive": receive}
    exec(compile(call["cold"], "<skillcell>", "exec"), space)
    return space[name](*args)


def finish(kind, payload):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    view = memoryview(kind + len(payload).to_bytes(8, "little") + payload)
    while view:
        view = view[posix.write(4, view):]
    posix._exit(0)


class FromSource(external.SourceFileLoader):
    # Compiled files in a bundle's __pycache__ are not part of its digest, so they are never run.
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def finder(path):
    if path != root and not path.startswith(root + "/"):
        raise ImportError
    return external.FileFinder(path, (external.ExtensionFileLoader, sys.modules["_imp"].extension_suffixes()), (FromSource, [".py"]), (external.SourcelessFileLoader, [".pyc"]))


def load():
    path = root + "/" + call["file"]
    loader = FromSource("skill_module", path)
    spec = external.spec_from_file_location("skill_module", path, loader=loader)
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["skill_module"] = module
    loader.exec_module(module)
    own = [v for v in dict.fromkeys(v for v in vars(module).values() if isinstance(v, type)) if v.__module__ == "skill_module"]
    found = [c for c in own if any(b.__name__ == "BaseSkill" and b is not c for b in c.__mro__)]
    found = found or [c for c in own if callable(getattr(c, "execute", None)) or callable(getattr(c, "aexecute", None))]
    if len(found) != 1:
        cold("wrong_number", found)
    init = found[0].__init__
    return found[0]() if init is object.__init__ else cold("construct", found[0])


def receive():
    # Each message has its length in front.
    left, parts = int.from_bytes(posix.read(3, 8), "little"), []
    while left:
        parts.append(posix.read(3, min(left, 1 << 24)))
        left -= len(parts[-1]) or left
    return marshal.loads(b"".join(parts))


call = receive()
posix.set_inheritable(3, False)
posix.set_inheritable(4, False)
root = call["skill"]
sys.argv = [root + "/" + call["file"]]
stage = "load"
try:
    sys.path_hooks.insert(0, finder)
    sys.path.insert(0, root)
    if call["deps"] or call["package"]:
        cold("packages")
    import builtins
    if not hasattr(builtins, "exit"):
        builtins.exit = builtins.quit = sys.exit
    if "params" not in call:
        hooks = cold("watch_forks")
    skill = load()
    if "params" not in call:
        cold("rest", hooks)
    posix.close(3)
    stage = "execute"
    value = (getattr(skill, "execute", None) or skill.aexecute)(call["params"])
    if hasattr(value, "__await__"):
        value = cold("wait", value)
    stage = "result"
    try:
        answer = b"M", marshal.dumps(value, 2)
    except ValueError:
        answer = b"J", cold("as_json", value)
except BaseException as error:
    cold("fail", stage, error)
finish(*answer)
