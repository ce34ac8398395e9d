"""Names the wheel after the system that its library was built for; any Python 3 can load that."""

import sysconfig
from pathlib import Path
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        library = Path(self.root, "src", "bezant", "libbezant_ffi.so")
        if not library.is_file():
            raise RuntimeError(f"{library} is not there: `cargo xtask wheel` builds it")
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{system}"
