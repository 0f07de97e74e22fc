/** The HTTP side of `caal-node up`: where to join, the tools, the model. */

import { clean, line, NAME_CHARS, WORDS_CHARS } from "./incoming";
import { readTurns, type TracedTurn } from "./trace";

export interface Join {
  readonly url: string;
  readonly token: string;
  readonly identity: string;
}

export interface Tool {
  readonly name: string;
  readonly tier: string;
  readonly server: string;
  readonly description: string;
  readonly offered: boolean;
  readonly verdict: string;
  readonly effect: string;
}

export interface Tools {
  readonly tools: readonly Tool[];
  readonly failed: ReadonlyMap<string, string>;
}

export interface Reloaded {
  readonly count: number;
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  readonly failed: ReadonlyMap<string, string>;
}

export interface Model {
  readonly model: string;
  readonly api: string;
}

/** What the checks of the installation have found of one part, in their own words. */
export interface Finding {
  readonly name: string;
  readonly status: FindingStatus;
  readonly found: string;
  readonly fix: string;
}

export const FINDING_STATUSES = ["fail", "warn", "ok"] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export interface Switches {
  readonly cues: boolean;
  readonly checks: ReadonlyMap<string, boolean>;
}

export type ServerErrorKind = "no_key" | "refused" | "unreachable" | "said" | "odd";

/** A request that brought no answer to use; `detail` is what the server says of it. */
export class ServerError extends Error {
  constructor(
    readonly kind: ServerErrorKind,
    readonly status: number = 0,
    readonly detail: string = "",
  ) {
    super(detail || kind);
  }
}

const DEADLINE_MS = 15_000;
/** A reload asks every source of tools. */
const RELOAD_DEADLINE_MS = 90_000;
/** Longer than the server gives all checks of the installation. */
const FINDINGS_DEADLINE_MS = 170_000;
const TOOLS = 1_000;
const FINDINGS = 200;
const CHECKS = 20;
/** The switch beside the checks: the sounds of tools. */
export const CUES = "cues";
const FAILED = 50;

type Fields = Readonly<Record<string, unknown>>;

export class Server {
  constructor(
    private readonly key: string,
    private readonly page: string,
    private readonly send: typeof fetch = (...given) => fetch(...given),
  ) {}

  async join(): Promise<Join> {
    const fields = await this.request("POST", "join", {});
    const { url, token } = fields;
    if (typeof url !== "string" || !/^wss?:\/\//.test(url) || typeof token !== "string") {
      throw new ServerError("odd");
    }
    return { url, token, identity: line(fields.identity, NAME_CHARS) };
  }

  async tools(): Promise<Tools> {
    const fields = await this.request("GET", "tools");
    if (!Array.isArray(fields.tools)) throw new ServerError("odd");
    const tools: Tool[] = [];
    for (const each of fields.tools.slice(0, TOOLS) as unknown[]) {
      if (typeof each !== "object" || each === null) continue;
      const tool = each as Fields;
      const name = line(tool.name, NAME_CHARS);
      if (!name) continue;
      tools.push({
        name,
        tier: line(tool.tier, NAME_CHARS),
        server: line(tool.server, NAME_CHARS),
        description: clean(tool.description, WORDS_CHARS),
        offered: tool.offered !== false,
        verdict: line(tool.verdict, NAME_CHARS),
        effect: line(tool.effect, NAME_CHARS),
      });
    }
    return { tools, failed: failures(fields.failed) };
  }

  async reload(): Promise<Reloaded> {
    const fields = await this.request("POST", "reload", {}, RELOAD_DEADLINE_MS);
    if (typeof fields.tool_count !== "number") throw new ServerError("odd");
    const length = (value: unknown) => (Array.isArray(value) ? value.length : 0);
    return {
      count: fields.tool_count,
      added: length(fields.added),
      removed: length(fields.removed),
      changed: length(fields.changed),
      failed: failures(fields.failed),
    };
  }

  async model(): Promise<Model> {
    const fields = await this.request("GET", "model");
    return { model: line(fields.model, NAME_CHARS), api: line(fields.api, NAME_CHARS) };
  }

  async changeModel(model: string): Promise<string> {
    const fields = await this.request("POST", "model", { model }, RELOAD_DEADLINE_MS);
    return line(fields.model, NAME_CHARS) || model;
  }

  async turns(trace: Blob): Promise<readonly TracedTurn[]> {
    const fields = await this.request("POST", "trace", trace, RELOAD_DEADLINE_MS);
    if (!Array.isArray(fields.turns)) throw new ServerError("odd");
    return readTurns(fields.turns);
  }

  async findings(): Promise<readonly Finding[]> {
    const fields = await this.request("GET", "findings", undefined, FINDINGS_DEADLINE_MS);
    if (!Array.isArray(fields.findings)) throw new ServerError("odd");
    const findings: Finding[] = [];
    for (const each of fields.findings.slice(0, FINDINGS) as unknown[]) {
      if (typeof each !== "object" || each === null) continue;
      const { name, status, found, fix } = each as Fields;
      const known = FINDING_STATUSES.find((one) => one === status);
      if (!known) continue;
      findings.push({
        name: line(name, NAME_CHARS),
        status: known,
        found: line(found, WORDS_CHARS),
        fix: line(fix, WORDS_CHARS),
      });
    }
    return findings;
  }

  async switches(): Promise<Switches> {
    return readSwitches(await this.request("GET", "switches"));
  }

  /** Switch the cues or a check of this conversation, and return how all are then. */
  async switch(name: string, on: boolean): Promise<Switches> {
    const wanted = name === CUES ? { cues: on } : { checks: { [name]: on } };
    return readSwitches(await this.request("POST", "switches", wanted));
  }

  private async request(
    method: "GET" | "POST",
    path: string,
    body?: Blob | object,
    deadlineMs = DEADLINE_MS,
  ): Promise<Fields> {
    if (!this.key) throw new ServerError("no_key");
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.key}`,
      "X-Caal-Page": this.page,
      Accept: "application/json",
    };
    const isFile = body instanceof Blob;
    if (body && !isFile) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      response = await this.send(`/page/${path}`, {
        method,
        headers,
        body: isFile ? body : body ? JSON.stringify(body) : null,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        signal: AbortSignal.timeout(deadlineMs),
      });
    } catch {
      throw new ServerError("unreachable");
    }
    let answer: unknown;
    try {
      answer = await response.json();
    } catch {
      answer = null;
    }
    const fields = typeof answer === "object" && answer !== null ? (answer as Fields) : {};
    if (response.ok && fields.status !== "error") {
      if (answer === null) throw new ServerError("odd", response.status);
      return fields;
    }
    const detail = clean(fields.detail, WORDS_CHARS);
    const refused = response.status === 401 || response.status === 403;
    throw new ServerError(refused ? "refused" : "said", response.status, detail);
  }
}

function readSwitches({ cues, checks }: Fields): Switches {
  if (typeof cues !== "boolean" || typeof checks !== "object" || checks === null) {
    throw new ServerError("odd");
  }
  const read = Object.entries(checks).slice(0, CHECKS);
  return { cues, checks: new Map(read.map(([name, on]) => [line(name, NAME_CHARS), on === true])) };
}

function failures(value: unknown): Map<string, string> {
  const failed = new Map<string, string>();
  if (typeof value !== "object" || value === null) return failed;
  for (const [source, reason] of Object.entries(value).slice(0, FAILED)) {
    failed.set(line(source, NAME_CHARS), line(reason, WORDS_CHARS));
  }
  return failed;
}
