// LangChain for JavaScript writes documents as its text splitter makes them, and some with custom fields.
// npm install @langchain/qdrant @langchain/core; node langchain_js.mjs URL FILE
import { writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { QdrantVectorStore } from "@langchain/qdrant";

const [url, file] = process.argv.slice(2);
const name = "fixture_langchain_js";
const embed = (text) => [...createHash("sha256").update(text).digest().subarray(0, 8)].map((b) => b / 255 + 0.01);
const embeddings = { embedDocuments: async (texts) => texts.map(embed), embedQuery: async (text) => embed(text) };
const documents = Array.from({ length: 56 }, (_, i) => ({
  pageContent: `Passage ${i} of the manual.`,
  metadata: i % 11 === 10 ? {} : {
    source: `manual-${Math.floor(i / 8)}.txt`,
    loc: { lines: { from: (i % 8) * 12 + 1, to: (i % 8) * 12 + 12 } },
    created_at: 1735689600000 + i * 1000,
    userId: "somebody",
  },
}));
const store = await QdrantVectorStore.fromDocuments(documents.slice(0, 50), embeddings, { url, collectionName: name });
await store.addDocuments(documents.slice(50), { customPayload: documents.slice(50).map(() => ({ team: "north" })) });

const ask = async (path, body) => {
  const how = body ? { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } } : {};
  return (await (await fetch(url + path, how)).json()).result;
};
const { config } = await ask(`/collections/${name}`);
const { points } = await ask(`/collections/${name}/points/scroll`, { limit: 500, with_payload: true, with_vector: true });
const { version } = createRequire(import.meta.url)("@langchain/qdrant/package.json");
const head = { written_by: `@langchain/qdrant ${version}`, params: config.params };
writeFileSync(file, [head, ...points].map((line) => JSON.stringify(line)).join("\n") + "\n");
await fetch(`${url}/collections/${name}`, { method: "DELETE" });
console.log(`${file}: ${points.length} points`);
