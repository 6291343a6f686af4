"""mem0 writes memories of users, of agents, of runs only, with times of several offsets."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

# This file is called like the package.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from mem0.memory.main import Memory  # noqa: E402
from mem0.vector_stores.qdrant import Qdrant  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent))
from common import SIZE, dump, embed, place, texts  # noqa: E402


def main() -> None:
    url, file = place()
    memory = Memory.__new__(Memory)
    memory.embedding_model = SimpleNamespace(embed=lambda text, memory_action=None: embed(text))
    memory.vector_store = Qdrant("fixture_mem0", SIZE, url=url)
    memory.db = SimpleNamespace(add_history=lambda *_, **__: None)
    users = ("marta", "Marta", "ivan.petrenko@example.org", "ivan-petrenko-example-org", "用户7", "42")
    for number, text in enumerate(texts(60)):
        scope = {"user_id": users[number % len(users)]}
        if number % 5 == 0:
            scope["agent_id"] = "nutra"
        if number % 4 == 0:
            scope["run_id"] = f"run-{number}"
        if number % 20 == 19:
            scope = {"agent_id": "nutra", "run_id": f"run-{number}"}
        if number == 58:
            scope = {"run_id": "only-a-run"}
        # Until 2025 mem0 wrote the time of California.
        times = {} if number % 3 else {"created_at": f"2024-11-{number % 28 + 1:02d}T23:15:42.123456-08:00"}
        memory._create_memory(text, {}, metadata={**scope, **times, "role": "user"})
    dump(url, "fixture_mem0", file, "mem0ai")


if __name__ == "__main__":
    main()
