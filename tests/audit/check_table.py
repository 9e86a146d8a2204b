"""Reads the table on stdin as a spreadsheet would, and looks for cells that it would execute."""
import csv
import io
import json
import sys

COLUMNS = ("time seq run_id n event skill skill_version actor request_id pid tid ppid target outcome reason data "
           "hash").split()
text = sys.stdin.buffer.read().decode()
assert text.endswith("\r\n")
rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
assert rows[0] == COLUMNS, rows[0]
guarded = 0
for row in rows[1:]:
    assert len(row) == len(COLUMNS), row
    for cell in row:
        assert not cell.startswith(tuple("=+-@\t\r\n")), cell
        assert "\x1b" not in cell and "\x9b" not in cell, cell
        guarded += cell.startswith("'=")
    json.loads(row[COLUMNS.index("data")])
print(json.dumps({"rows": len(rows) - 1, "guarded": guarded}))
