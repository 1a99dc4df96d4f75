"""Structured answers: the model gives one by calling a tool."""

from __future__ import annotations

import json
from typing import Any

from ..errors import WrongForm
from ..message import ToolUseBlock
from ..model.base import StructuredModel
from ..model.parsing import whole_arguments_of
from ..model.schemas import Schema
from ..model.structured import json_schema_of, validated
from ..tool import ToolResponse, told
from ..tool.calling import UNREADABLE, arguments_in

ANSWER_TOOL = "generate_response"
_PLEASE = """\
Give your answer by calling {tool}, once you have all that it asks for. If you cannot call it,
answer with one JSON object of this schema and nothing else:
{schema}"""
_DESCRIPTION = "Give your final answer. Call this when you are done, and only then."


class StructuredAnswer:
    """The schema of an answer, and the answer itself (``value``) once there is one."""

    def __init__(self, structured_model: StructuredModel) -> None:
        self._model = structured_model
        self._schema = {"type": "object", **json_schema_of(structured_model)}
        self.value: dict[str, Any] | None = None

    @property
    def json_schema(self) -> Schema:
        """The schema of the tool."""
        function = {"name": ANSWER_TOOL, "description": _DESCRIPTION, "parameters": self._schema}
        return {"type": "function", "function": function}

    @property
    def reminder(self) -> str:
        """A hint for a model that answered without calling the tool."""
        return _PLEASE.format(tool=ANSWER_TOOL, schema=json.dumps(self._schema))

    @property
    def text(self) -> str:
        """The answer as text, for readers that ignore metadata."""
        return json.dumps(self.value, ensure_ascii=False)

    def take(self, tool_call: ToolUseBlock) -> ToolResponse:
        """Read the answer from a call of the tool; the response says whether it is valid."""
        given = arguments_in(tool_call)
        if given is None:
            return told(UNREADABLE)
        try:
            self.value = validated(self._model, given)
        except WrongForm as error:
            return told(f"Error: {error}. Call {ANSWER_TOOL} again.")
        return told("The answer was taken.")

    def read(self, text: str) -> bool:
        """Read the answer from a text instead of a tool call; return whether it is valid."""
        document = whole_arguments_of(text)
        try:
            self.value = validated(self._model, document)
        except WrongForm:
            return False
        return True
