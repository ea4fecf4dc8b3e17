"""Experiments with groups of annotators."""

from reproductions.perspectives.groups import Groups

EXPERIMENTS = (Groups,)
