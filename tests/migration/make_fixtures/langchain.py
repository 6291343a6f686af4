"""LangChain writes documents with and without metadata."""

from __future__ import annotations

from common import dump, embed, place, texts
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore


class Hashes(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def main() -> None:
    url, file = place()
    documents = [
        Document(
            page_content=text,
            metadata={}
            if number % 10 == 9
            else {
                "source": f"docs/handbook_{number // 8}.md",
                "start_index": number % 8 * 400,
                "page": number % 8,
                "producer": None,
                # As PyPDFLoader has it; the second form has no offset.
                "creationdate": f"2025-03-{number % 28 + 1:02d}T09:30:00+02:00"
                if number % 2
                else f"2025-03-{number % 28 + 1:02d}T09:30:00",
                "tenant_id": "t_somebody_else",
            },
        )
        for number, text in enumerate(texts(60))
    ]
    store = QdrantVectorStore.from_documents(
        documents[:50], Hashes(), url=url, collection_name="fixture_langchain", timeout=120
    )
    store.add_documents(documents[50:])
    store.add_texts(["A text that came without metadata."])
    dump(url, "fixture_langchain", file, "langchain-qdrant")


if __name__ == "__main__":
    main()
