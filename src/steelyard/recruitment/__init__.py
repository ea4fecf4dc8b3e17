"""Reaching people: links from any panel, and studies on Prolific."""
