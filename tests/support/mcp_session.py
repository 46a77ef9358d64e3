"""A session of an assistant with `tracebridge mcp`, by the protocol's own Python client. Prints one JSON object: of each
step the answer's bytes, whether it was an error, and the answer.

usage: mcp_session.py TRACEBRIDGE ROOT STEPS, where STEPS is a JSON list of [tool, arguments]; the arguments
{"cancelled": true} in a third place cancel the call after half a second."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def step(session, tool, arguments, is_cancelled):
    if is_cancelled:
        # The client tells the server that it no longer waits.
        call = asyncio.create_task(session.call_tool(tool, arguments))
        await asyncio.sleep(0.5)
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            return {"tool": tool, "cancelled": True}
        return {"tool": tool, "cancelled": False}
    result = (await session.call_tool(tool, arguments)).model_dump(by_alias=True)
    text = result["content"][0]["text"]
    return {"tool": tool, "error": bool(result.get("isError")), "bytes": len(text.encode()), "answer": json.loads(text)}


async def main():
    import os

    program, root, steps = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    server = StdioServerParameters(
        command=program, args=["mcp", "--allow-devices", "--root", root], env=dict(os.environ)
    )
    async with stdio_client(server) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            pages = [str(page.uri) for page in (await session.list_resources()).resources]
            done = [await step(session, tool, arguments, bool(rest)) for tool, arguments, *rest in steps]
    print(json.dumps({"tools": tools, "pages": pages, "steps": done}))


asyncio.run(main())
