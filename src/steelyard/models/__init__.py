"""From observations to scores: one frozen dataclass of settings per model, `fit(observations) -> Fit`.

Import a model from its own module, or by name from `steelyard`; some load a compiler, so none is loaded here.
"""
