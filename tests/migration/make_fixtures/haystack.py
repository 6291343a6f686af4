"""Haystack writes documents whole and split, with dense and sparse vectors, and one of bytes without a text."""

from __future__ import annotations

import sys
from pathlib import Path

# This file is called like the package.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from haystack.dataclasses import ByteStream, Document, SparseEmbedding  # noqa: E402
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent))
from common import SIZE, dump, embed, place, texts  # noqa: E402


def main() -> None:
    url, file = place()
    store = QdrantDocumentStore(
        url=url, index="fixture_haystack", embedding_dim=SIZE, use_sparse_embeddings=True, timeout=120
    )
    documents = []
    for number, text in enumerate(texts(56)):
        meta = {"file_path": f"minutes/{number // 7}.txt", "created_at": f"2025-02-03T04:05:{number:02d}+00:00"}
        if number % 7:
            meta |= {
                "source_id": f"parent{number // 7}",
                "split_id": number % 7,
                "split_idx_start": number % 7 * 90,
            }
        if number == 20:
            meta = {}
        documents.append(
            Document(
                content=text,
                meta=meta,
                embedding=embed(text),
                sparse_embedding=SparseEmbedding(indices=[number, 900 + number % 7], values=[0.5, 0.25]),
            )
        )
    documents.append(
        Document(
            content=None,
            blob=ByteStream(b"PNG", mime_type="image/png"),
            embedding=embed("png"),
            sparse_embedding=SparseEmbedding(indices=[1], values=[1.0]),
        )
    )
    store.write_documents(documents)
    dump(url, "fixture_haystack", file, "qdrant-haystack")


if __name__ == "__main__":
    main()
