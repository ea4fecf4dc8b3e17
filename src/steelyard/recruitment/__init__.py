"""Recruitment: links from any panel, and studies on Prolific."""
