"""The smallest Excel workbook a reader accepts, written by hand: no writer library is a dependency of Lakescope.

Text goes in as inline strings, dates as serial numbers with a date style. Zip entries carry a fixed time, so the same
sheets give the same bytes.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_EPOCH = dt.date(1899, 12, 30)
_STYLES = (
    f'{_XML}<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf/>'
    '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>'
)


def write_xlsx(path: Path, sheets: Mapping[str, pa.Table]) -> None:
    """Write one workbook with the given sheets, each a header row and the rows of its table."""
    names = list(sheets)
    parts = {
        "[Content_Types].xml": _content_types(len(names)),
        "_rels/.rels": f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_REL}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": _workbook(names),
        "xl/_rels/workbook.xml.rels": _workbook_rels(len(names)),
        "xl/styles.xml": _STYLES,
    }
    for number, name in enumerate(names, 1):
        parts[f"xl/worksheets/sheet{number}.xml"] = _sheet(sheets[name])
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            book.writestr(info, part.encode())


def _content_types(sheets: int) -> str:
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for n in range(1, sheets + 1)
    )
    return (
        f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>{overrides}</Types>'
    )


def _workbook(names: list[str]) -> str:
    sheets = "".join(f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
    return f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>{sheets}</sheets></workbook>'


def _workbook_rels(sheets: int) -> str:
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{_REL}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, sheets + 1)
    )
    styles = f'<Relationship Id="rId{sheets + 1}" Type="{_REL}/styles" Target="styles.xml"/>'
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{links}{styles}</Relationships>'


def _sheet(table: pa.Table) -> str:
    rows = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    body = "".join(
        f'<row r="{r}">{"".join(_cell(value, r, c) for c, value in enumerate(row))}</row>'
        for r, row in enumerate(rows, 1)
    )
    return f'{_XML}<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData></worksheet>'


def _cell(value: Any, row: int, column: int) -> str:
    where = f"{chr(ord('A') + column)}{row}"  # demo sheets stay below 26 columns
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{where}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{where}"><v>{value!r}</v></c>'
    if isinstance(value, dt.date):
        return f'<c r="{where}" s="1"><v>{(value - _EPOCH).days}</v></c>'
    return f'<c r="{where}" t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'
