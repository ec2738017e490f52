"""Uses an export as a program does that has TensorFlow and a copy of `restored.py`, and nothing of this project.

python away.py <package that must not be imported> <folder with restored.py> <export> <inputs.npz> <outputs.npz>
"""

import importlib
import sys
from typing import Any

import numpy as np

package, folder, export, inputs, outputs = sys.argv[1:]
sys.modules[package] = None  # type: ignore[assignment]  # importing it raises ImportError
sys.path.insert(0, folder)
restored = importlib.import_module("restored")

given = np.load(inputs)
model = restored.load(export)
found: dict[str, Any] = {}
for count in (1, 3, 64):
    found[f"inference {count}"] = model.inference(given["x"][:count])["inference"]
found["loss"] = model.loss(given["x"], given["y"])["loss"]

graph = restored.get_graph(model.inference)
found["shape of logits"] = restored.get_tensor(graph, "logits").shape.as_list()[1:]
found |= restored.run(model.inference, ["logits", "inference"], {"x": given["x"]})
fed = restored.run(model.inference, ["inference"], {"logits": given["dummy"]})
found["inference of dummy"] = fed["inference"]

steps = zip(given["steps x"], given["steps y"], strict=True)
found["losses"] = [model.optimize(x, y)["loss"] for x, y in steps]
found |= {f"variable {name}": v.numpy() for name, v in model.variables.items()}
np.savez(outputs, **found)
