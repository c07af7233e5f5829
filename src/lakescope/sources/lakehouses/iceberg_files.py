"""How the package pyiceberg opens the files of a table: as everything of a lake is opened, and nothing is written."""

from __future__ import annotations

from typing import Any, NoReturn

from pyiceberg.io import FileIO, InputFile, OutputFile

from lakescope.sources.io import files
from lakescope.sources.io.limits import check_metadata
from lakescope.sources.lakehouses.table_formats import place_of


class _TableFile(InputFile):
    """A file at a place of ours, under the location that the table knows it by."""

    def __init__(self, location: str, place: str) -> None:
        super().__init__(location)
        self._place = place

    def __len__(self) -> int:
        with self.open() as source:
            return int(source.size())

    def exists(self) -> bool:
        try:
            return files.find(self._place) is not None
        except FileNotFoundError:
            return False

    def open(self, seekable: bool = True) -> Any:
        source = files.open_random(self._place)
        # The package reads it whole.
        check_metadata(files.display(self._place), source.size())
        return source


class TableFiles(FileIO):
    """Opens what the metadata of the table in a folder names."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def new_input(self, location: str) -> InputFile:
        return _TableFile(location, place_of(location, self._folder))

    def new_output(self, location: str) -> OutputFile:
        return _refuse(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        _refuse(str(location))


def _refuse(location: str) -> NoReturn:
    raise PermissionError(f"nothing is written to a table that is read: {files.display(location)}")
