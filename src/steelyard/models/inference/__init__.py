"""Estimation shared by the models: Newton steps, Laplace approximation, resampling, diagnostics."""
