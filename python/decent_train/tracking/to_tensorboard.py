"""Runs as TensorBoard's event files."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from .errors import TrackingError
from .folder import RunFolder
from .ledger import Ledger
from .row import Row
from .tracker import Options

# Beside the figures of each line: which line it is. TensorBoard shows nothing of a plugin that it does not have.
_LINE = "decent_train/line"
_QUEUE = 1000  # records on their way to the file


class TensorboardTracker:
    """Each process writes a file of its own. A record has all figures of a line and says which line it is, so the files
    tell what they hold; a record that was being written when the process was killed counts for nobody.
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        base = options.dir or folder.path.resolve().parent / "tensorboard"
        self.logdir = base / f"{re.sub(r'[^A-Za-z0-9._-]', '_', folder.name)}-{folder.id[:8]}"
        self._folder = folder
        self.sent = Ledger()
        try:
            for identity in _lines_in(self.logdir):
                self.sent.note(identity)
            _wait_for_a_new_name(self.logdir)
            self._writer = EventFileWriter(str(self.logdir), max_queue_size=_QUEUE)
        except OSError as error:
            raise _cannot_write(self.logdir, error) from error
        self.describe()

    def send(self, rows: deque[Row]) -> None:
        written = []
        for row in rows:
            if row.back is not None:  # TensorBoard then forgets the later steps that it has
                self._add(Event(wall_time=row.time, step=row.back + 1, session_log=SessionLog(status=SessionLog.START)))
            values = [Summary.Value(tag=name, simple_value=value) for name, value in row.values.items()]
            values.append(_text_value(_LINE, json.dumps(row.identity), "decent_train"))
            self._add(Event(wall_time=row.time, step=row.step, summary=Summary(value=values)))
            written.append(row)
        self._flush()
        for row in written:
            rows.popleft()
            self.sent.note(row.identity)

    def describe(self) -> None:
        texts = {"recipe": _verbatim(self._folder.recipe), "starts": _verbatim(self._folder.starts_text())}
        values = [_text_value(name, text, "text") for name, text in texts.items() if text]
        self._add(Event(wall_time=self._folder.start_times()[-1][1], step=0, summary=Summary(value=values)))
        self._flush()

    def tell(self, status: str) -> None:
        """TensorBoard keeps no such thing while more may follow."""

    def finish(self, status: str, files: list[Path]) -> None:
        self._flush()

    def _add(self, event: Event) -> None:
        try:
            self._writer.add_event(event)
        except OSError as error:
            raise _cannot_write(self.logdir, error) from error

    def _flush(self) -> None:
        try:
            self._writer.flush()
        except OSError as error:
            raise _cannot_write(self.logdir, error) from error


def _lines_in(logdir: Path) -> Iterator[list]:
    for file in sorted(logdir.glob("events.out.tfevents.*")):
        for record in RawEventFileLoader(str(file)).Load():
            for value in Event.FromString(record).summary.value:
                if value.tag == _LINE:
                    yield json.loads(value.tensor.string_val[0])


def _wait_for_a_new_name(logdir: Path) -> None:
    """The files are read in the order of their names, which begin with the second."""
    while any(logdir.glob(f"events.out.tfevents.{int(time.time()):010d}.*")):
        time.sleep(0.05)


def _text_value(tag: str, text: str, plugin: str) -> Summary.Value:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode(errors="replace")], tensor_shape=shape)
    return Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def _verbatim(text: str) -> str:
    """In Markdown."""
    return "".join(f"    {line}\n" for line in text.splitlines())


def _cannot_write(logdir: Path, error: OSError) -> TrackingError:
    return TrackingError(f"cannot write event files to '{logdir}': {error.strerror or error}", 6)


