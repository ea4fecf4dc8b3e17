"""study.toml: the tables it may hold, reading and checking them, and the resulting configuration."""

from steelyard.study.config.parsing import parse_config, read_config
from steelyard.study.config.study_config import CONFIG_FILE, Stage, StudyConfig

__all__ = ["CONFIG_FILE", "Stage", "StudyConfig", "parse_config", "read_config"]
