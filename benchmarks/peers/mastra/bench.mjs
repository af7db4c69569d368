// Mastra on the same text through the same four steps, against a loop by hand in the same engine.
//
// Its one argument is JSON: { rounds, lengths, words }. It prints JSON: versions, who was asked for
// outside this machine, and for each side and length the processor seconds of every round.

import dns from "node:dns";
import { readFileSync } from "node:fs";
import net from "node:net";

import { Agent } from "@mastra/core/agent";

const { rounds, lengths, words } = JSON.parse(process.argv[2]);
const WARM = 5; // runs until the compiler has seen the code
const SHORTEST = 100; // ms: the clock of the processor's time may tick but every few of them
const LONGEST = 2 ** 40;

const outside = [];

function refuse(target) {
  outside.push(target);
  throw new Error(`nothing reaches ${target} while peers are measured`);
}

dns.lookup = (host) => refuse(host);
net.Socket.prototype.connect = function connect(...args) {
  refuse(JSON.stringify(args[0]));
};

/** The four steps; what they keep is in `seen`. */
function steps() {
  const seen = { words: 0, length: 0, last: "", tabs: 0 };
  const chain = [
    function countWords(text) {
      for (let at = text.indexOf(" "); at >= 0; at = text.indexOf(" ", at + 1)) seen.words += 1;
      return text;
    },
    function limitLength(text) {
      seen.length += text.length;
      if (seen.length > LONGEST) throw new Error("the text is too long");
      return text;
    },
    function keepLast(text) {
      seen.last = text;
      return text;
    },
    function replaceTabs(text) {
      if (!text.includes("\t")) return text;
      seen.tabs += 1;
      return text.replaceAll("\t", " ");
    },
  ];
  return { seen, chain };
}

async function* spoken(texts) {
  for (const text of texts) yield text;
}

function byHand(texts, chain) {
  return async () => {
    const got = [];
    for await (const text of spoken(texts)) {
      let piece = text;
      for (const step of chain) piece = step(piece);
      got.push(piece);
    }
    return got;
  };
}

function* parts(texts) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "response-metadata", id: "r1", modelId: "m", timestamp: new Date(0) };
  yield { type: "text-start", id: "0" };
  for (const delta of texts) yield { type: "text-delta", id: "0", delta };
  yield { type: "text-end", id: "0" };
  const usage = { inputTokens: 1, outputTokens: texts.length, totalTokens: texts.length + 1 };
  yield { type: "finish", finishReason: "stop", usage };
}

/** A model as the AI SDK wants it, which is what Mastra takes. */
function model(texts) {
  return {
    specificationVersion: "v2",
    provider: "spoken",
    modelId: "m",
    supportedUrls: {},
    async doGenerate() {
      throw new Error("it streams only");
    },
    async doStream() {
      const left = parts(texts);
      const pull = (controller) => {
        const { value, done } = left.next();
        if (done) controller.close();
        else controller.enqueue(value);
      };
      return { stream: new ReadableStream({ pull }) };
    },
  };
}

function withMastra(texts, chain) {
  const agent = new Agent({
    id: "spoken",
    name: "spoken",
    instructions: "Speak.",
    model: model(texts),
    outputProcessors: chain.map((step) => ({
      id: step.name,
      async processOutputStream({ part }) {
        if (part.type === "text-delta") part.payload.text = step(part.payload.text);
        return part;
      },
    })),
  });
  return async () => {
    const got = [];
    const { fullStream } = await agent.stream("hi");
    for await (const part of fullStream) {
      if (part.type === "text-delta") got.push(part.payload.text);
    }
    return got;
  };
}

function same(name, one, other) {
  const [found, wanted] = [JSON.stringify(one), JSON.stringify(other)];
  if (found !== wanted) throw new Error(`${name}: ${found.slice(0, 80)}, not ${wanted.slice(0, 80)}`);
}

const SIDES = { byHand, withMastra };
const sides = [];
for (const [name, make] of Object.entries(SIDES)) {
  for (const [index, length] of lengths.entries()) {
    const texts = Array.from({ length }, (_, number) => words[number % words.length]);
    const { seen, chain } = steps();
    const run = make(texts, chain);
    const due = steps();
    const wanted = await byHand(texts, due.chain)();
    same(`${name}, text`, (await run()).join(""), wanted.join(""));
    same(`${name}, steps`, seen, due.seen);
    for (let turn = 0; turn < WARM; turn += 1) await run();
    const begin = performance.now();
    for (let turn = 0; turn < WARM; turn += 1) await run();
    const repeats = Math.ceil((SHORTEST * WARM) / (performance.now() - begin));
    sides.push({ name, index, run, repeats });
  }
}

// As on the other side of the comparison: the time of this thread's processor. Where Node.js does
// not tell it apart, its helper threads' time is in it.
const cpu = process.threadCpuUsage ?? process.cpuUsage;

async function seconds({ run, repeats }) {
  globalThis.gc();
  const begin = cpu.call(process);
  for (let turn = 0; turn < repeats; turn += 1) await run();
  const { user, system } = cpu.call(process, begin);
  return (user + system) / 1e6 / repeats;
}

const taken = Object.fromEntries(Object.keys(SIDES).map((name) => [name, lengths.map(() => [])]));
for (let turn = 0; turn < rounds; turn += 1) {
  const order = turn % 2 ? sides : [...sides].reverse();
  for (const side of order) taken[side.name][side.index].push(await seconds(side));
}
const core = new URL("node_modules/@mastra/core/package.json", import.meta.url);
const { version } = JSON.parse(readFileSync(core, "utf8"));
process.stdout.write(
  JSON.stringify({ node: process.versions.node, mastra: version, outside, ...taken }) + "\n",
);
process.exit(0); // what a run may have left behind keeps nobody waiting
