"""Strangers' graphs: checked, written anew, and run in a process that may do little.

    graph.py      a file is parsed, understood and written anew; what is not understood is refused
    operators.py  the operators that are allowed, and how each keeps rows apart
    trial.py      a graph is tried as it will be used
    worker.py     the limited process; process.py starts it and asks it

Importing this room loads neither onnx nor onnxruntime.
"""

from anymix.sandbox.messages import rows_from_bytes as rows_from_bytes
from anymix.sandbox.messages import rows_to_bytes as rows_to_bytes
from anymix.sandbox.process import LimitedProcess, limited_process
from anymix.sandbox.session import ask_in_blocks as ask_in_blocks
from anymix.sandbox.session import blocks_of as blocks_of
from anymix.sandbox.session import open_session as open_session
from anymix.sandbox.shapes import Refused as Refused

__all__ = ["LimitedProcess", "limited_process"]
