/** The panel to steer with: the model, tools, their servers, switches, and what to fix. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { toolWords } from "../incoming";
import {
  CUES,
  type Finding,
  FINDING_STATUSES,
  type FindingStatus,
  type Model,
  type Reloaded,
  ServerError,
  type Switches,
  type Tool,
  type Tools,
} from "../server";
import type { Texts } from "../texts";
import { Icon, useTexts } from "./shared";

/** What the panel asks of the server; the scenes give a stand-in. */
export interface SteeringServer {
  tools(): Promise<Tools>;
  reload(): Promise<Reloaded>;
  model(): Promise<Model>;
  changeModel(model: string): Promise<string>;
  switches(): Promise<Switches>;
  switch(name: string, on: boolean): Promise<Switches>;
  findings(): Promise<readonly Finding[]>;
}

/** Return what a failed request says, or what to do. */
export function errorWords(texts: Texts, error: unknown): string {
  if (!(error instanceof ServerError)) return texts.serverOdd;
  if (error.detail) return error.detail;
  switch (error.kind) {
    case "no_key":
      return texts.problem.key_missing;
    case "refused":
      return texts.problem.key_refused;
    case "unreachable":
      return texts.serverProblem;
    case "said":
    case "odd":
      return texts.serverOdd;
  }
}

export function Steer({ server }: { server: SteeringServer }): JSX.Element {
  const texts = useTexts();
  return (
    <div class="page">
      <h2>{texts.steer}</h2>
      <p class="lead">{texts.steerLead}</p>
      <ModelPart server={server} />
      <ToolsPart server={server} />
      <SwitchesPart server={server} />
      <FindingsPart server={server} />
    </div>
  );
}

function ModelPart({ server }: { server: SteeringServer }): JSX.Element {
  const texts = useTexts();
  const [model, setModel] = useState<Model | null>(null);
  const [wanted, setWanted] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    server.model().then(setModel, (error: unknown) => setProblem(errorWords(texts, error)));
  }, [server, texts]);
  const change = async () => {
    const name = wanted.trim();
    if (!name || isBusy) return;
    setBusy(true);
    setSaid("");
    setProblem("");
    try {
      const changed = await server.changeModel(name);
      setModel((before) => ({ model: changed, api: before?.api ?? "" }));
      setWanted("");
      setSaid(texts.modelChanged(changed));
    } catch (error) {
      setProblem(errorWords(texts, error));
    }
    setBusy(false);
  };
  return (
    <section class="card" aria-labelledby="model-title">
      <h3 id="model-title">{texts.model}</h3>
      {model && (
        <p class="model-now">
          <strong>{model.model}</strong>
          {model.api && <span class="quiet"> {texts.modelApi(model.api)}</span>}
        </p>
      )}
      <form
        class="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          void change();
        }}
      >
        <label class="field">
          <span class="field-name">{texts.modelField}</span>
          <input
            type="text"
            value={wanted}
            maxLength={120}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => setWanted(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button" disabled={isBusy || !wanted.trim()}>
          {isBusy ? texts.loading : texts.modelChange}
        </button>
      </form>
      <Said words={said} problem={problem} />
    </section>
  );
}

