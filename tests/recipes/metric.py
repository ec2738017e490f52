"""Both metrics equal scikit-learn's on the same predictions, on one device and on two."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare with scikit-learn."""
    from sklearn.metrics import average_precision_score, roc_auc_score, top_k_accuracy_score

    run = tried.module("run").open_run("runs/whole")
    batch = run.batch("validation", 10_000)
    probabilities, y = run.model.inference(batch["x"]).numpy(), batch["y"].numpy()
    found = tried.results["evaluate"]
    top = top_k_accuracy_score(y, probabilities, k=3, labels=range(10))
    np.testing.assert_allclose(found["top_3"], top, atol=1e-6)
    logits = run.model.outputs(batch["x"], batch["y"])["logits"].numpy()[:, 8]
    np.testing.assert_allclose(found["roc_auc"], roc_auc_score(y == 8, logits), atol=1e-3)
    np.testing.assert_allclose(found["pr_auc"], average_precision_score(y == 8, logits), atol=1e-2)
