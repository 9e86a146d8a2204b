"""A manifest as the tool of a model's API, as Skillware gives it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

UNKNOWN = "unknown_tool"
LONGEST_NAME = 64


def tool_name(name: str) -> str:
    """A skill's id as the APIs take it: letters, digits, `_` and `-`, at most 64."""
    safe = re.sub(r"_+", "_", re.sub(r"[^a-zA-Z0-9_-]", "_", str(name or ""))).strip("_")
    return safe[:LONGEST_NAME] or UNKNOWN


def openai_tool(bundle: Mapping[str, Any]) -> dict[str, Any]:
    name, description, parameters = _contract(bundle)
    function = {"name": tool_name(name), "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def claude_tool(bundle: Mapping[str, Any]) -> dict[str, Any]:
    name, description, parameters = _contract(bundle)
    return {"name": tool_name(name), "description": description, "input_schema": parameters}


def bedrock_tool(bundle: Mapping[str, Any]) -> dict[str, Any]:
    name, description, parameters = _contract(bundle)
    return {
        "toolSpec": {
            "name": tool_name(name),
            "description": description,
            "inputSchema": {"json": parameters},
        }
    }


def gemini_tool(bundle: Mapping[str, Any]) -> Any:
    try:
        types = importlib.import_module("google.genai.types")
    except ImportError as error:
        raise ImportError("a Gemini tool needs its SDK: pip install google-genai") from error
    name, description, parameters = _contract(bundle)
    declaration = {
        "name": tool_name(name),
        "description": description,
        "parameters": _with_upper_types(parameters),
    }
    return types.Tool(function_declarations=[declaration])


def ollama_prompt(bundle: Mapping[str, Any]) -> str:
    """A description for models without tool calling."""
    name, description, parameters = _contract(bundle)
    properties = parameters.get("properties") or {}
    required = parameters.get("required") or []
    lines = [f"### Tool: `{name}`", f"**Description:** {description.strip()}", "**Parameters:**"]
    for key, schema in properties.items():
        need = "Required" if key in required else "Optional"
        kind, about = schema.get("type", "any"), schema.get("description", "")
        lines.append(f"- `{key}` ({kind}): {about} [{need}]")
    if not properties:
        lines.append("- None")
    return "\n".join(lines) + "\n"


def _contract(bundle: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    manifest = bundle.get("manifest", {})
    return (
        manifest.get("name", UNKNOWN),
        manifest.get("description", ""),
        manifest.get("parameters", {}),
    )


def _with_upper_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Gemini writes types in capitals."""
    changed = dict(schema)
    if isinstance(changed.get("type"), str):
        changed["type"] = changed["type"].upper()
    if "properties" in changed:
        properties = changed["properties"].items()
        changed["properties"] = {key: _with_upper_types(value) for key, value in properties}
    return changed
