"""Studies: items, stages and a model, with the methods `ask()` and `tell()`."""

from steelyard.study.config import Stage, StudyConfig, parse_config, read_config
from steelyard.study.forgetting import ForgetReport, forget
from steelyard.study.rebuild import differing_picks, exported_log, read_log, rebuild, write_log
from steelyard.study.status import StageStatus, Status
from steelyard.study.study import Study

__all__ = [
    "ForgetReport",
    "Stage",
    "StageStatus",
    "Status",
    "Study",
    "StudyConfig",
    "differing_picks",
    "exported_log",
    "forget",
    "parse_config",
    "read_config",
    "read_log",
    "rebuild",
    "write_log",
]
