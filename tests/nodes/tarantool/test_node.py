"""What the operator's hand does in a real Tarantool (`node.lua`), where somebody else's hand is at work as well."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import needs

NODE = Path(__file__).parents[3] / "nodes" / "tarantool" / "node.lua"
BESIDE = """
local config = {members = {'n1', 'n2', 'n3'}}
local function addresses(members) return members end
local calls = 0
-- box.cfg yields: whoever asked meanwhile comes in between. Here that is whoever tells of a member that left.
box = {cfg = setmetatable({replication = addresses(config.members)}, {__call = function(cfg, options)
    calls = calls + 1
    for name, value in pairs(options) do cfg[name] = value end
    if calls == 1 then
        config.members = {'n1', 'n2'}
        box.cfg{replication = addresses(config.members)}
    end
end})}
qsync = {}
"""
TELL = """
qsync.resume()
print(table.concat(box.cfg.replication, ' '))
os.exit(0)
"""


@pytest.mark.real
@needs.tarantool
def test_replication_is_resumed_from_those_who_are_members_then(tmp_path: Path) -> None:
    """If it failed, an operator who starts replication anew while members change would undo the change at that node,
    and the store be accused of a node that never gets what the others have."""
    found = re.search(r"^function qsync\.resume\(\).*?^end$", NODE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    script = tmp_path / "resume.lua"
    script.write_text(BESIDE + found[0] + TELL)
    done = subprocess.run(
        ["tarantool", str(script)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["n1", "n2"]
