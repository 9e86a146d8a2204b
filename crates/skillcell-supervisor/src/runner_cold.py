# The parts of the runner that a plain call doesn't need; see runner.py. Runs with `call`, `finish` and
# `receive` in its globals.
import marshal, posix, sys


class LoadError(Exception):
    pass


def wrong_number(found):
    names = ", ".join(c.__name__ for c in found) or "none"
    raise LoadError("%s must define exactly one skill class (a BaseSkill subclass, or a class with execute); found: %s" % (call["file"], names))


def construct(cls):
    # Constructors differ: `config` is passed where it is taken, and nothing else.
    init = cls.__init__
    code = getattr(init, "__code__", None)
    if code is None:
        return cls()
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    if "config" in names:
        return cls(config={})
    required = code.co_argcount - 1 - len(init.__defaults__ or ())
    return cls({}) if required == 1 else cls()


def packages():
    if call["deps"]:
        import site
        for folder in call["deps"]:
            site.addsitedir(folder)
    # `skills.<category>.<name>` means this bundle and no other: an installed package of that name
    # must not stand in front of the bundle's own files.
    names = call["package"]
    for depth in range(1, len(names) + 1):
        name = ".".join(names[:depth])
        package = type(sys)(name)
        package.__path__ = [call["skill"]] if depth == len(names) else []
        package.__package__ = name
        sys.modules[name] = package
        if depth > 1:
            setattr(sys.modules[".".join(names[:depth - 1])], names[depth - 1], package)


def watch_forks():
    # A resumed process is a child that its libraries know nothing of: what they asked to be done in
    # a child is done then.
    hooks, register = [], posix.register_at_fork

    def remember(*, before=None, after_in_parent=None, after_in_child=None):
        given = {"before": before, "after_in_parent": after_in_parent, "after_in_child": after_in_child}
        register(**{name: hook for name, hook in given.items() if hook is not None})
        if after_in_child is not None:
            hooks.append(after_in_child)
    posix.register_at_fork = remember
    if "os" in sys.modules:
        sys.modules["os"].register_at_fork = remember
    return hooks


def rest(hooks):
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    import gc
    gc.collect()
    gc.freeze()
    posix.write(4, b"T" + bytes(8))
    # Whoever is resumed here gets a first message at once, and does what can be done before there
    # are params.
    sample = receive()
    posix.set_inheritable(3, False)
    posix.set_inheritable(4, False)
    for hook in hooks:
        hook()
    # Their state was made while the skill was loaded, and every call would draw the same numbers.
    for name in ("random", "numpy.random"):
        module = sys.modules.get(name)
        if module is not None:
            module.seed()
    limber(sample)
    call["params"] = receive()


def limber(sample):
    # Memory that every call writes to is made this process's own before somebody waits for it.
    for value in (sample, {"text": "a %s" % (sample,), "number": 1.5, "list": [sample] * 3}):
        marshal.loads(marshal.dumps(value, 2))
    try:
        int("x")
    except ValueError as error:
        str(error)
    sys.stdout.flush()
    sys.stderr.flush()


def wait(value):
    import asyncio

    async def forward():
        return await value
    return asyncio.run(forward())


def as_json(value):
    import json
    return json.dumps(value, allow_nan=False).encode("utf-8", "surrogatepass")


def clean(text):
    return text.encode("utf-8", "replace").decode()


def fail(stage, error):
    if isinstance(error, SystemExit) and stage == "execute":
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        code = error.code
        posix._exit(code if isinstance(code, int) else 0 if code is None else 1)
    root = call["skill"] + "/"
    frames, tb = [], error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith(root):
            frames.append(clean("%s:%d in %s" % (code.co_filename[len(root):], tb.tb_lineno, code.co_name)))
        tb = tb.tb_next
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(root):
        frames.append(clean("%s:%s: %s" % (error.filename[len(root):], error.lineno, (error.text or "").strip())))
    try:
        message = clean(str(error))
    except Exception:
        message = "(the exception has no readable message)"
    module = clean(error.name) if isinstance(error, ModuleNotFoundError) and error.name else None
    report = {"stage": stage, "type": clean(type(error).__name__), "message": message, "frames": frames[-20:], "module": module, "errno": error.errno if isinstance(error, OSError) and isinstance(error.errno, int) else None}
    finish(b"E", marshal.dumps(report, 2))