function ToolsPart({ server }: { server: SteeringServer }): JSX.Element {
  const texts = useTexts();
  const [tools, setTools] = useState<Tools | null>(null);
  const [search, setSearch] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    server.tools().then(setTools, (error: unknown) => setProblem(errorWords(texts, error)));
  }, [server, texts]);
  const reload = async () => {
    setBusy(true);
    setSaid("");
    setProblem("");
    try {
      const { count, added, removed, changed } = await server.reload();
      setSaid(texts.reloaded(count, added, removed, changed));
      setTools(await server.tools());
    } catch (error) {
      setProblem(errorWords(texts, error));
    }
    setBusy(false);
  };
  const all = tools?.tools ?? [];
  const shown = all.filter((tool) => matches(tool, search));
  return (
    <section class="card" aria-labelledby="tools-title">
      <div class="card-head">
        <h3 id="tools-title">{texts.tools}</h3>
        <button type="button" class="button" disabled={isBusy} onClick={() => void reload()}>
          <Icon name="reload" />
          {isBusy ? texts.reloading : texts.reload}
        </button>
      </div>
      <Said words={said} problem={problem} />
      {tools && <ToolServers tools={tools} />}
      {!tools && !problem && <p class="quiet">{texts.loading}</p>}
      {tools && all.length === 0 && <p>{texts.noTools}</p>}
      {all.length > 0 && (
        <>
          <div class="search-row">
            <label class="field">
              <span class="field-name">{texts.search}</span>
              <input
                type="search"
                value={search}
                onInput={(event) => setSearch(event.currentTarget.value)}
              />
            </label>
            <p class="quiet" role="status">
              {texts.toolCount(shown.length, all.length)}
            </p>
          </div>
          {shown.length === 0 && <p>{texts.noMatch}</p>}
          <ul class="tools">
            {shown.map((tool) => (
              <ToolRow key={tool.name} tool={tool} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** Where tools come from: how many each server has, or why it has none. */
function ToolServers({ tools }: { tools: Tools }): JSX.Element | null {
  const texts = useTexts();
  const counts = new Map<string, number>();
  for (const tool of tools.tools) {
    if (tool.tier !== "mcp" && tool.tier !== "n8n") continue;
    if (!tools.failed.has(tool.server)) {
      counts.set(tool.server, (counts.get(tool.server) ?? 0) + 1);
    }
  }
  if (counts.size + tools.failed.size === 0) return null;
  return (
    <>
      <h4>{texts.servers}</h4>
      <ul class="states">
        {[...tools.failed].map(([name, reason]) => (
          <State key={name} name={name} tag="deny" state={texts.serverDown} found={reason}>
            {texts.serverFix}
          </State>
        ))}
        {[...counts].map(([name, count]) => (
          <State
            key={name}
            name={name}
            tag="allow"
            state={texts.serverReady}
            found={texts.toolCount(count, count)}
          />
        ))}
      </ul>
    </>
  );
}

function SwitchesPart({ server }: { server: SteeringServer }): JSX.Element {
  const texts = useTexts();
  const [switches, setSwitches] = useState<Switches | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    server.switches().then(setSwitches, (error: unknown) => setProblem(errorWords(texts, error)));
  }, [server, texts]);
  const rows = switches ? [[CUES, switches.cues] as const, ...switches.checks] : [];
  const change = async (name: string, on: boolean) => {
    setProblem("");
    try {
      setSwitches(await server.switch(name, on));
    } catch (error) {
      setProblem(errorWords(texts, error));
    }
  };
  return (
    <section class="card" aria-labelledby="switches-title">
      <h3 id="switches-title">{texts.switches}</h3>
      <Said words="" problem={problem} />
      {switches && (
        <>
          <ul class="states">
            {rows.map(([name, on]) => (
              <li key={name} class="tool">
                <strong class="tool-name">{texts.switchName(name)}</strong>
                <button
                  type="button"
                  role="switch"
                  aria-checked={on}
                  class={`tag switch tag-${on ? "allow" : "other"}`}
                  onClick={() => void change(name, !on)}
                >
                  <span class="hidden-text">{texts.switchName(name)}: </span>
                  {on ? texts.switchOn : texts.switchOff}
                </button>
                <p class="state-found">{texts.switchHint(name)}</p>
              </li>
            ))}
          </ul>
          <p class="quiet">{texts.switchesFix}</p>
          <pre class="fix-line">{"CAAL_CUES=off\nCAAL_CHECKS=-claims"}</pre>
        </>
      )}
    </section>
  );
}

function FindingsPart({ server }: { server: SteeringServer }): JSX.Element {
  const texts = useTexts();
  const [findings, setFindings] = useState<readonly Finding[] | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const look = async () => {
    setBusy(true);
    setProblem("");
    try {
      setFindings(await server.findings());
    } catch (error) {
      setProblem(errorWords(texts, error));
    }
    setBusy(false);
  };
  const of = (...statuses: FindingStatus[]) =>
    statuses.flatMap((status) => (findings ?? []).filter((each) => each.status === status));
  const good = of("ok");
  const counts = FINDING_STATUSES.map((status) => texts.findingCount(status, of(status).length));
  const words = isBusy ? texts.checking : counts.filter(Boolean).join(", ");
  return (
    <section class="card" aria-labelledby="findings-title">
      <div class="card-head">
        <h3 id="findings-title">{texts.findings}</h3>
        <button type="button" class="button" disabled={isBusy} onClick={() => void look()}>
          {texts.checkNow}
        </button>
      </div>
      <p class="quiet">{texts.findingsHint}</p>
      <Said words={isBusy || findings ? words : ""} problem={problem} />
      <FindingList findings={of("fail", "warn")} />
      {good.length > 0 && (
        <details class="good-findings">
          <summary>{texts.findingCount("ok", good.length)}</summary>
          <FindingList findings={good} />
        </details>
      )}
    </section>
  );
}

const TAG_OF = { fail: "deny", warn: "ask", ok: "allow" } as const;

function FindingList({ findings }: { findings: readonly Finding[] }): JSX.Element | null {
  const texts = useTexts();
  if (findings.length === 0) return null;
  return (
    <ul class="states">
      {findings.map(({ name, status, found, fix }, at) => (
        <State
          key={`${name} ${at}`}
          name={name}
          tag={TAG_OF[status]}
          state={texts.findingStatus(status)}
          found={found}
          lang="en"
        >
          {fix}
        </State>
      ))}
    </ul>
  );
}

/** One thing with its state, what was found of it, and what to do. */
function State(props: {
  name: string;
  tag: "allow" | "ask" | "deny" | "other";
  state: string;
  found: string;
  lang?: string;
  children?: preact.ComponentChildren;
}): JSX.Element {
  return (
    <li class="tool">
      <strong class="tool-name">{props.name}</strong>
      <span>
        <span class={`tag tag-${props.tag}`}>{props.state}</span>
      </span>
      <p class="state-found" lang={props.lang}>
        {props.found}
      </p>
      {props.children && (
        <p class="state-fix" lang={props.lang}>
          {props.children}
        </p>
      )}
    </li>
  );
}

function matches(tool: Tool, search: string): boolean {
  const text = `${tool.name} ${toolWords(tool.name)} ${tool.server} ${tool.description}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function ToolRow({ tool }: { tool: Tool }): JSX.Element {
  const texts = useTexts();
  const place =
    tool.tier === "mcp"
      ? texts.server(tool.server)
      : tool.tier === "n8n"
        ? texts.n8n
        : texts.builtIn;
  return (
    <li class="tool">
      <h4 class="tool-name">{toolWords(tool.name)}</h4>
      <p class="tool-verdict">
        <span class={`tag tag-${tagOf(tool.verdict)}`}>{texts.verdict(tool.verdict)}</span>
      </p>
      {tool.description && <p class="tool-description">{tool.description}</p>}
      <p class="tool-meta quiet">
        {[texts.effect(tool.effect), place, tool.offered ? "" : texts.notOffered]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </li>
  );
}

function tagOf(verdict: string): string {
  return verdict === "allow" || verdict === "ask" || verdict === "deny" ? verdict : "other";
}

function Said({ words, problem }: { words: string; problem: string }): JSX.Element {
  return (
    <>
      <p class="said-status" role="status">
        {words}
      </p>
      {problem && (
        <p class="problem-words" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}
