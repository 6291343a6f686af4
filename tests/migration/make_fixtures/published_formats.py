"""The four whose frameworks are no light packages, written as their published sources write them (README.md).

python tests/migration/make_fixtures/published_formats.py tests/migration/fixtures
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common import SIZE, embed, texts

CHANCE = random.Random(7)
Point = dict[str, Any]
USERS = ("2f1a5c1e-98f7-4a3c-9b59-7a5f3f1c0001", "7b0a51d2-55aa-4f0e-8c11-1d2e3f400002")


def new_id() -> str:
    return str(uuid.UUID(int=CHANCE.getrandbits(128), version=4))


def open_webui() -> Iterator[Point]:
    """Memories of two users, files, a knowledge base, a web search, and a page by the hash of its address."""
    for number, text in enumerate(texts(56)):
        user = USERS[number % 2]
        config: Any = {"engine": "ollama", "model": "nomic-embed-text"}
        kind = number % 5
        if kind == 0:
            place, metadata = f"user-memory-{user}", {"created_at": 1_736_000_000 + number}
        else:
            file = f"{number // 10:08d}-aaaa-4bbb-8ccc-0123456789ab"
            metadata = {
                "name": "plan.pdf", "source": "plan.pdf", "created_by": user, "file_id": file,
                "start_index": number * 10,
                "hash": hashlib.sha256(text.encode()).hexdigest(),
                "embedding_config": config if number % 2 else json.dumps(config),
            }  # fmt: skip
            place = f"file-{file}"
            if kind == 2:
                place = "c0ffee00-1111-4222-8333-444455556666"  # a knowledge base
            elif kind == 3:
                place = "web-search-" + hashlib.sha256(b"query").hexdigest()[:52]
                del metadata["created_by"], metadata["file_id"]
                metadata["source"] = "https://example.org/"
            elif kind == 4:
                place = hashlib.sha256(b"https://example.org/").hexdigest()[:63]
        yield {
            "id": new_id(),
            "vector": embed(text),
            "payload": {"text": text, "metadata": metadata, "tenant_id": place},
        }


def dify() -> Iterator[Point]:
    """Segments of two data sets, with a few whose metadata is null."""
    for number, text in enumerate(texts(54)):
        data_set = f"{number % 2:08d}-0000-4000-8000-00000000dada"
        metadata = {
            "doc_id": new_id(), "doc_hash": hashlib.sha256(f"{text}None".encode()).hexdigest(),
            "document_id": f"{number // 6:08d}-0000-4000-8000-0000000d0c00", "dataset_id": data_set,
        }  # fmt: skip
        yield {
            "id": new_id() if number % 9 == 8 else metadata["doc_id"],
            "vector": embed(text),
            "payload": {
                "page_content": text, "metadata": None if number % 9 == 8 else metadata, "group_id": data_set,
            },
        }  # fmt: skip


def lightrag() -> Iterator[Point]:
    """Chunks, entities and relations of the workspace without a name and of a named one."""
    for number, text in enumerate(texts(57)):
        digest = hashlib.md5(text.encode()).hexdigest()
        workspace = "_" if number % 4 else "space1"
        kind = ("chunk", "ent", "rel")[number % 3]
        payload: dict[str, Any] = {
            "id": f"{kind}-{digest}",
            "workspace_id": workspace,
            "created_at": 1_742_000_000 + number,
        }
        if kind == "chunk":
            payload |= {"full_doc_id": f"doc-{number // 6}", "content": text, "file_path": "a.txt"}
        elif kind == "ent":
            payload |= {
                "entity_name": "Kyiv",
                "source_id": f"chunk-{digest}",
                "content": f"Kyiv\n{text}",
                "file_path": "a.txt",
            }
        else:
            payload |= {
                "src_id": "Kyiv", "tgt_id": "Lviv", "file_path": "a.txt",
                "source_id": f"chunk-{digest}<SEP>chunk-2", "content": f"travel\tKyiv\nLviv\n{text}",
            }  # fmt: skip
        key = uuid.UUID(bytes=hashlib.sha256(f"{workspace}{payload['id']}".encode()).digest()[:16], version=4)
        yield {"id": str(key), "vector": embed(text), "payload": payload}


def roo_code() -> Iterator[Point]:
    """Pieces of files, and the marker of a finished indexing."""
    yield {
        "id": str(uuid.uuid5(uuid.UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479"), "__indexing_metadata__")),
        "vector": [0.0] * (SIZE - 1) + [1.0],
        "payload": {"type": "metadata", "indexing_complete": True, "completed_at": 1_751_000_000_000},
    }
    for number, text in enumerate(texts(55)):
        path = f"src/services/part{number // 9}.ts"
        first = number % 9 * 20 + 1
        yield {
            "id": new_id(),
            "vector": embed(text),
            "payload": {
                "filePath": path, "codeChunk": f"// {text}\nexport const n = {number}\n", "startLine": first,
                "endLine": first + 1, "segmentHash": hashlib.sha256(f"{path}-{text}".encode()).hexdigest(),
                "pathSegments": dict(enumerate(path.split("/"))),
            },
        }  # fmt: skip


def write(file: Path, points: Callable[[], Iterator[Point]]) -> None:
    """Write a collection with one unnamed vector, as all four make it."""
    head = {"written_by": "by the published format", "params": {"vectors": {"size": SIZE, "distance": "Cosine"}}}
    lines = [json.dumps(line, ensure_ascii=False) for line in (head, *points())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{file}: {len(lines) - 1} points")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for shape in (open_webui, dify, lightrag, roo_code):
        write(folder / f"{shape.__name__}.jsonl", shape)
