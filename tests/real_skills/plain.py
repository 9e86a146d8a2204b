"""Runs a Skillware skill in plain Python, as its own loader does: `plain.py SKILL_DIR < params.json`.

The answer goes to the file named by the second argument, because skills print.
"""
import asyncio
import importlib.util
import inspect
import json
import os
import sys

sys.dont_write_bytecode = True


def load(folder):
    from skillware.core.base_skill import BaseSkill

    spec = importlib.util.spec_from_file_location("skill_module", os.path.join(folder, "skill.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, BaseSkill) and kind is not BaseSkill and kind.__module__ == "skill_module"
    ]
    return found


def main():
    folder, answer = sys.argv[1:]
    params = json.load(sys.stdin)
    skill = load(folder)(config={})
    result = skill.execute(params)
    if inspect.isawaitable(result):
        result = asyncio.run(result)
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(result, file)


main()
