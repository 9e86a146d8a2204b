# Runs one skill class inside its cell: params on descriptor 3, one frame out on descriptor 4.
# Only builtin modules are imported up front: start-up time is imports, and `json` alone costs more
# than the whole cell. Plain values travel as marshal, which the supervisor reads as hostile input.
import marshal, posix, sys


def read_all(fd):
    parts = []
    while True:
        part = posix.read(fd, 1 << 20)
        if not part:
            posix.close(fd)
            return b"".join(parts)
        parts.append(part)


def send(kind, payload):
    data = kind + len(payload).to_bytes(8, "little") + payload
    view = memoryview(data)
    while view:
        view = view[posix.write(4, view):]


def finish(kind, payload):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    send(kind, payload)
    posix._exit(0)


def fail(stage, error, call):
    root = call["skill"] + "/"
    frames, tb = [], error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith(root):
            frames.append("%s:%d in %s" % (code.co_filename[len(root):], tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(root):
        frames.append("%s:%s: %s" % (error.filename[len(root):], error.lineno, (error.text or "").strip()))
    try:
        message = str(error)
    except Exception:
        message = "(the exception has no readable message)"
    module = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    report = {"stage": stage, "type": type(error).__name__, "message": message, "frames": frames[-20:], "module": module}
    text = {key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for key, value in report.items()}
    text["frames"] = [frame.encode("utf-8", "replace").decode() for frame in report["frames"]]
    finish(b"E", marshal.dumps(text, 2))


class LoadError(Exception):
    pass


def own_package(call):
    # `skills.<category>.<name>` means this bundle and no other: an installed package of that name
    # must not stand in front of the bundle's own files.
    names = call["package"]
    if not names:
        return
    module = type(sys)
    for depth in range(1, len(names) + 1):
        name = ".".join(names[:depth])
        package = module(name)
        package.__path__ = [call["skill"]] if depth == len(names) else []
        package.__package__ = name
        sys.modules[name] = package
        if depth > 1:
            setattr(sys.modules[".".join(names[:depth - 1])], names[depth - 1], package)


external = sys.modules["_frozen_importlib_external"]
bootstrap = sys.modules["_frozen_importlib"]


class FromSource(external.SourceFileLoader):
    # Compiled files in a bundle's __pycache__ are not part of its digest, so they are never run.
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def bundle_finder(root):
    kinds = [(external.ExtensionFileLoader, sys.modules["_imp"].extension_suffixes()), (FromSource, [".py"]), (external.SourcelessFileLoader, [".pyc"])]

    def finder(path):
        if path != root and not path.startswith(root + "/"):
            raise ImportError
        return external.FileFinder(path, *kinds)
    return finder


def load(call):
    path = call["skill"] + "/" + call["file"]
    loader = FromSource("skill_module", path)
    spec = external.spec_from_file_location("skill_module", path, loader=loader)
    module = bootstrap.module_from_spec(spec)
    sys.modules["skill_module"] = module
    loader.exec_module(module)
    return module


def find_class(module, file):
    own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == "skill_module"]
    own = list(dict.fromkeys(own))
    found = [c for c in own if any(b.__name__ == "BaseSkill" and b is not c for b in c.__mro__)]
    if not found:
        found = [c for c in own if callable(getattr(c, "execute", None)) or callable(getattr(c, "aexecute", None))]
    if len(found) != 1:
        names = ", ".join(c.__name__ for c in found) or "none"
        raise LoadError("%s must define exactly one skill class (a BaseSkill subclass, or a class with execute); found: %s" % (file, names))
    return found[0]


def construct(cls):
    init = cls.__init__
    code = getattr(init, "__code__", None)
    if init is object.__init__ or code is None:
        return cls()
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    if "config" in names:
        return cls(config={})
    required = code.co_argcount - 1 - len(init.__defaults__ or ())
    return cls({}) if required == 1 else cls()


def main():
    call = marshal.loads(read_all(3))
    posix.set_inheritable(4, False)
    sys.argv = [call["skill"] + "/" + call["file"]]
    stage = "load"
    try:
        sys.path_hooks.insert(0, bundle_finder(call["skill"]))
        sys.path.insert(0, call["skill"])
        if call["deps"]:
            import site
            for folder in call["deps"]:
                site.addsitedir(folder)
        own_package(call)
        import builtins
        if not hasattr(builtins, "exit"):
            builtins.exit = builtins.quit = sys.exit
        skill = construct(find_class(load(call), call["file"]))
        stage = "execute"
        run = getattr(skill, "execute", None) or skill.aexecute
        value = run(call["params"])
        if hasattr(value, "__await__"):
            import asyncio

            async def wait():
                return await value
            value = asyncio.run(wait())
        stage = "result"
        try:
            kind, payload = b"M", marshal.dumps(value, 2)
        except ValueError:
            import json
            kind, payload = b"J", json.dumps(value, allow_nan=False).encode("utf-8", "surrogatepass")
    except MemoryError as error:
        fail(stage, error, call)
    except BaseException as error:
        if isinstance(error, SystemExit) and stage == "execute":
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            code = error.code
            posix._exit(code if isinstance(code, int) else 0 if code is None else 1)
        fail(stage, error, call)
    finish(kind, payload)


main()
