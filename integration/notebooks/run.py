"""Runs a notebook as a reader would, in a kernel of its own.

Usage: run.py NOTEBOOK GATEWAY. Prints a JSON line for each output of its code
cells: cell, counting from 0, and kinds of the output with the text of those that
are text. A cell that fails ends the run with its trace.
"""

import json
import os
import pathlib
import sys
import tempfile

import nbclient
import nbformat
from traitlets.config import Config


def main(path, gateway):
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.get("outputs") or cell.get("execution_count"):
            sys.exit(f"{path} is kept with outputs: clear them")
    build = pathlib.Path(__file__).resolve().parents[2] / "build"
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"GATEWAY": gateway, "JUPYTER_RUNTIME_DIR": home, "IPYTHONDIR": home, "MPLCONFIGDIR": str(build / "matplotlib")}
        # The kernel talks through files of its own: no port, and no name, that another could take.
        config = Config(KernelManager={"transport": "ipc", "ip": str(pathlib.Path(home) / "kernel")})
        nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3", config=config).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for i, cell in enumerate(code):
        for output in cell.outputs:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            print(json.dumps({"cell": i, "kinds": sorted(output.get("data", {})), "text": text}))


if __name__ == "__main__":
    main(*sys.argv[1:])
