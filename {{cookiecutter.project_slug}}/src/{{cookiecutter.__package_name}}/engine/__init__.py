"""The wiring of a project: what a team leaves alone, and what updates of the template replace.

The modules that stand here are what a project's own files import:

    actions      what happens during training on which steps
    batches      batches by step: the global batch is a pure function of (data, seed, step)
    command      commands: flags, one-line errors, results
    dataset      a prepared data set, as ``dataset.json`` describes it
    errors       the error of a user's mistake
    examples     where examples come from, in training and to predict
    gradients    one training step
    layers       layers that are right on any number of devices
    metrics      metrics of a split
    optimizers   optimizers by name, or any of Keras
    options      the options that these functions take
    paths        the files that a person names
    random       random numbers by position in the global batch
    summaries    what TensorBoard shows
    trainable    which variables are trained

The folders hold what is behind them: ``data`` (records, shards, splits), ``distribute`` (devices, workers),
``run`` (the trainer and what a run saves), ``export`` and ``system`` (files, start-up).
"""
