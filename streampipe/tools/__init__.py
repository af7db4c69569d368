"""Tools: typed functions that a model can call."""

from streampipe.tools._tool import FunctionTool, as_tool, tool, tools_by_name

__all__ = ["FunctionTool", "as_tool", "tool", "tools_by_name"]
