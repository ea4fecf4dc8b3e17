"""The calibrated scale: all kinds of judgments on one scale, with annotator effects."""
