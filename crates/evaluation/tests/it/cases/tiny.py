"""Makes tiny.parquet: python3 -m venv v && v/bin/pip install pyarrow && v/bin/python tiny.py"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
rows = [
    {"task_id": "p-1", "task_question": "Wie heißt der Fluss?", "ground_truth": "Inn", "metadata": {"Level": 2},
     "tags": ["a", "b"], "score": 0.5, "blob": b"\x89PNG"},
    {"task_id": "p-2", "task_question": "Second?", "ground_truth": None, "metadata": {"Level": 1},
     "tags": [], "score": None, "blob": None},
    {"task_id": "p-3", "task_question": "Third?", "ground_truth": "7", "metadata": None,
     "tags": None, "score": 1e9, "blob": b"text"},
]
pq.write_table(pa.Table.from_pylist(rows), here / "tiny.parquet", compression="snappy")
gaia = [
    {"task_id": "g-1", "Question": "How many arches has the bridge in the picture?", "Level": "1",
     "Final answer": "9", "file_name": "bridge.png", "file_path": "2023/validation/bridge.png",
     "Annotator Metadata": {"Steps": "Count."}},
    {"task_id": "g-2", "Question": "In which year was the ferry sold?", "Level": "2",
     "Final answer": "1931", "file_name": "", "file_path": "", "Annotator Metadata": {"Steps": "Look it up."}},
]
pq.write_table(pa.Table.from_pylist(gaia), here / "gaia.parquet", compression="gzip")
