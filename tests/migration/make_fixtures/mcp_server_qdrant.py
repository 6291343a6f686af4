"""mcp-server-qdrant writes entries with and without metadata, under a named vector."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

# This file is called like the package.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from mcp_server_qdrant.embeddings.base import EmbeddingProvider  # noqa: E402
from mcp_server_qdrant.qdrant import Entry, QdrantConnector  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent))
from common import SIZE, dump, embed, place, texts  # noqa: E402


class Hashes(EmbeddingProvider):
    async def embed_documents(self, documents: list[str]) -> list[list[float]]:
        return [embed(text) for text in documents]

    async def embed_query(self, query: str) -> list[float]:
        return embed(query)

    def get_vector_name(self) -> str:
        return "fast-all-minilm-l6-v2"

    def get_vector_size(self) -> int:
        return SIZE


async def write(url: str) -> None:
    connector = QdrantConnector(url, None, "fixture_mcp", Hashes())
    for number, text in enumerate(texts(55)):
        metadata = (
            None if number % 3 == 0 else {"source": f"chat {number % 5}", "timestamp": 1_740_000_000 + number}
        )
        await connector.store(Entry(content=text, metadata=metadata))


if __name__ == "__main__":
    url, file = place()
    asyncio.run(write(url))
    dump(url, "fixture_mcp", file, "mcp-server-qdrant")
