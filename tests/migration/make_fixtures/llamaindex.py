"""LlamaIndex writes nodes of documents, nodes of none, and an index node."""

from __future__ import annotations

from common import dump, embed, place, texts
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient


def main() -> None:
    url, file = place()
    client = QdrantClient(url=url, timeout=120)
    store = QdrantVectorStore("fixture_llamaindex", client=client)
    nodes = []
    for number, text in enumerate(texts(58)):
        kind = IndexNode if number == 57 else TextNode
        more = {"index_id": "index-1"} if kind is IndexNode else {}
        node = kind(
            id_=f"00000000-0000-4000-8000-{number:012d}",
            text=text,
            embedding=embed(text),
            start_char_idx=number % 6 * 200,
            end_char_idx=number % 6 * 200 + len(text),
            metadata={
                "file_name": f"report {number // 6}.pdf",
                "file_path": f"/data/report {number // 6}.pdf",
                "creation_date": "2025-05-04",
                "text": "a key of the user's that is called like the text",
                "user_id": "somebody",
            },
            **more,
        )
        if number % 9:  # every ninth has no document: "None"
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"report-{number // 6}")
        nodes.append(node)
    store.add(nodes)
    dump(url, "fixture_llamaindex", file, "llama-index-vector-stores-qdrant")


if __name__ == "__main__":
    main()
