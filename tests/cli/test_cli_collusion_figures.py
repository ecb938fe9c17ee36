"""``ragwitness lab reproduce collusion/fig2b``: its files, and options that do not apply."""

import json


def test_the_command_leaves_the_table_and_refuses_what_does_not_apply(tmp_path, command):
    code, said = command("lab", "reproduce", "collusion/fig2b", "--out", tmp_path)
    assert code == 0, said
    told = json.loads((tmp_path / "collusion/fig2b/table.json").read_text())
    assert told["settings"]["top"] == 10
    assert "| 16 |" in (tmp_path / "collusion/fig2b/table.md").read_text()
    code, said = command("lab", "reproduce", "collusion/fig2b", "--model", "rules")
    assert code == 2
    assert "asks no model" in said
